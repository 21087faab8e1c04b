//! Fork, kill, exit; a full ring; recorders that come, die, and come again.

use std::time::{Duration, Instant};

use gtrace::event::Pid;
use gtrace::record::gpu::GpuSide;

use super::target::{Rows, Target, drain_until, find, record};

pub const TESTS: &[(&str, fn())] = &[
    ("life::exit_loses_nothing", exit_loses_nothing),
    ("life::forked_child_is_disarmed", forked_child_is_disarmed),
    ("life::killed_client", killed_client),
    ("life::full_ring", full_ring),
    ("life::recorder_dies_and_another_comes", recorder_dies_and_another_comes),
    ("life::two_recorders", two_recorders),
    ("life::no_recorder", no_recorder),
];

/// The last flush is at exit, a moment after the last kernel.
fn exit_loses_nothing() {
    for cuda in ["12.4", "13.0"] {
        let (_, rows) = record(&mut Target::start("exit_at_once:200", cuda, &[("GTRACE_START", "1")]));
        assert_eq!((rows.of_kind("kernel"), rows.losses.as_slice()), (200, [].as_slice()), "{cuda}");
    }
}

fn forked_child_is_disarmed() {
    let mut target = Target::start("fork:20", "12.4", &[("GTRACE_START", "1")]);
    let (mut side, mut rows) = (GpuSide::new(), Rows::default());
    find(&mut side, &target);
    let pid = target.pid();
    let mut children = Vec::new();
    assert!(drain_until(&mut side, &mut rows, 30, |_, _| {
        let found = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        children.extend(found.split_whitespace().map(|child| Pid(child.parse().unwrap())));
        target.child.try_wait().unwrap().is_some()
    }));
    side.finish(Duration::from_secs(2), &mut |row| rows.take(row));
    assert!(target.child.wait().unwrap().success(), "parent and child ended well");
    assert_eq!((rows.of_kind("kernel"), rows.losses.as_slice()), (400, [].as_slice()));
    assert!(!children.is_empty());
    assert_eq!(side.processes().len(), 1, "the ring that the child has open is the parent's");
    let lines = target.lines_to_end();
    let waited = lines
        .iter()
        .find_map(|line| line.strip_prefix("child ")?.split(' ').nth(1)?.parse::<i64>().ok())
        .unwrap();
    assert!(waited < 900_000_000, "the child's exit waited for a flush of nobody: {waited} ns");
}

/// What was complete is there, what CUPTI still held is said to be lost, and others are recorded on.
fn killed_client() {
    let mut target = Target::start("loop", "13.0", &[("GTRACE_START", "1")]);
    let (mut side, mut rows) = (GpuSide::new(), Rows::default());
    find(&mut side, &target);
    assert!(drain_until(&mut side, &mut rows, 20, |_, rows| rows.of_kind("kernel") > 500));
    target.child.kill().unwrap();
    target.child.wait().unwrap();
    let killed = Instant::now();
    assert!(drain_until(&mut side, &mut rows, 5, |_, rows| rows.lost("cupti.unflushed") > 0));
    assert!(killed.elapsed() < Duration::from_secs(1));
    let last = rows.losses.last().unwrap();
    assert!(last.end_ns.0 - last.start_ns.0 < 2_000_000_000, "{last:?}");
    assert_eq!(rows.losses.len(), 1, "{:?}", rows.losses);
    // The side goes on with others.
    let second = Target::start("loop", "12.4", &[("GTRACE_START", "1")]);
    second.expect("ready");
    side.scan([second.pid()]);
    let recorded = drain_until(&mut side, &mut rows, 20, |side, _| {
        side.processes().iter().any(|process| process.pid == second.pid().0 && process.records > 500)
    });
    assert!(recorded, "{:?}", side.processes());
}

/// A recorder that does not read fast enough: what has no room is dropped and counted by class, and all adds up.
fn full_ring() {
    let ring = [("GTRACE_START", "1"), ("GTRACE_RING_BYTES", "65536")];
    let mut target = Target::start("steps_then_line:200", "13.0", &ring);
    let (mut side, mut rows) = (GpuSide::new(), Rows::default());
    find(&mut side, &target);
    let mut steps = 0;
    while steps < 200 {
        steps += usize::from(target.line().expect("it has not ended").starts_with("step "));
    }
    std::thread::sleep(Duration::from_millis(300));
    target.go_on();
    assert!(target.child.wait().unwrap().success());
    side.finish(Duration::from_secs(1), &mut |row| rows.take(row));
    let lost = |what: &str| -> usize {
        let of_class =
            rows.losses.iter().filter(|loss| &*loss.source == "shim.ring" && loss.reason.starts_with(what));
        of_class.map(|loss| loss.count as usize).sum()
    };
    assert!(lost("GPU work") > 0, "{:?}", rows.losses);
    assert_eq!(rows.ops.len() + lost("GPU work"), 200 * 12, "{:?}", rows.losses);
    assert_eq!(
        rows.syncs.iter().filter(|sync| &*sync.kind == "stream").count() + lost("synchronisations"),
        200
    );
    assert!(rows.losses.iter().all(|loss| loss.start_ns < loss.end_ns));
}

fn recorder_dies_and_another_comes() {
    let target = Target::start("loop", "12.4", &[("GTRACE_START", "1")]);
    let (mut first, mut rows) = (GpuSide::new(), Rows::default());
    find(&mut first, &target);
    assert!(drain_until(&mut first, &mut rows, 20, |_, rows| rows.of_kind("kernel") > 100));
    // As if killed: no release, no more beats, memory stays mapped.
    std::mem::forget(first);
    let _ = target.lines_by_now();
    std::thread::sleep(Duration::from_secs(1));
    assert!(target.lines_by_now().len() > 10, "the client goes on");

    let (mut second, mut rows) = (GpuSide::new(), Rows::default());
    find(&mut second, &target);
    assert!(
        drain_until(&mut second, &mut rows, 20, |_, rows| rows.of_kind("kernel") > 100),
        "{:?}",
        second.processes()
    );
    assert!(rows.kernels().all(|op| &*op.name == "spin_ns"), "names are told again");
    assert_eq!(second.gpus().len(), 1, "devices are told again");
    second.finish(Duration::from_secs(1), &mut |row| rows.take(row));
}

/// The second waits while the first lives, and takes over at once when it ends.
fn two_recorders() {
    let target = Target::start("loop", "13.0", &[("GTRACE_START", "1")]);
    let (mut first, mut second) = (GpuSide::new(), GpuSide::new());
    let (mut of_first, mut of_second) = (Rows::default(), Rows::default());
    find(&mut first, &target);
    find(&mut second, &target);
    assert!(drain_until(&mut first, &mut of_first, 20, |_, rows| {
        second.drain(&mut |row| of_second.take(row));
        rows.of_kind("kernel") > 5_000
    }));
    assert!(of_second.ops.is_empty() && of_second.calls.is_empty());
    assert_eq!(second.processes()[0].refused.as_deref(), Some("another recorder reads this process"));
    first.finish(Duration::from_secs(1), &mut |row| of_first.take(row));
    drop(first);
    assert!(drain_until(&mut second, &mut of_second, 10, |_, rows| rows.of_kind("kernel") > 100));
    let last_of_first = of_first.ops.iter().map(|op| op.start_ns).max().unwrap();
    assert!(of_second.ops.iter().all(|op| op.start_ns > last_of_first), "each has its own part");
}

/// Without a recorder nothing is bound: the process keeps its CUPTI to itself.
fn no_recorder() {
    let mut target = Target::start("steps_then_line:20", "13.0", &[]);
    target.expect("ready");
    std::thread::sleep(Duration::from_millis(600));
    let maps = std::fs::read_to_string(format!("/proc/{}/maps", target.pid())).unwrap();
    assert!(maps.contains("libgtrace_cupti.so") && maps.contains("libcuda.so.1"));
    assert!(!maps.contains("libcupti.so"), "CUPTI was loaded for nobody");
    assert!(maps.contains(target.folder().to_str().unwrap()));
    target.go_on();
    assert!(target.child.wait().unwrap().success());
}
