//! The Perfetto trace of a bundle.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use gtrace::event::GapId;
use gtrace::export::{Format, Options, Summary, export};
use gtrace::store::schema::visit_tables;
use gtrace::store::{Bundle, BundleWriter};
use proptest::prelude::*;

use crate::arbitrary::Words;
use crate::chrome::{Fill, many_gaps};
use crate::samples::meta;
use crate::story;
use crate::wire::Fields;

fn trace(bundle: &Bundle, options: &Options) -> (Vec<u8>, Summary) {
    let mut bytes = Vec::new();
    let options = Options { format: Format::Perfetto, ..*options };
    let summary = export(bundle, &mut bytes, &options).unwrap();
    assert_eq!(summary.bytes, bytes.len() as u64);
    (bytes, summary)
}

/// Longest string: 1024 characters, each made visible as `\u{10ffff}` at most, and the sign that it was cut.
const LONGEST: usize = 1024 * 10 + 3;

/// What is known of a track while a trace is read.
#[derive(Default)]
struct Track {
    counter: bool,
    /// Beginnings of the slices around the current time.
    open: Vec<u64>,
    time: u64,
}

/// Checks what every trace must be, with a reader that knows nothing of the writer; returns how many slices it has.
fn check(bytes: &[u8]) -> usize {
    let whole = Fields::read(bytes);
    let mut tracks: BTreeMap<u64, Track> = BTreeMap::new();
    // By the field of InternedData, and by the field that a message names it with.
    let mut interned: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
    let mut flows: BTreeMap<u64, Vec<(u64, bool)>> = BTreeMap::new();
    let mut slices = 0;
    for packet in whole.all(1) {
        let packet = packet.message();
        assert_eq!(packet.one(10).unwrap().number(), 1, "one sequence");
        if let Some(data) = packet.one(12) {
            for kind in [1, 2, 3, 29] {
                for entry in data.message().all(kind) {
                    let (id, text) = (entry.message().one(1).unwrap().number(), entry.message().one(2));
                    assert!(id > 0 && interned.entry(kind).or_default().insert(id), "{kind} {id} twice");
                    assert!(plain(text.unwrap().text()));
                }
            }
        }
        if let Some(descriptor) = packet.one(60) {
            let descriptor = descriptor.message();
            let uuid = descriptor.one(1).unwrap().number();
            if let Some(parent) = descriptor.one(5) {
                assert!(tracks.contains_key(&parent.number()), "{uuid} before its parent");
            }
            let named =
                descriptor.one(2).is_some() || descriptor.one(3).is_some() || descriptor.one(4).is_some();
            assert!(named || uuid == 0);
            let track = Track { counter: descriptor.one(8).is_some(), ..Track::default() };
            assert!(tracks.insert(uuid, track).is_none(), "{uuid} twice");
        }
        let Some(event) = packet.one(11) else { continue };
        let event = event.message();
        assert_eq!(packet.one(13).unwrap().number(), 2, "it needs what came before");
        let time = packet.one(8).unwrap().number();
        let track = tracks.get_mut(&event.one(11).unwrap().number()).expect("a track before its events");
        for (field, kind) in [(10, 2), (3, 1)] {
            if let Some(id) = event.one(field) {
                assert!(interned[&kind].contains(&id.number()), "{field}: {id:?} is not known");
            }
        }
        event.all(4).iter().for_each(|annotation| annotated(&annotation.message(), &interned));
        for flow in event.all(47) {
            flows.entry(flow.number()).or_default().push((time, false));
        }
        for flow in event.all(48) {
            flows.entry(flow.number()).or_default().push((time, true));
        }
        let kind = event.one(9).unwrap().number();
        assert_eq!(track.counter, kind == 4);
        match kind {
            // Slices of a track are in order of time, and each ends before or with the one around it.
            1 => {
                assert!(event.one(10).is_some() != event.one(23).is_some());
                assert!(time >= track.time);
                track.time = time;
                track.open.push(time);
                slices += 1;
            }
            2 => {
                assert!(time >= track.time);
                track.time = time;
                assert!(track.open.pop().expect("a slice that ends has begun") <= time);
            }
            // Arrows; what the trace says of itself.
            3 => assert!(event.one(23).is_none()),
            4 => assert!(event.one(30).unwrap().number() as i64 >= 0),
            other => panic!("{other}"),
        }
    }
    assert!(tracks.values().all(|track| track.open.is_empty()), "every slice ends");
    for (id, ends) in flows {
        // A launch and its op share an id; the other arrows lead from one moment to another one.
        assert!(id >> 63 == 1 || (ends.len() == 2 && !ends[0].1 && ends[1].1), "{id}: {ends:?}");
    }
    slices
}

fn annotated(annotation: &Fields<'_>, interned: &BTreeMap<u64, BTreeSet<u64>>) {
    let named = annotation.one(1).map(|id| interned[&3].contains(&id.number()));
    assert!(named.unwrap_or_else(|| plain(annotation.one(10).unwrap().text())));
    annotation.all(11).iter().for_each(|entry| annotated(&entry.message(), interned));
    let values: Vec<Fields<'_>> = annotation.all(12).iter().map(|value| value.message()).collect();
    for value in values.iter().chain([annotation]) {
        assert!(value.one(17).is_none_or(|id| interned[&29].contains(&id.number())));
        assert!(value.one(6).is_none_or(|text| plain(text.text())));
    }
}

fn plain(text: &str) -> bool {
    text.len() <= LONGEST
        && !text
            .chars()
            .any(|c| c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'))
}

#[test]
fn a_size_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let bundle = many_gaps(dir.path());
    let (whole, _) = trace(&bundle, &Options::default());
    assert_eq!(check(&whole), 2000);
    for share in [2, 10, 50] {
        let limit = whole.len() as u64 / share;
        let (bytes, summary) = trace(&bundle, &Options { max_bytes: Some(limit), ..Options::default() });
        check(&bytes);
        assert!(summary.bytes <= limit && summary.bytes > limit / 2, "1/{share}: {}", summary.bytes);
        assert!(
            summary.choice.ends_with(" longest gaps of 1000 and a margin around each"),
            "{}",
            summary.choice
        );
    }
    let around = trace(&bundle, &Options { around_gap: Some(GapId(7)), ..Options::default() });
    // The gap and the ops before and after it.
    assert_eq!(check(&around.0), 3);
}

/// The interpreter that has the packages of `cargo xtask setup`.
fn python() -> PathBuf {
    let inside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/venv/bin/python3");
    match std::env::var_os("GTRACE_TEST_PYTHON") {
        Some(python) => python.into(),
        None if inside.exists() => inside,
        None => "python3".into(),
    }
}

/// The official descriptors' reading of the trace is what the tables hold.
#[test]
fn the_official_package_reads_what_the_tables_hold() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.gtrace");
    let bundle = story::write(&path);
    let file = dir.path().join("x.perfetto-trace");
    std::fs::write(&file, trace(&bundle, &Options::default()).0).unwrap();
    let output = Command::new(python())
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/store/read_perfetto.py"))
        .args([&path, &file])
        .output()
        .expect("python3 is needed for this test; `cargo xtask setup` installs it");
    let said =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    // `cargo xtask test` names its interpreter, and setup has put everything there.
    if output.status.code() == Some(77) && std::env::var_os("GTRACE_TEST_PYTHON").is_none() {
        eprintln!("SKIPPED the_official_package_reads_what_the_tables_hold: {said}");
        return;
    }
    assert!(output.status.success(), "{said}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, max_shrink_iters: 100, ..ProptestConfig::default() })]

    /// Whatever the tables hold, the trace can be read, and its slices nest.
    #[test]
    fn any_bundle_makes_a_trace(
        words in prop::collection::vec(any::<u64>(), 1..300),
        count in 0_usize..30,
        limit in prop::option::of(2_000_u64..60_000),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.gtrace");
        let mut writer = BundleWriter::create(&path, meta(), None).unwrap();
        visit_tables(&mut Fill(&mut writer, Words::new(&words), count));
        writer.finish(meta()).unwrap();
        let bundle = Bundle::open(&path).unwrap();
        check(&trace(&bundle, &Options::default()).0);
        let mut bytes = Vec::new();
        let options = Options { format: Format::Perfetto, max_bytes: limit, ..Options::default() };
        if let Ok(summary) = export(&bundle, &mut bytes, &options) {
            check(&bytes);
            prop_assert!(limit.is_none_or(|limit| summary.bytes <= limit));
        }
    }
}
