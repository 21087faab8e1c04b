//! The Chrome trace of a bundle.

use std::collections::BTreeMap;
use std::path::Path;

use gtrace::event::{GapId, MonoNs};
use gtrace::export::{ExportError, Options, Summary, export, export_to_file};
use gtrace::store::schema::{TableVisitor, visit_tables};
use gtrace::store::{Bundle, BundleWriter, Table};
use proptest::prelude::*;
use serde_json::Value;

use crate::arbitrary::{Words, rows};
use crate::samples::{meta, op};
use crate::story;

fn trace(bundle: &Bundle, options: &Options) -> (String, Summary) {
    let mut text = Vec::new();
    let summary = export(bundle, &mut text, options).unwrap();
    assert_eq!(summary.bytes, text.len() as u64);
    (String::from_utf8(text).unwrap(), summary)
}

/// Slices of a track around the current time: begin, name and colour, the innermost last.
#[derive(Default)]
struct Open {
    slices: Vec<(i128, Value, Value)>,
    time: Option<i128>,
}

/// Checks what every trace must be; returns its events.
fn check(text: &str) -> Vec<Value> {
    let parsed: Value = serde_json::from_str(text).unwrap();
    let events = parsed["traceEvents"].as_array().unwrap().clone();
    let mut tracks: BTreeMap<(i64, i64), Open> = BTreeMap::new();
    let mut arrows: BTreeMap<i64, (u32, u32)> = BTreeMap::new();
    let mut named = std::collections::BTreeSet::new();
    for (event, line) in events.iter().zip(text.lines().skip(1)) {
        let key = (event["pid"].as_i64().unwrap(), event["tid"].as_i64().unwrap());
        let phase = event["ph"].as_str().unwrap();
        match phase {
            // Slices nest, and a track's are in order of time.
            "B" | "E" | "X" => {
                let time = ns(line, "\"ts\":");
                let track = tracks.entry(key).or_default();
                assert!(track.time.is_none_or(|before| before <= time), "{line}");
                track.time = Some(time);
                if phase == "B" {
                    track.slices.push((time, event["name"].clone(), event["cname"].clone()));
                } else if phase == "E" {
                    let (start, name, color) = track.slices.pop().unwrap();
                    assert!(start < time && name == event["name"] && color == event["cname"], "{line}");
                } else {
                    assert_eq!(ns(line, "\"dur\":"), 0);
                }
            }
            "s" => arrows.entry(event["id"].as_i64().unwrap()).or_default().0 += 1,
            "f" => arrows.entry(event["id"].as_i64().unwrap()).or_default().1 += 1,
            "M" if event["name"] == "thread_name" => drop(named.insert(key)),
            "M" => {}
            "C" => assert!(event["args"]["value"].as_i64().unwrap() >= 0, "{event}"),
            other => panic!("{other}"),
        }
    }
    // Every arrow has both its ends.
    assert!(arrows.values().all(|ends| *ends == (1, 1)), "{arrows:?}");
    let mut tids = std::collections::BTreeSet::new();
    for (key, track) in &tracks {
        assert!(named.contains(key), "{key:?} has no name");
        assert!(tids.insert(key.1), "{key:?}: not the only one with this tid");
        assert!(track.slices.is_empty(), "{key:?}: not every slice ends");
    }
    events
}

/// Microseconds with three decimals, as integer nanoseconds, out of the text itself: no double in between.
fn ns(line: &str, key: &str) -> i128 {
    let number = line.split_once(key).unwrap().1.split([',', '}']).next().unwrap();
    let (micros, rest) = number.split_once('.').unwrap();
    assert_eq!(rest.len(), 3, "{number}");
    format!("{micros}{rest}").parse().unwrap()
}

#[test]
fn the_story() {
    let dir = tempfile::tempdir().unwrap();
    let bundle = story::write(&dir.path().join("x.gtrace"));
    let (text, summary) = trace(&bundle, &Options::default());
    check(&text);
    assert_eq!((summary.choice.as_str(), summary.counts.left_out()), ("everything", 0));
    insta::with_settings!({prepend_module_to_snapshot => false, omit_expression => true}, {
        insta::assert_snapshot!("chrome_story", text.replace(env!("CARGO_PKG_VERSION"), "VERSION"));
    });
}

#[test]
fn arrows_run_along_the_chain() {
    let dir = tempfile::tempdir().unwrap();
    let bundle = story::write(&dir.path().join("x.gtrace"));
    let events = check(&trace(&bundle, &Options::default()).0);
    let mut names = BTreeMap::new();
    for event in events.iter().filter(|event| event["name"] == "thread_name") {
        names.insert(event["tid"].as_i64().unwrap(), event["args"]["name"].as_str().unwrap());
    }
    let mut arrows: BTreeMap<i64, Vec<String>> = BTreeMap::new();
    for event in events.iter().filter(|event| event["ph"] == "s" || event["ph"] == "f") {
        let name = names[&event["tid"].as_i64().unwrap()];
        // The hostile name as it came, without what follows it.
        let name = name.replace(&gtrace::report::escape::escape(story::HOSTILE), "worker");
        let end = format!("{} {} at {}", event["name"].as_str().unwrap(), name, event["ts"]);
        arrows.entry(event["id"].as_i64().unwrap()).or_default().push(end);
    }
    let arrows: Vec<String> = arrows.into_values().map(|ends| ends.join(" -> ")).collect();
    let worker_state = "200 state: worker (dataloader_worker)";
    let main_state = "100 state: python3 (main)";
    for expected in [
        // The disk ends the worker's wait, the worker the main thread's, and the main thread launches.
        format!("wake vda at 557.999 -> wake {worker_state} at 560.0"),
        format!("wake {worker_state} at 670.0 -> wake {main_state} at 670.0"),
        "launch 100 calls: python3 (main) at 690.0 -> launch stream 7 of python3 [100], context 1 at 705.0"
            .into(),
        format!("cause {worker_state} at 345.0 -> cause gaps by cause at 345.0"),
    ] {
        assert!(arrows.contains(&expected), "{expected}: {arrows:#?}");
    }
}

#[test]
fn around_one_gap() {
    let dir = tempfile::tempdir().unwrap();
    let bundle = story::write(&dir.path().join("x.gtrace"));
    let (text, summary) = trace(&bundle, &Options { around_gap: Some(GapId(3)), ..Options::default() });
    check(&text);
    // 100 µs on each side of [760, 765): neither the first kernel nor its launch.
    let counts: BTreeMap<_, _> = summary.counts.tables().collect();
    assert_eq!(counts["gpu_ops"], (2, 2));
    assert_eq!(counts["gaps"], (3, 0));
    assert_eq!(counts["losses"], (0, 1));
    let none =
        export(&bundle, std::io::sink(), &Options { around_gap: Some(GapId(99)), ..Options::default() });
    assert!(matches!(none, Err(ExportError::NoGap { gap: 99, gaps: 3 })));
}

/// A thousand gaps between ops, each of another length.
pub fn many_gaps(dir: &Path) -> Bundle {
    let path = dir.join("x.gtrace");
    let mut writer = BundleWriter::create(&path, meta(), None).unwrap();
    let mut time = 1_000_000_000;
    for id in 0..1000 {
        let (busy, idle) = (5_000_000, 1_000 * (1 + (id * 7919) % 1000));
        writer.push(op(id, time, time + busy));
        writer.push(gtrace::store::schema::Gap {
            gap_id: GapId(id),
            device: gtrace::event::DeviceId(0),
            kind: "idle".into(),
            start_ns: MonoNs(time + busy),
            end_ns: MonoNs(time + busy + idle),
            prev_op: None,
            next_op: None,
            cause: "app.no_work".into(),
            stage: "other".into(),
            enabler: None,
            pid: None,
            tid: None,
        });
        time += busy + idle;
    }
    writer.finish(meta()).unwrap();
    Bundle::open(&path).unwrap()
}

#[test]
fn a_size_is_kept_and_the_longest_gaps_stay() {
    let dir = tempfile::tempdir().unwrap();
    let bundle = many_gaps(dir.path());
    let (whole, _) = trace(&bundle, &Options::default());
    for share in [2, 10, 50] {
        let limit = whole.len() as u64 / share;
        let (text, summary) = trace(&bundle, &Options { max_bytes: Some(limit), ..Options::default() });
        assert!(text.len() as u64 <= limit, "{share}");
        assert!(text.len() as u64 > limit / 2, "1/{share}: {} of {limit}", text.len());
        let events = check(&text);
        let mut lengths: Vec<i64> =
            events.iter().filter_map(|event| event["args"]["length_ns"].as_i64()).collect();
        lengths.sort_unstable();
        let kept = lengths.len() as i64;
        // Lengths are 1 … 1000 µs, each once: the longest are those above 1000 - kept.
        let longest: Vec<i64> = (1001 - kept..=1000).map(|us| us * 1000).collect();
        assert_eq!(lengths, longest);
        assert_eq!(summary.choice, format!("the {kept} longest gaps of 1000 and a margin around each"));
        let parsed: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(parsed["otherData"]["choice"], summary.choice.as_str());
    }
    let tiny = export(&bundle, std::io::sink(), &Options { max_bytes: Some(500), ..Options::default() });
    assert!(matches!(tiny, Err(ExportError::TooSmall { limit: 500, .. })));
}

/// Less and less is kept of the longest gap, but never nothing, and the trace says what was left out.
#[test]
fn where_nothing_fits_the_longest_gap_stays() {
    let dir = tempfile::tempdir().unwrap();
    let bundle = story::write(&dir.path().join("x.gtrace"));
    let mut choices = Vec::new();
    for limit in (1_500..30_000).rev().step_by(250) {
        let (text, summary) = trace(&bundle, &Options { max_bytes: Some(limit), ..Options::default() });
        let events = check(&text);
        assert!(summary.bytes <= limit);
        let gap =
            events.iter().find(|event| event["args"]["gap"] == 1 && event["args"]["mostly"].is_string());
        assert!(gap.is_some_and(|gap| gap["args"]["length_ns"] == 405_000), "{limit}: {text}");
        if choices.last() != Some(&summary.choice) {
            choices.push(summary.choice);
        }
    }
    insta::with_settings!({prepend_module_to_snapshot => false, omit_expression => true}, {
        insta::assert_snapshot!("chrome_choices", choices.join("\n"));
    });
    // The same where one gap is wanted.
    let options = Options { around_gap: Some(GapId(1)), max_bytes: Some(2_000), ..Options::default() };
    let (text, summary) = trace(&bundle, &options);
    check(&text);
    assert!(summary.choice.starts_with("gap 1 alone, with"), "{}", summary.choice);
}

/// Of a recording without gaps the beginning stays.
#[test]
fn without_gaps_the_beginning_stays() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.gtrace");
    let mut meta = meta();
    meta.ended_ns = Some(1_000_000_000);
    let mut writer = BundleWriter::create(&path, meta.clone(), None).unwrap();
    writer.append((0..1000).map(|id| op(id, 1 + id * 1_000_000, 1 + id * 1_000_000 + 500_000)).collect());
    writer.finish(meta).unwrap();
    let bundle = Bundle::open(&path).unwrap();
    let (whole, _) = trace(&bundle, &Options::default());
    let limit = whole.len() as u64 / 4;
    let (text, summary) = trace(&bundle, &Options { max_bytes: Some(limit), ..Options::default() });
    let events = check(&text);
    assert!(text.len() as u64 <= limit && text.len() as u64 > limit / 2);
    assert!(summary.choice.starts_with("the first ") && summary.choice.ends_with(": there are no gaps"));
    let mut kept: Vec<i64> = events.iter().filter_map(|event| event["args"]["op"].as_i64()).collect();
    kept.sort_unstable();
    assert!(kept.len() > 100 && kept == (0..kept.len() as i64).collect::<Vec<_>>());
}

/// Where not even one gap fits with all that surrounds it, what no chain runs through goes first.
#[test]
fn chains_stay_longest() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.gtrace");
    story::write(&path);
    let bundle = Bundle::open(&path).unwrap();
    // Calls of threads that no chain runs through, all the time.
    let noise: Vec<_> = (0..500)
        .map(|i| {
            let mut call = crate::samples::syscall(100 + i, story::BEGIN + i * 2_000);
            call.name = "noise".into();
            call
        })
        .collect();
    let mut calls = bundle.read().unwrap();
    calls.extend(noise);
    bundle.replace(calls).unwrap();
    let (whole, _) = trace(&bundle, &Options::default());
    assert!(whole.contains("noise"));
    let (text, summary) = trace(&bundle, &Options { max_bytes: Some(30_000), ..Options::default() });
    check(&text);
    assert!(text.len() <= 30_000 && !text.contains("noise") && text.contains("pread64"));
    assert_eq!(summary.choice, "everything, of threads and block requests only those on causal chains");
}

#[test]
fn the_file_is_whole_or_not_there() {
    let dir = tempfile::tempdir().unwrap();
    let bundle = story::write(&dir.path().join("x.gtrace"));
    let file = dir.path().join("t.json");
    let tiny = Options { max_bytes: Some(500), ..Options::default() };
    assert!(export_to_file(&bundle, &file, &tiny).is_err());
    let names = || std::fs::read_dir(dir.path()).unwrap().count();
    assert_eq!(names(), 1);
    export_to_file(&bundle, &file, &Options::default()).unwrap();
    assert_eq!(names(), 2);
    check(&std::fs::read_to_string(&file).unwrap());
    let error = export_to_file(&bundle, Path::new("/nonexistent/t.json"), &Options::default()).unwrap_err();
    assert!(error.to_string().starts_with("cannot write /nonexistent/t.json: "), "{error}");
}

/// Fills a table with rows that may hold anything.
pub struct Fill<'a>(pub &'a mut BundleWriter, pub Words<'a>, pub usize);

impl TableVisitor for Fill<'_> {
    fn visit<T: Table>(&mut self) {
        self.0.append(rows::<T>(self.2, &mut self.1));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, max_shrink_iters: 100, ..ProptestConfig::default() })]

    /// Whatever the tables hold, the trace is JSON, and its slices nest.
    #[test]
    fn any_bundle_makes_a_trace(words in prop::collection::vec(any::<u64>(), 1..300), count in 0_usize..30) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.gtrace");
        let mut writer = BundleWriter::create(&path, meta(), None).unwrap();
        visit_tables(&mut Fill(&mut writer, Words::new(&words), count));
        writer.finish(meta()).unwrap();
        let bundle = Bundle::open(&path).unwrap();
        check(&trace(&bundle, &Options::default()).0);
    }
}
