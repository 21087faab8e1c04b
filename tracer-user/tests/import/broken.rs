//! Traces with something wrong: a clear error or a counted loss, never a panic and never a silent zero.

use gtrace::event::{DurationNs, MonoNs};
use gtrace::import::{ImportError, import_file};
use gtrace::store::Bundle;
use gtrace::store::schema::{Gap, GapSegment, GpuOp, Loss, Marker, Process};
use proptest::prelude::*;

use super::small::{document, events, export, gzip, import};

fn whole() -> String {
    document(&events())
}

/// The small trace with this text instead of that.
fn with(old: &str, new: &str) -> String {
    let text = whole();
    assert!(text.contains(old), "{old}");
    text.replacen(old, new, 1)
}

#[test]
fn a_whole_one_is_exact_and_attributed() {
    let came = import("t.json", whole().as_bytes()).unwrap();
    assert_eq!(came.imported.refused, []);
    assert_eq!((came.imported.counts.ops, came.imported.counts.calls), (2, 2));
    assert_eq!(came.imported.meta.gpus[0].name, "GPU X");
    let ops = came.bundle.read::<GpuOp>().unwrap();
    assert_eq!((ops[0].start_ns, ops[0].end_ns), (MonoNs(1_620_125), MonoNs(1_670_375)));
    assert_eq!((ops[0].pid.0, ops[0].grid_x, ops[0].block_x), (42, Some(8), Some(128)));
    assert_eq!(came.bundle.read::<Process>().unwrap()[0].comm.as_str(), "python3");
    let segments = came.bundle.read::<GapSegment>().unwrap();
    let found: Vec<(&str, &str, DurationNs)> = segments
        .iter()
        .map(|s| (s.cause.as_str(), s.object.as_deref().unwrap_or_default(), s.end_ns - s.start_ns))
        .collect();
    let loader = "enumerate(DataLoader)#_Iter.__next__";
    assert_eq!(
        found,
        [
            ("unknown.not_traced", "python3", DurationNs(429_625)),
            ("host.data_loader", loader, DurationNs(400_000)),
            ("unknown.not_traced", "python3", DurationNs(20_250)),
            ("host.operator", "aten::mm", DurationNs(79_750)),
            ("cuda.launch", "cudaLaunchKernel", DurationNs(10_000)),
            ("gpu.submit_latency", "gemm<float, 4>", DurationNs(10_125)),
        ]
    );
}

#[test]
fn what_real_files_do_is_no_loss() {
    for (what, text) in [
        ("a bare list", format!("[{}]", events().join(","))),
        ("a byte order mark", format!("\u{feff}{}", whole())),
        ("an escape that does not exist", with("gemm<float, 4>", r"gemm\C:\Windows\x")),
        ("a raw line break in a name", with("aten::mm", "aten\n::mm")),
        (
            "old categories",
            whole().replace("\"kernel\"", "\"Kernel\"").replace("\"cuda_runtime\"", "\"Runtime\""),
        ),
        ("numbers in quotes", with("\"tid\": 42", "\"tid\": \"42\"")),
        ("a comma too many", with("\n],\n\"traceName\"", ",\n],\n\"traceName\"")),
        (
            "no device properties",
            with("\"deviceProperties\": [{\"id\": 0, \"name\": \"GPU X\", \"numSms\": 80}],", ""),
        ),
        (
            "a header value of another shape",
            with("[{\"id\": 0, \"name\": \"GPU X\", \"numSms\": 80}]", "\"none\""),
        ),
    ] {
        let came = import("t.json", text.as_bytes()).unwrap();
        assert_eq!(came.imported.refused, [], "{what}");
        assert_eq!(came.imported.counts.ops, 2, "{what}");
    }
    let came = import("t.json", &with("gemm<float, 4>", "gemm\u{1}").into_bytes()).unwrap();
    assert_eq!(came.bundle.read::<GpuOp>().unwrap()[0].name.as_str(), "gemm\u{1}");
    let mut bytes = whole().into_bytes();
    let at = bytes.windows(4).position(|four| four == b"gemm").unwrap();
    bytes[at] = 0xff;
    let came = import("t.json", &bytes).unwrap();
    assert_eq!(came.bundle.read::<GpuOp>().unwrap()[0].name.as_str(), "\u{fffd}emm<float, 4>");
}

#[test]
fn a_cut_text_keeps_what_came_before_and_says_that_the_rest_is_unknown() {
    let text = whole();
    let end = text.rfind("\"ph\": \"s\"").unwrap();
    let came = import("t.json", &text.as_bytes()[..end]).unwrap();
    assert!(came.imported.cut.is_some());
    assert_eq!((came.imported.counts.ops, came.refused("import.cut")), (2, 1));
    let segments = came.bundle.read::<GapSegment>().unwrap();
    assert!(!segments.is_empty());
    assert!(segments.iter().all(|segment| segment.cause.as_str() == "unknown.lost_events"), "{segments:?}");
}

#[test]
fn a_cut_or_damaged_compressed_file_is_a_counted_loss() {
    let many: Vec<String> = (0..500).flat_map(|_| events()).collect();
    let packed = gzip(document(&many).as_bytes());
    let came = import("t.json.gz", &packed[..packed.len() / 2]).unwrap();
    assert!(came.imported.cut.is_some() && came.imported.counts.ops > 0);
    assert_eq!(came.refused("import.cut"), 1);
    // The checksum at the end is wrong: something in it may be, too.
    let mut wrong = packed.clone();
    let last = wrong.len() - 6;
    wrong[last] ^= 0x55;
    let came = import("t.json.gz", &wrong).unwrap();
    assert!(
        came.imported.cut.as_deref().is_some_and(|why| why.contains("reading it failed")),
        "{:?}",
        came.imported.cut
    );
    let whole = import("t.json.gz", &packed).unwrap();
    assert!(whole.imported.cut.is_none());
}

#[test]
fn wrong_types_and_missing_members_are_refused_by_kind() {
    for (what, text, source) in [
        ("a start that is no number", with("\"ts\": 1620.125", "\"ts\": \"soon\""), "import.invalid"),
        ("a length that is a list", with("\"dur\": 50.25", "\"dur\": [50]"), "import.invalid"),
        ("no length", with("\"dur\": 50.25, ", ""), "import.invalid"),
        ("no device", with("\"device\": 0, ", ""), "import.invalid"),
        ("a negative length", with("\"dur\": 50.25", "\"dur\": -50.25"), "import.invalid"),
        ("a start before time", with("\"ts\": 1620.125", "\"ts\": -3"), "import.invalid"),
        ("a start out of range", with("\"ts\": 1620.125", "\"ts\": 1e40"), "import.invalid"),
        ("a call of negative length", with("\"dur\": 10,", "\"dur\": -10,"), "import.host"),
        ("an operator without a start", with("\"ts\": 1520.250, ", ""), "import.host"),
        (
            "an operator without a thread",
            with("\"tid\": 42, \"ts\": 1520", "\"tid\": {}, \"ts\": 1520"),
            "import.host",
        ),
        ("a quote in a name", with("aten::mm", "aten\"::mm"), "import.malformed"),
        (
            "an event that is a number",
            with("\"traceEvents\": [", "\"traceEvents\": [17,"),
            "import.malformed",
        ),
        (
            "an event without a phase",
            with("{\"ph\": \"X\", \"cat\": \"cpu_op\"", "{\"cat\": \"cpu_op\""),
            "import.host",
        ),
    ] {
        let came = import("t.json", text.as_bytes()).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(came.refused(source), 1, "{what}: {:?}", came.imported.refused);
        assert_eq!(came.imported.refused_records(), 1, "{what}: {:?}", came.imported.refused);
        let losses = came.bundle.read::<Loss>().unwrap();
        assert_eq!(losses.iter().map(|loss| loss.count).sum::<i64>(), 1, "{what}");
        assert_eq!(came.bundle.meta().losses.get(source), Some(&1), "{what}");
    }
}

#[test]
fn the_time_of_an_op_that_was_refused_is_unknown() {
    // A third kernel in the middle of the gap, of negative length.
    let mut events = events();
    let bad = events[4].replace("1620.125", "2300").replace("\"dur\": 50.25", "\"dur\": -100");
    events.push(bad);
    let came = import("t.json", document(&events).as_bytes()).unwrap();
    let gap = &came.bundle.read::<Gap>().unwrap()[0];
    let unknown: i64 = came
        .bundle
        .read::<GapSegment>()
        .unwrap()
        .iter()
        .filter(|s| s.gap_id == gap.gap_id && s.cause.as_str() == "unknown.invalid_record")
        .map(|s| (s.end_ns - s.start_ns).0)
        .sum();
    assert_eq!(unknown, 100_000);
}

#[test]
fn ids_that_were_used_before_are_counted() {
    let came = import("t.json", with("\"correlation\": 20}", "\"correlation\": 10}").as_bytes()).unwrap();
    assert_eq!(came.refused("import.duplicate"), 1, "{:?}", came.imported.refused);
    assert_eq!(came.imported.counts.calls, 2);
}

#[test]
fn what_is_no_trace_is_said() {
    let error = |name: &str, bytes: &[u8]| import(name, bytes).err().map(|error| error.to_string()).unwrap();
    assert!(error("t.json", b"").contains("it is empty"), "{}", error("t.json", b""));
    assert!(error("t.json", b"   \n").contains("it is empty"));
    assert!(error("t.json", b"hello").contains("it is no trace"));
    assert!(error("t.json", &gzip(b"")).contains("it is empty"));
    assert!(error("t.json", b"\x1f\x8b\x08garbage").contains("cannot read"));
    assert!(error("t.json", b"{\"traceEvents\": []}").contains("no event of it could be used"));
    assert!(error("t.json", b"[]").contains("no event of it could be used"));
    assert!(error("t.json", b"{\"a\": {\"b\": 1}}").contains("no event of it could be used"));
    let all_bad = document(&["{\"ph\": \"X\", \"cat\": \"kernel\", \"ts\": \"x\", \"dur\": 1}".to_owned()]);
    let why = error("t.json", all_bad.as_bytes());
    assert!(why.contains("no event of it could be used") && why.contains("1 × kernel: no start"), "{why}");
    let folder = tempfile::tempdir().unwrap();
    let missing = import_file(&folder.path().join("none.json"), &folder.path().join("o"));
    assert!(matches!(missing, Err(ImportError::Unreadable { .. })));
    let itself = import_file(folder.path(), &folder.path().join("o"));
    assert!(matches!(itself, Err(ImportError::Unreadable { .. })));
    std::fs::create_dir(folder.path().join("there")).unwrap();
    let file = folder.path().join("t.json");
    std::fs::write(&file, whole()).unwrap();
    let there = import_file(&file, &folder.path().join("there"));
    assert!(matches!(there, Err(ImportError::Store(_))));
    assert!(folder.path().join("there").exists(), "what was there before is left alone");
}

#[test]
fn a_trace_of_the_host_alone_says_so() {
    let host: Vec<String> = events().into_iter().filter(|event| !event.contains("\"kernel\"")).collect();
    let came = import("t.json", document(&host).as_bytes()).unwrap();
    assert!(came.imported.meta.gpu_missing.is_some());
    assert_eq!(came.bundle.read::<Marker>().unwrap().len(), 4);
    assert!(came.bundle.read::<Gap>().unwrap().is_empty());
}

#[test]
fn exports_of_nsight_systems_whole_and_broken() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = std::fs::read(export(folder.path())).unwrap();
    for (name, bytes) in [("t.sqlite", bytes.clone()), ("t.sqlite.gz", gzip(&bytes))] {
        let came = import(name, &bytes).unwrap();
        assert_eq!(came.imported.refused, [], "{name}");
        let segments = came.bundle.read::<GapSegment>().unwrap();
        let found: Vec<(&str, &str, i64)> = segments
            .iter()
            .map(|s| (s.cause.as_str(), s.object.as_deref().unwrap_or_default(), (s.end_ns - s.start_ns).0))
            .collect();
        assert_eq!(
            found,
            [
                ("unknown.not_traced", "", 500),
                ("host.os_call", "poll", 4_500),
                ("unknown.not_traced", "", 1_000),
                ("cuda.launch", "cudaLaunchKernel", 100),
                ("gpu.submit_latency", "gemm<float>", 900),
            ],
            "{name}"
        );
    }
    let edit = |sql: &str| {
        let folder = tempfile::tempdir().unwrap();
        let path = export(folder.path());
        rusqlite::Connection::open(&path).unwrap().execute_batch(sql).unwrap();
        import("t.sqlite", &std::fs::read(path).unwrap())
    };
    let came = edit("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET end = 500 WHERE correlationId = 5").unwrap();
    assert_eq!((came.refused("import.invalid"), came.imported.counts.ops), (1, 1));
    let came = edit("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET deviceId = 'x' WHERE correlationId = 5").unwrap();
    assert_eq!(came.refused("import.invalid"), 1);
    let came = edit("UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET end = 1 WHERE correlationId = 5").unwrap();
    assert_eq!(came.refused("import.host"), 1);
    let came = edit("DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL").unwrap();
    assert!(came.imported.meta.gpu_missing.is_some());
    // A damaged table of names: what has none is there all the same.
    let other = tempfile::tempdir().unwrap();
    let mut nameless = std::fs::read(export(other.path())).unwrap();
    let at = nameless.windows(11).position(|bytes| bytes == b"gemm<float>").expect("a kernel's name");
    let page = at / 4096 * 4096;
    nameless[page] = 0xff;
    let came = import("t.sqlite", &nameless).unwrap();
    assert!(
        came.imported.cut.as_deref().is_some_and(|cut| cut.contains("StringIds")),
        "{:?}",
        came.imported.cut
    );
    assert_eq!(came.imported.counts.ops, 2);
    let segments = came.bundle.read::<GapSegment>().unwrap();
    assert!(segments.iter().all(|segment| segment.cause.as_str() == "unknown.lost_events"), "{segments:?}");
    let no_strings = edit("DROP TABLE StringIds").err().unwrap().to_string();
    assert!(no_strings.contains("no export of Nsight Systems"), "{no_strings}");
    let header_only = import("t.sqlite", &bytes[..100]).err().unwrap().to_string();
    assert!(header_only.contains("cannot be read") || header_only.contains("no export"), "{header_only}");
    // Pages missing at the end, and a compressed file that ends in the middle.
    for cut in [import("t.sqlite", &bytes[..bytes.len() / 2]), import("t.sqlite.gz", &gzip(&bytes)[..400])] {
        match cut {
            Ok(came) => assert!(came.imported.cut.is_some()),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever bytes change: no panic, and ops that are gone were counted or the file was refused.
    #[test]
    fn changed_bytes_never_vanish(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        end in prop::option::weighted(0.3, any::<prop::sample::Index>()),
        packed in any::<bool>(),
    ) {
        let mut bytes = whole().into_bytes();
        if packed {
            bytes = gzip(&bytes);
        }
        for (place, byte) in &changes {
            let place = place.index(bytes.len());
            bytes[place] = *byte;
        }
        if let Some(end) = end {
            bytes.truncate(end.index(bytes.len()));
        }
        // An error is an answer, and leaves nothing behind: `import` sees to that.
        if let Ok(came) = import("t.json", &bytes) {
            let again = Bundle::open(came.bundle.path()).unwrap();
            prop_assert_eq!(&again.meta().mode, "import");
        }
    }

    #[test]
    fn changed_databases_do_not_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
        end in prop::option::weighted(0.3, any::<prop::sample::Index>()),
    ) {
        static WHOLE: std::sync::LazyLock<Vec<u8>> = std::sync::LazyLock::new(|| {
            let folder = tempfile::tempdir().unwrap();
            std::fs::read(export(folder.path())).unwrap()
        });
        let mut bytes = WHOLE.clone();
        for (place, byte) in &changes {
            // The magic at the beginning stays: what lacks it is text.
            let place = 16 + place.index(bytes.len() - 16);
            bytes[place] = *byte;
        }
        if let Some(end) = end {
            bytes.truncate(16 + end.index(bytes.len() - 16));
        }
        let _ = import("t.sqlite", &bytes);
    }
}
