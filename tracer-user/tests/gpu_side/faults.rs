//! CUPTI's known defects: counted, said, never taken for work of the device.

use gtrace::record::gpu::GpuSide;

use super::target::{Rows, Target, drain_until, find, record};

pub const TESTS: &[(&str, fn())] = &[
    ("faults::untimed", untimed),
    ("faults::end_before_start", end_before_start),
    ("faults::before_its_launch", before_its_launch),
    ("faults::duplicated", duplicated),
    ("faults::silent", silent),
    ("faults::unknown_kinds", unknown_kinds),
    ("faults::foreign_buffers", foreign_buffers),
    ("faults::dropped", dropped),
    ("faults::busy", busy),
    ("faults::late_graphs", late_graphs),
    ("faults::errors", errors),
];

const KERNELS: i64 = 400;
const WORK: i64 = 480;

fn start(cuda: &str, variables: &[(&str, &str)]) -> Target {
    Target::start("steps:40", cuda, &[&[("GTRACE_START", "1")], variables].concat())
}

fn untimed() {
    let (_, rows) = record(&mut start("12.4", &[("SIMCUDA_ZERO_AFTER", "100")]));
    assert_eq!(rows.ops.len(), 100);
    assert_eq!(rows.lost("cupti.invalid"), WORK - 100);
    assert!(
        rows.losses.iter().all(|loss| loss.reason.ends_with("start and end are 0")),
        "{:?}",
        rows.losses[0]
    );
    // Each lies between its launch and the flush that brought it: not the whole recording.
    for loss in &rows.losses {
        assert!(loss.end_ns.0 - loss.start_ns.0 < 2_000_000_000, "{loss:?}");
        assert!(
            rows.calls.iter().any(|call| call.start_ns == loss.start_ns),
            "{loss:?} begins with its launch"
        );
    }
}

fn end_before_start() {
    let (_, rows) = record(&mut start("13.0", &[("SIMCUDA_END_BEFORE_START", "10")]));
    assert_eq!((rows.ops.len() as i64, rows.lost("cupti.invalid")), (WORK - WORK / 10, WORK / 10));
}

fn before_its_launch() {
    let (_, rows) = record(&mut start("13.0", &[("SIMCUDA_START_BEFORE_LAUNCH", "10")]));
    assert_eq!((rows.ops.len() as i64, rows.lost("cupti.invalid")), (WORK - WORK / 10, WORK / 10));
    assert!(rows.losses.iter().all(|loss| loss.reason.ends_with("starts before its launch")));
}

fn duplicated() {
    let (_, rows) = record(&mut start("13.0", &[("SIMCUDA_DUPLICATES", "10")]));
    assert_eq!((rows.ops.len() as i64, rows.lost("cupti.invalid")), (WORK, WORK / 10));
    assert!(
        rows.losses.iter().all(|loss| loss.reason.ends_with("came twice") && loss.start_ns == loss.end_ns),
        "{:?}",
        rows.losses
    );
}

/// Calls go on, kernels do not come: the time from the last kernel on is unknown.
fn silent() {
    let target = Target::start("loop", "13.0", &[("GTRACE_START", "1"), ("SIMCUDA_SILENT_AFTER", "500")]);
    let (mut side, mut rows) = (GpuSide::new(), Rows::default());
    find(&mut side, &target);
    assert!(drain_until(&mut side, &mut rows, 30, |_, rows| rows.lost("cupti.silent") > 0));
    assert!(rows.ops.len() <= 500 && rows.ops.len() > 400, "{} ops", rows.ops.len());
    let last = rows.ops.iter().map(|op| op.end_ns).max().unwrap();
    let silent = rows.losses.iter().find(|loss| &*loss.source == "cupti.silent").unwrap();
    assert!(silent.count > 32 && silent.end_ns.0 - silent.start_ns.0 > 1_500_000_000, "{silent:?}");
    assert!((silent.start_ns.0 - last.0).abs() < 2_000_000_000, "{silent:?} begins about {last:?}");
}

fn unknown_kinds() {
    let (_, rows) = record(&mut start("12.4", &[("SIMCUDA_UNKNOWN_KINDS", "3")]));
    assert_eq!(rows.of_kind("kernel") as i64, KERNELS);
    assert!(rows.lost("cupti.unknown_kind") > 100, "{:?}", rows.losses);
    for loss in &rows.losses {
        assert!(loss.reason.ends_with("the last of kind 250") && loss.start_ns == loss.end_ns, "{loss:?}");
    }
}

fn foreign_buffers() {
    let (_, rows) = record(&mut start("13.0", &[("SIMCUDA_FOREIGN_BUFFERS", "1")]));
    assert_eq!(rows.of_kind("kernel") as i64, KERNELS);
    assert!(rows.lost("cupti.foreign") > 0);
}

fn dropped() {
    let (_, rows) = record(&mut start("12.4", &[("SIMCUDA_DROP_RECORDS", "10")]));
    let kept = rows.ops.len() + rows.calls.len() + rows.syncs.len() + rows.overheads.len();
    let lost = rows.lost("cupti.dropped");
    assert!(lost > 0 && (lost as usize) * 8 < kept && (lost as usize) * 12 > kept, "{lost} of {kept}");
}

fn busy() {
    for cuda in ["12.4", "13.3"] {
        let (side, rows) = record(&mut start(cuda, &[("SIMCUDA_SUBSCRIBER_BUSY", "another-tool")]));
        let refused = side.processes()[0].refused.clone().unwrap();
        assert!(refused.contains("39"), "{refused}");
        assert_eq!(refused.contains("another-tool"), cuda == "13.3", "{refused}");
        assert!(rows.ops.is_empty() && !side.attached());
    }
}

/// A process that replays graphs made before CUPTI came may crash under one before CUDA 12.6.
fn late_graphs() {
    for (cuda, collects) in [("12.4", false), ("13.0", true)] {
        let target = Target::start("steps:4000", cuda, &[]);
        let (mut side, mut rows) = (GpuSide::new(), Rows::default());
        side.note_graph_launches(std::iter::once((target.pid(), 7)).collect());
        find(&mut side, &target);
        let decided = |side: &GpuSide, rows: &Rows| {
            !rows.ops.is_empty() || side.processes().iter().any(|process| process.refused.is_some())
        };
        assert!(drain_until(&mut side, &mut rows, 20, decided), "{cuda}: neither records nor a reason");
        let refused = side.processes()[0].refused.clone();
        assert_eq!(refused.is_none(), collects, "{cuda}: {refused:?}");
        assert!(refused.is_none_or(|reason| reason.contains("replays CUDA graphs (7 ")));
    }
}

fn errors() {
    for code in ["15", "999"] {
        let (side, rows) = record(&mut start("13.0", &[("SIMCUDA_CUPTI_ERROR", code)]));
        let refused = side.processes()[0].refused.clone().unwrap();
        assert!(refused.contains(code), "{refused}");
        assert!(rows.ops.is_empty());
    }
}
