//! How fast a recording is exported: `cargo bench --workspace --bench export`.
#![allow(clippy::unwrap_used, reason = "a benchmark fails by panicking")]
#![allow(missing_docs, reason = "criterion's macros make public functions")]

use std::path::Path;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use gtrace::event::{
    CorrelationId, DeviceId, DurationNs, GapId, MonoNs, OpId, Pid, RequestId, RowId, StreamId, Tid,
};
use gtrace::export::{Format, Options, export_to_file};
use gtrace::store::schema::{
    BlockIo, CudaApi, Evidence, Gap, GapSegment, GpuOp, Hop, OffCpu, Process, Syscall, Thread,
};
use gtrace::store::{Bundle, BundleWriter};

#[path = "../tests/store/samples.rs"]
mod samples;

use samples::{meta, op, syscall};

/// Steps of a training loop with four workers: each launches 20 kernels, and each worker reads 4 times.
const STEPS: i64 = 10_000;
const STEP: i64 = 10_000_000;

/// A recording with about 1.2 million events: names and values differ as they do in one of a real program.
fn record(dir: &Path) -> Bundle {
    let end = 1 + STEPS * STEP;
    let meta = gtrace::store::Meta { ended_ns: Some(end), ended: "target_exited".into(), ..meta() };
    let mut writer = BundleWriter::create(dir, meta.clone(), None).unwrap();
    for pid in 7..12 {
        who(&mut writer, pid);
    }
    let (mut ops, mut waits, mut calls) = (0, 0, 0);
    for step in 0..STEPS {
        let begin = 1 + step * STEP;
        for kernel in 0..20 {
            ops += 1;
            let start = begin + 2_000_000 + kernel * 400_000;
            let name = format!(
                "void at::native::elementwise_kernel<128, {kernel}>(int, at::native::gpu_kernel_impl)"
            );
            writer.push(GpuOp {
                stream: StreamId(7 + kernel % 2),
                name: name.as_str().into(),
                bytes: Some(kernel * 4096),
                ..op(ops, start, start + 350_000)
            });
            writer.push(CudaApi {
                id: RowId(ops),
                pid: Pid(7),
                tid: Tid(7),
                domain: "runtime".into(),
                name: "cudaLaunchKernel".into(),
                start_ns: MonoNs(start - 50_000),
                end_ns: MonoNs(start - 40_000),
                correlation_id: CorrelationId(ops),
                result: 0,
            });
        }
        for worker in 8..12 {
            for read in 0..4 {
                calls += 1;
                let start = begin + read * 2_000_000 + i64::from(worker) * 1_000;
                let file = format!("/data/imagenet/train/n01440764/n01440764_{}.JPEG", calls % 5_000);
                writer.push(Syscall {
                    pid: Pid(worker),
                    tid: Tid(worker),
                    end_ns: Some(MonoNs(start + 900_000)),
                    blocked_ns: DurationNs(800_000),
                    object: Some(file.as_str().into()),
                    ..syscall(calls, start)
                });
                waits += 1;
                writer.push(wait(waits, worker, start + 50_000, calls));
                writer.push(request(calls, worker, start + 20_000, &file));
            }
        }
        waits += 1;
        writer.push(OffCpu { waker_kind: Some("task".into()), ..wait(waits, 7, begin, 0) });
        gap(&mut writer, step, begin, waits);
    }
    writer.finish(meta).unwrap();
    Bundle::open(dir).unwrap()
}

fn who(writer: &mut BundleWriter, pid: i32) {
    writer.push(Process {
        pid: Pid(pid),
        parent: None,
        start_ns: MonoNs(1),
        end_ns: None,
        comm: "python3".into(),
        exe: None,
        cmdline: None,
        cgroup: None,
        container: None,
        owns_gpu: pid == 7,
        outside: false,
        kernel: false,
    });
    writer.push(Thread {
        pid: Pid(pid),
        tid: Tid(pid),
        comm: "python3".into(),
        start_ns: MonoNs(1),
        end_ns: None,
        before_attach: false,
        role: None,
    });
}

fn wait(id: i64, tid: i32, start: i64, request: i64) -> OffCpu {
    OffCpu {
        id: RowId(id),
        pid: Pid(tid),
        tid: Tid(tid),
        off_ns: MonoNs(start),
        woken_ns: Some(MonoNs(start + 800_000)),
        on_ns: Some(MonoNs(start + 830_000)),
        state: "interruptible".into(),
        before_attach: false,
        syscall: Some("pread64".into()),
        syscall_start_ns: Some(MonoNs(start - 50_000)),
        waker_kind: Some("block".into()),
        waker_pid: Some(Pid(8)),
        waker_tid: Some(Tid(8)),
        waker_comm: Some("python3".into()),
        waker_syscall: None,
        waker_object: Some("nvme0n1".into()),
        request_id: (request > 0).then_some(RequestId(request)),
        off_cpu: 0,
        on_cpu: Some(1),
        culprit_pid: None,
        culprit_tid: None,
        culprit_comm: None,
        culprit_ns: None,
        others_ns: DurationNs(0),
        idle_ns: DurationNs(30_000),
        allowed_cpus: None,
        forbidden_idle_ns: None,
        throttled: None,
    }
}

fn request(id: i64, tid: i32, start: i64, file: &str) -> BlockIo {
    BlockIo {
        request_id: RequestId(id),
        pid: Some(Pid(tid)),
        tid: Some(Tid(tid)),
        comm: Some("python3".into()),
        device: "nvme0n1".into(),
        op: "read".into(),
        sector: id * 256,
        bytes: 131_072,
        queued_ns: MonoNs(start),
        issued_ns: MonoNs(start + 5_000),
        completed_ns: MonoNs(start + 820_000),
        in_flight: 4,
        error: 0,
        throttled: None,
        swap: None,
        file: Some(file.into()),
    }
}

fn gap(writer: &mut BundleWriter, id: i64, start: i64, evidence: i64) {
    let (pid, tid) = (Some(Pid(7)), Some(Tid(7)));
    let (start, end) = (MonoNs(start), MonoNs(start + 2_000_000));
    writer.push(Gap {
        gap_id: GapId(id),
        device: DeviceId(0),
        kind: "idle".into(),
        start_ns: start,
        end_ns: end,
        prev_op: None,
        next_op: Some(OpId(id * 20 + 1)),
        cause: "storage.read.device".into(),
        stage: "data_loading".into(),
        enabler: None,
        pid,
        tid,
    });
    let hop = |tid, edge: Option<&str>| Hop {
        pid: Pid(tid),
        tid: Tid(tid),
        thread: "python3".into(),
        state: "blocked".into(),
        call: Some("pread64".into()),
        object: None,
        edge: edge.map(Into::into),
    };
    writer.push(GapSegment {
        gap_id: GapId(id),
        seq: 0,
        start_ns: start,
        end_ns: end,
        cause: "storage.read.device".into(),
        stage: "data_loading".into(),
        object: Some("nvme0n1".into()),
        pid,
        tid,
        path: vec![hop(7, Some("woken by task")), hop(8, Some("request completed"))],
        evidence: vec![Evidence { table: "off_cpu".into(), row: RowId(evidence) }],
        confidence: "exact".into(),
    });
}

fn export(criterion: &mut Criterion) {
    let dir = tempfile::tempdir().unwrap();
    let bundle = record(&dir.path().join("x.gtrace"));
    let file = dir.path().join("exported");
    let mut group = criterion.benchmark_group("export");
    group.sample_size(10);
    for (format, name) in [(Format::Chrome, "chrome"), (Format::Perfetto, "perfetto")] {
        let options = Options { format, ..Options::default() };
        // An export makes new files only.
        let once = || {
            let summary = export_to_file(&bundle, &file, &options).unwrap();
            std::fs::remove_file(&file).unwrap();
            summary
        };
        let rows: u64 = once().counts.tables().map(|(_, (exported, _))| exported).sum();
        group.throughput(Throughput::Elements(rows));
        group.bench_function(name, |bencher| bencher.iter(once));
    }
    group.finish();
}

criterion_group!(benches, export);
criterion_main!(benches);
