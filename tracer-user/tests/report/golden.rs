//! What a person reads, kept as snapshots. `INSTA_UPDATE=always cargo test -p gtrace --test report` rewrites them.

use gtrace::report::model::Report;
use gtrace::report::text::style::Style;
use gtrace::report::{load, text};

use super::scene::Scene;
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

#[test]
fn json() {
    let json = serde_json::to_string_pretty(&report(scenes::two_devices())).expect("a report is JSON");
    insta::assert_snapshot!(json);
}

#[test]
fn hostile_names_reach_no_terminal() {
    for colors in [false, true] {
        for columns in [80, 120] {
            let page = text::render(&report(scenes::hostile()), Style { colors, columns });
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
