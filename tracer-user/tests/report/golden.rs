//! What a person reads, kept as snapshots. `INSTA_UPDATE=always cargo test -p gtrace --test report` rewrites them.

use gtrace::event::{GapId, MonoNs};
use gtrace::report::explain::{Choice, ExplainError, explain, render};
use gtrace::report::model::Report;
use gtrace::report::text::style::Style;
use gtrace::report::{load, text};

use super::scene::{MS, START, Scene};
use super::scenes;

/// The report of a scene, as if it lay in `made.gtrace`.
pub fn report(scene: Scene) -> Report {
    let (_folder, bundle) = scene.bundle();
    let mut report = load::report(&bundle, &|_| ()).expect("the bundle can be read");
    report.recording.path = "made.gtrace".into();
    report
}

fn plain(scene: Scene) -> String {
    text::render(&report(scene), Style { colors: false, columns: 120 })
}

#[test]
fn loader_bound() {
    insta::assert_snapshot!(plain(scenes::loader_bound()));
}

#[test]
fn healthy() {
    insta::assert_snapshot!(plain(scenes::healthy()));
}

#[test]
fn lossy() {
    insta::assert_snapshot!(plain(scenes::lossy()));
}

#[test]
fn two_devices() {
    insta::assert_snapshot!(plain(scenes::two_devices()));
}

#[test]
fn no_gpu() {
    insta::assert_snapshot!(plain(scenes::no_gpu()));
}

#[test]
fn hostile() {
    insta::assert_snapshot!(plain(scenes::hostile()));
}

fn explained(scene: Scene, choice: Choice) -> String {
    let (_folder, bundle) = scene.bundle();
    let explanation = explain(&bundle, choice).expect("there is such a gap");
    assert_eq!(explanation.imbalance_ns(), 0);
    render(&explanation, Style { colors: false, columns: 120 })
}

#[test]
fn explain_a_loader_gap() {
    insta::assert_snapshot!(explained(scenes::loader_bound(), Choice::Gap(GapId(3))));
}

#[test]
fn explain_a_lossy_gap() {
    insta::assert_snapshot!(explained(scenes::lossy(), Choice::Longest));
}

#[test]
fn explain_a_dependency() {
    insta::assert_snapshot!(explained(scenes::two_devices(), Choice::At(MonoNs(START + 40 * MS))));
}

#[test]
fn a_gap_that_is_not_there_is_said_to_be_so() {
    let (_folder, bundle) = scenes::two_devices().bundle();
    let error = |choice| explain(&bundle, choice).expect_err("there is no such gap").to_string();
    assert_eq!(error(Choice::Gap(GapId(7))), "there is no gap 7; they are numbered from 0 to 1");
    let there = error(Choice::At(MonoNs(START + 100 * MS)));
    assert_eq!(there, "no GPU had a gap at that time; the nearest gap is 1, 8 ms away");
    let (_folder, bundle) = scenes::no_gpu().bundle();
    assert!(matches!(explain(&bundle, Choice::Longest), Err(ExplainError::NoGaps)));
}

#[test]
fn json() {
    let json = serde_json::to_string_pretty(&report(scenes::two_devices())).expect("a report is JSON");
    insta::assert_snapshot!(json);
}

/// docs/reading-a-report.md names every field.
#[test]
fn the_json_is_documented() {
    let page = include_str!("../../../docs/reading-a-report.md");
    for scene in [scenes::loader_bound(), scenes::lossy(), scenes::two_devices()] {
        let json = serde_json::to_value(report(scene)).expect("a report is JSON");
        let mut missing = std::collections::BTreeSet::new();
        undocumented(&json, page, &mut missing);
        assert!(missing.is_empty(), "not in docs/reading-a-report.md: {missing:?}");
    }
}

fn undocumented(json: &serde_json::Value, page: &str, missing: &mut std::collections::BTreeSet<String>) {
    match json {
        serde_json::Value::Object(fields) => {
            for (name, value) in fields {
                if !page.contains(&format!("`{name}`")) && !page.contains(&format!("`{name}[]`")) {
                    missing.insert(name.clone());
                }
                undocumented(value, page, missing);
            }
        }
        serde_json::Value::Array(items) => items.iter().for_each(|item| undocumented(item, page, missing)),
        _ => {}
    }
}

#[test]
fn hostile_names_reach_no_terminal() {
    for colors in [false, true] {
        for columns in [80, 120] {
            let style = Style { colors, columns };
            let (_folder, bundle) = scenes::hostile().bundle();
            let explanation = explain(&bundle, Choice::Longest).expect("there is a gap");
            let page = text::render(&report(scenes::hostile()), style) + &render(&explanation, style);
            for line in page.lines() {
                let bare = without_looks(line);
                assert!(
                    !bare.chars().any(|c| c.is_control() || c == '\u{202e}' || c == '\u{200b}'),
                    "{line:?}"
                );
                assert!(bare.chars().count() <= 300, "{line:?}");
            }
        }
    }
}

/// The line without our own colours; any other escape sequence stays.
fn without_looks(line: &str) -> String {
    let looks = ["1;4", "1", "2", "32", "33", "31;1", "0"];
    looks.iter().fold(line.to_owned(), |line, look| line.replace(&format!("\u{1b}[{look}m"), ""))
}

#[test]
fn the_answer_fits_one_screen() {
    let page = plain(scenes::loader_bound());
    let first = page.lines().position(|line| line.starts_with("What to change")).expect("there is advice");
    assert!(first <= 24, "the first screen has {first} lines");
}
