//! How fast a recording is attributed, and in how much memory: `cargo bench --workspace --bench attribution`.
//!
//! The recording is of a loop that feeds a GPU from four workers: each step is ten events and one gap, whose chain goes
//! over the launching thread and a worker to a disk.
#![allow(clippy::unwrap_used, reason = "a benchmark fails by panicking")]
#![allow(missing_docs, reason = "criterion's macros make public functions")]

use std::cell::LazyCell;
use std::path::Path;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group};
use gtrace::attribute::{Violation, analyze_bundle, block::Found, read_timeline};
use gtrace::event::{
    ContextId, CorrelationId, DeviceId, DurationNs, MonoNs, OpId, Pid, RequestId, RowId, StreamId, Text, Tid,
};
use gtrace::store::schema::{BlockIo, CudaApi, GpuOp, OffCpu, Process, Syscall, Thread};
use gtrace::store::{Bundle, BundleWriter, Meta};

/// Events of a step.
const EVENTS: i64 = 10;
/// Its length.
const STEP: i64 = 100_000;
/// Kernels of a model, after which they repeat.
const LAYERS: i64 = 24;
/// The process that launches, whose number is its main thread's too.
const MAIN: i32 = 7;
/// Its workers.
const WORKERS: std::ops::Range<i32> = 8..12;

fn record(dir: &Path, events: i64) -> Bundle {
    let steps = events / EVENTS;
    let meta = Meta {
        mode: "run".into(),
        ended: "target_exited".into(),
        started_ns: 1,
        ended_ns: Some((steps + 10) * STEP),
        ..Meta::default()
    };
    let mut writer = BundleWriter::create(dir, meta.clone(), None).unwrap();
    for pid in std::iter::once(MAIN).chain(WORKERS) {
        who(&mut writer, pid);
    }
    for number in 0..steps {
        step(&mut writer, number);
    }
    writer.finish(meta).unwrap();
    Bundle::open(dir).unwrap()
}

fn who(writer: &mut BundleWriter, pid: i32) {
    writer.push(Process {
        pid: Pid(pid),
        parent: (pid != MAIN).then_some(Pid(MAIN)),
        start_ns: MonoNs(1),
        end_ns: None,
        comm: "python3".into(),
        exe: None,
        cmdline: None,
        cgroup: None,
        container: None,
        owns_gpu: pid == MAIN,
        outside: false,
        kernel: false,
    });
    writer.push(Thread {
        pid: Pid(pid),
        tid: Tid(pid),
        comm: "python3".into(),
        start_ns: MonoNs(1),
        end_ns: None,
        before_attach: true,
        role: None,
    });
}

/// A step: the main thread drains the GPU, waits for a worker who reads and decodes, and launches.
fn step(writer: &mut BundleWriter, number: i64) {
    let begin = (number + 8) * STEP;
    let at = |micros: i64| MonoNs(begin + micros * 1000);
    let worker = WORKERS.start + (number % i64::from(WORKERS.end - WORKERS.start)) as i32;
    let id = number * 4;
    writer.push(GpuOp {
        op_id: OpId(number),
        pid: Pid(MAIN),
        device: DeviceId(0),
        context: ContextId(1),
        stream: StreamId(7),
        kind: "kernel".into(),
        name: format!("layer_{}_kernel", number % LAYERS).into(),
        start_ns: at(70),
        end_ns: at(100),
        correlation_id: CorrelationId(2 * number + 2),
        graph_id: None,
        graph_node_id: None,
        bytes: None,
        copy_kind: None,
        src_kind: None,
        dst_kind: None,
        is_async: None,
        grid_x: Some(64),
        grid_y: Some(1),
        grid_z: Some(1),
        block_x: Some(128),
        block_y: Some(1),
        block_z: Some(1),
    });
    writer.push(call(2 * number + 1, "cuStreamSynchronize", at(-10), at(1)));
    writer.push(call(2 * number + 2, "cuLaunchKernel", at(62), at(66)));
    let file = format!("/data/imagenet/train/{:05}.jpeg", number % 5_000);
    writer.push(syscall(id, MAIN, "futex", (at(2), at(60)), None));
    writer.push(syscall(id + 1, worker, "pread64", (at(-20), at(40)), Some(file.as_str().into())));
    writer.push(syscall(id + 2, worker, "futex", (at(57), at(59)), None));
    writer.push(OffCpu { waker_tid: Some(Tid(worker)), ..wait(id, MAIN, [at(3), at(58), at(59)], worker) });
    let read = wait(id + 1, worker, [at(-15), at(35), at(36)], worker);
    writer.push(OffCpu {
        state: "uninterruptible".into(),
        syscall: Some("pread64".into()),
        syscall_start_ns: Some(at(-20)),
        waker_kind: Some("block".into()),
        request_id: Some(RequestId(number)),
        ..read
    });
    writer.push(wait(id + 2, worker, [at(-300), at(-22), at(-21)], MAIN));
    writer.push(BlockIo {
        request_id: RequestId(number),
        pid: Some(Pid(worker)),
        tid: Some(Tid(worker)),
        comm: Some("python3".into()),
        device: "nvme0n1".into(),
        op: "read".into(),
        sector: number * 256,
        bytes: 131_072,
        queued_ns: at(-18),
        issued_ns: at(-16),
        completed_ns: at(35),
        in_flight: 4,
        error: 0,
        throttled: None,
        swap: None,
        file: Some(file.into()),
    });
}

fn call(correlation: i64, name: &str, start: MonoNs, end: MonoNs) -> CudaApi {
    CudaApi {
        id: RowId(correlation),
        pid: Pid(MAIN),
        tid: Tid(MAIN),
        domain: "driver".into(),
        name: name.into(),
        start_ns: start,
        end_ns: end,
        correlation_id: CorrelationId(correlation),
        result: 0,
    }
}

fn syscall(id: i64, tid: i32, name: &str, (start, end): (MonoNs, MonoNs), file: Option<Text>) -> Syscall {
    Syscall {
        id: RowId(id),
        pid: Pid(tid),
        tid: Tid(tid),
        name: name.into(),
        start_ns: start,
        end_ns: Some(end),
        result: Some(0),
        blocked_ns: DurationNs(0),
        fd: file.is_some().then_some(3),
        object_kind: Some(if file.is_some() { "file" } else { "futex" }.into()),
        object: file.or_else(|| Some("0x7f0000001000".into())),
        device: None,
        peer: None,
        offset: None,
        bytes: None,
    }
}

fn wait(id: i64, tid: i32, [off, woken, on]: [MonoNs; 3], waker: i32) -> OffCpu {
    OffCpu {
        id: RowId(id),
        pid: Pid(tid),
        tid: Tid(tid),
        off_ns: off,
        woken_ns: Some(woken),
        on_ns: Some(on),
        state: "interruptible".into(),
        before_attach: false,
        syscall: Some("futex".into()),
        syscall_start_ns: Some(off),
        waker_kind: Some("task".into()),
        waker_pid: Some(Pid(waker)),
        waker_tid: Some(Tid(waker)),
        waker_comm: Some("python3".into()),
        waker_syscall: None,
        waker_object: None,
        request_id: None,
        off_cpu: 0,
        on_cpu: Some(1),
        culprit_pid: None,
        culprit_tid: None,
        culprit_comm: None,
        culprit_ns: None,
        others_ns: DurationNs(0),
        idle_ns: DurationNs(1_000),
        allowed_cpus: None,
        forbidden_idle_ns: None,
        throttled: None,
    }
}

/// Set to a bundle for a process that only analyses it once and says how much memory that took.
const ONCE: &str = "GTRACE_BENCH_ONCE";

fn once(bundle: &Path) {
    analyze_bundle(&Bundle::open(bundle).unwrap(), &|_| {}).unwrap();
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kilobytes = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
    println!("in a process of its own: at most {} kB in use", kilobytes.unwrap_or("?"));
}

fn attribution(criterion: &mut Criterion) {
    let dir = tempfile::tempdir().unwrap();
    let sizes = [100_000, 1_000_000, 10_000_000];
    let mut group = criterion.benchmark_group("attribution");
    group.sample_size(10);
    for events in sizes {
        let path = dir.path().join(format!("{events}.gtrace"));
        let bundle = LazyCell::new(|| record(&path, events));
        group.throughput(Throughput::Elements(events as u64));
        group.bench_function(BenchmarkId::new("bundle", events), |bencher| {
            let bundle = LazyCell::force(&bundle);
            bencher.iter(|| analyze_bundle(bundle, &|_| {}).unwrap());
        });
        // This process holds what it made the recordings with.
        let program = std::env::current_exe().unwrap();
        std::process::Command::new(program).env(ONCE, LazyCell::force(&bundle).path()).status().unwrap();
        group.bench_function(BenchmarkId::new("timeline", events), |bencher| {
            bencher.iter_with_large_drop(|| read_timeline(&bundle, &|_| {}).unwrap());
        });
        group.bench_function(BenchmarkId::new("walk", events), |bencher| {
            let timeline = read_timeline(&bundle, &|_| {}).unwrap();
            bencher.iter(|| {
                let found = Found::new(&timeline).unwrap();
                let mut segments = 0;
                found
                    .walk(
                        |block| block.segments.len(),
                        |made| {
                            segments += made;
                            Ok::<(), Violation>(())
                        },
                    )
                    .unwrap();
                segments
            });
        });
    }
    group.finish();
}

criterion_group!(benches, attribution);

fn main() {
    if let Some(bundle) = std::env::var_os(ONCE) {
        return once(Path::new(&bundle));
    }
    benches();
    Criterion::default().configure_from_args().final_summary();
}
