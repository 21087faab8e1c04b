//! What is recorded is what was done.

use std::collections::{HashMap, HashSet};

use gtrace::event::{CorrelationId, Text};

use super::client::COPY_BYTES;
use super::target::{Rows, Target, record};

pub const TESTS: &[(&str, fn())] = &[
    ("record::cuda_12_4", || everything_arrives("12.4")),
    ("record::cuda_13_0", || everything_arrives("13.0")),
    ("record::cuda_11_7", || everything_arrives("11.7")),
    ("record::cuda_13_5", || everything_arrives("13.5")),
    ("record::four_threads", four_threads),
    ("record::clock_by_conversion", clock_by_conversion),
];

const STEPS: usize = 40;

/// The step lines of a client: thread, begin, end.
fn steps(lines: &[String]) -> Vec<(i32, i64, i64)> {
    let number = |text: &str| text.parse::<i64>().unwrap();
    lines
        .iter()
        .filter_map(|line| {
            let mut words = line.strip_prefix("step ")?.split(' ');
            Some((number(words.next()?) as i32, number(words.next()?), number(words.next()?)))
        })
        .collect()
}

fn everything_arrives(cuda: &str) {
    let mut target = Target::start(&format!("steps:{STEPS}"), cuda, &[("GTRACE_START", "1")]);
    let (side, rows) = record(&mut target);
    let steps = steps(&target.lines_to_end());
    assert_eq!(steps.len(), STEPS);
    assert_eq!(rows.losses, [], "nothing is lost");
    assert_eq!(
        (rows.of_kind("kernel"), rows.of_kind("memcpy"), rows.of_kind("memset")),
        (10 * STEPS, STEPS, STEPS)
    );
    assert!(
        rows.kernels().all(|op| &*op.name == "spin_ns" && op.grid_y == Some(3) && op.block_x == Some(32))
    );
    let copies: Vec<_> = rows.ops.iter().filter(|op| &*op.kind == "memcpy").collect();
    assert!(copies.iter().all(|op| op.bytes == Some(COPY_BYTES as i64) && &*op.name == "HtoD"));
    assert!(copies.iter().all(|op| op.src_kind == Some(Text::from("pageable")) && op.is_async == Some(true)));
    assert_eq!(rows.named("cuLaunchKernel").count(), 10 * STEPS);
    assert_eq!(rows.named("cuStreamSynchronize").count(), STEPS);
    assert!(rows.syncs.iter().filter(|sync| &*sync.kind == "stream").count() >= STEPS);
    check_times(&rows, &steps);

    let [process] = side.processes().try_into().unwrap();
    assert_eq!((process.clock.as_str(), process.refused.clone()), ("monotonic", None));
    assert!(process.cupti_path.contains("libcupti.so.") && process.records > 0, "{process:?}");
    let [gpu] = side.gpus().try_into().unwrap();
    assert!(
        gpu.uuid.len() == 32 && gpu.multiprocessors > 0 && gpu.memory_bytes > 0 && !gpu.name.is_empty(),
        "{gpu:?}"
    );
    assert!(side.attached());
    assert!(rows.clocks >= 1);
}

/// Every op lies after the beginning of its call, and within the step that the client saw; every call is the thread's.
fn check_times(rows: &Rows, steps: &[(i32, i64, i64)]) {
    let mut calls: HashMap<CorrelationId, i64> = HashMap::new();
    for call in &rows.calls {
        let begin = calls.entry(call.correlation_id).or_insert(call.start_ns.0);
        *begin = call.start_ns.0.min(*begin);
    }
    let within =
        |start: i64, end: i64| steps.iter().position(|(_, began, ended)| *began <= start && end <= *ended);
    for op in &rows.ops {
        let launched = calls.get(&op.correlation_id).unwrap_or_else(|| panic!("{op:?} has no call"));
        assert!(op.start_ns.0 >= *launched, "{op:?} starts before {launched}");
        assert!(within(op.start_ns.0, op.end_ns.0).is_some(), "{op:?} lies in no step");
    }
    for name in ["cuLaunchKernel", "cuMemcpyHtoDAsync", "cuMemsetD8Async", "cuStreamSynchronize"] {
        for call in rows.named(name) {
            let step =
                within(call.start_ns.0, call.end_ns.0).unwrap_or_else(|| panic!("{call:?} lies in no step"));
            assert!(steps.iter().any(|step| step.0 == call.tid.0), "{call:?} is of no thread of the client");
            assert_eq!(call.result, 0);
            let _ = step;
        }
    }
    let ids: HashSet<_> = rows.ops.iter().map(|op| op.op_id).collect();
    assert_eq!(ids.len(), rows.ops.len(), "ids are unique");
}

fn four_threads() {
    let mut target = Target::start("threads:20", "13.0", &[("GTRACE_START", "1")]);
    let (_, rows) = record(&mut target);
    let steps = steps(&target.lines_to_end());
    assert_eq!(rows.losses, []);
    assert_eq!((steps.len(), rows.of_kind("kernel")), (80, 800));
    let threads: HashSet<i32> = rows.named("cuLaunchKernel").map(|call| call.tid.0).collect();
    let said: HashSet<i32> = steps.iter().map(|step| step.0).collect();
    assert_eq!((threads.len(), &threads), (4, &said));
    check_times(&rows, &steps);
}

/// Found later, CUPTI stays on CLOCK_REALTIME, and its times are converted.
fn clock_by_conversion() {
    let mut target = Target::start(&format!("line_then_steps:{STEPS}"), "12.4", &[]);
    let (mut side, mut rows) = (gtrace::record::gpu::GpuSide::new(), Rows::default());
    target.expect("ready");
    super::target::find(&mut side, &target);
    assert!(super::target::drain_until(&mut side, &mut rows, 10, |side, _| side.processes()[0].clock
        == "realtime"));
    // The session begins with the kinds that follow the clock.
    std::thread::sleep(std::time::Duration::from_millis(300));
    target.go_on();
    assert!(
        super::target::drain_until(&mut side, &mut rows, 20, |_, rows| rows.of_kind("kernel") == 10 * STEPS)
    );
    side.finish(std::time::Duration::from_secs(2), &mut |row| rows.take(row));
    let lines: Vec<String> = (0..STEPS).filter_map(|_| target.line()).collect();
    let steps = steps(&lines);
    assert_eq!((steps.len(), rows.losses.as_slice()), (STEPS, [].as_slice()));
    assert!(side.clock_residual_ns() > 0);
    check_times(&rows, &steps);
    assert_eq!(side.gpus().len(), 1, "the device was told again");
    target.go_on();
}
