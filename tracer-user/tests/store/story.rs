//! A recording made by hand: one training step that waited for a cold read.
//!
//! Times are in µs here. The main thread (pid 100) synchronises, then waits for its worker (pid 200), which reads from a
//! disk, decodes and wakes it; then it copies and launches.

use std::path::Path;

use gtrace::event::{
    ContextId, CorrelationId, DeviceId, DurationNs, GapId, MonoNs, OpId, Pid, RequestId, RowId, StreamId,
    Text, Tid,
};
use gtrace::store::meta::{GpuInfo, Meta};
use gtrace::store::schema::{
    BlockIo, ClockSample, Collective, CudaApi, CudaOverhead, CudaSync, Evidence, Frame, Gap, GapSegment,
    GpuOp, Hop, Interrupt, Loss, Marker, MemoryStall, OffCpu, Process, Retransmit, Sample, Step, Syscall,
    SyscallCount, Thread, WhatIf,
};
use gtrace::store::{Bundle, BundleWriter};

use crate::samples::op;

/// Where the story begins: not at 0, as on any machine that was up for a while, and with odd nanoseconds.
pub const BEGIN: i64 = 86_400_000_000_123;

fn at(us: i64) -> MonoNs {
    MonoNs(BEGIN + us * 1000)
}

#[allow(clippy::unnecessary_wraps, reason = "it fills columns that may be NULL")]
fn text(characters: &str) -> Option<Text> {
    Some(characters.into())
}

/// A name that a hostile program may give itself.
pub const HOSTILE: &str = "w\"0\\\n</script>\u{202e}\u{1f}";

/// Writes it as `dir`.
pub fn write(dir: &Path) -> Bundle {
    let meta = Meta {
        gtrace_version: "0.1.0".into(),
        mode: "run".into(),
        command: vec!["python3".into(), "train.py".into()],
        root_pid: Some(100),
        host: "node1".into(),
        kernel: "6.1.0".into(),
        cpus: 2,
        utc_offset_ns: 1_700_000_000_000_000_000,
        started_ns: at(0).0,
        ended_ns: Some(at(1000).0),
        ended: "target_exited".into(),
        gpus: vec![GpuInfo { device: 0, name: "Simulated GPU".into(), ..GpuInfo::default() }],
        ..Meta::default()
    };
    let mut writer = BundleWriter::create(dir, meta.clone(), None).unwrap();
    who(&mut writer);
    gpu(&mut writer);
    host(&mut writer);
    stacks(&mut writer);
    imported(&mut writer);
    analysis(&mut writer);
    writer.finish(meta).unwrap();
    Bundle::open(dir).unwrap()
}

fn who(writer: &mut BundleWriter) {
    for (pid, parent, comm) in [(100, None, "python3"), (200, Some(Pid(100)), HOSTILE)] {
        writer.push(Process {
            pid: Pid(pid),
            parent,
            start_ns: at(0),
            end_ns: None,
            comm: comm.into(),
            exe: text("/usr/bin/python3"),
            cmdline: text("python3 train.py"),
            cgroup: None,
            container: None,
            owns_gpu: pid == 100,
            outside: false,
            kernel: false,
        });
        writer.push(Thread {
            pid: Pid(pid),
            tid: Tid(pid),
            comm: comm.into(),
            start_ns: at(0),
            end_ns: None,
            before_attach: false,
            role: text(if pid == 100 { "main" } else { "dataloader_worker" }),
        });
    }
}

fn gpu(writer: &mut BundleWriter) {
    let times = [
        (1, "spin_ns", 100, 300, 7),
        (2, "HtoD", 705, 760, 7),
        (3, "spin_ns", 765, 960, 7),
        (4, "side", 900, 990, 13),
    ];
    for (id, name, start, end, stream) in times {
        let copy = name == "HtoD";
        writer.push(GpuOp {
            pid: Pid(100),
            stream: StreamId(stream),
            kind: if copy { "memcpy" } else { "kernel" }.into(),
            name: name.into(),
            start_ns: at(start),
            end_ns: at(end),
            bytes: copy.then_some(1 << 20),
            copy_kind: copy.then(|| "HtoD".into()),
            src_kind: copy.then(|| "pageable".into()),
            dst_kind: copy.then(|| "device".into()),
            ..op(id, 0, 0)
        });
    }
    let calls = [
        (1, "cuLaunchKernel", 80, 90),
        (9, "cuStreamSynchronize", 95, 310),
        (2, "cuMemcpyHtoDAsync", 690, 700),
        (3, "cuLaunchKernel", 702, 706),
        (4, "cuLaunchKernel", 720, 724),
    ];
    for (id, name, start, end) in calls {
        writer.push(CudaApi {
            id: RowId(id),
            pid: Pid(100),
            tid: Tid(100),
            domain: "driver".into(),
            name: name.into(),
            start_ns: at(start),
            end_ns: at(end),
            correlation_id: CorrelationId(id),
            result: 0,
        });
    }
    writer.push(CudaSync {
        id: RowId(1),
        pid: Pid(100),
        kind: "stream".into(),
        context: ContextId(1),
        stream: Some(StreamId(7)),
        event_id: None,
        start_ns: at(96),
        end_ns: at(309),
        correlation_id: CorrelationId(9),
    });
    writer.push(CudaOverhead {
        id: RowId(1),
        pid: Pid(100),
        tid: Some(Tid(100)),
        kind: "buffer_flush".into(),
        start_ns: at(970),
        end_ns: at(975),
        correlation_id: None,
    });
}

fn off_cpu(id: i64, tid: i32, off: i64, woken: i64, on: i64) -> OffCpu {
    OffCpu {
        id: RowId(id),
        pid: Pid(tid),
        tid: Tid(tid),
        off_ns: at(off),
        woken_ns: Some(at(woken)),
        on_ns: Some(at(on)),
        state: "interruptible".into(),
        before_attach: false,
        syscall: None,
        syscall_start_ns: None,
        waker_kind: None,
        waker_pid: None,
        waker_tid: None,
        waker_comm: None,
        waker_syscall: None,
        waker_object: None,
        request_id: None,
        off_cpu: 0,
        on_cpu: Some(0),
        culprit_pid: None,
        culprit_tid: None,
        culprit_comm: None,
        culprit_ns: None,
        others_ns: DurationNs(0),
        idle_ns: DurationNs(0),
        allowed_cpus: None,
        forbidden_idle_ns: None,
        throttled: None,
    }
}

/// What only imported recordings have.
fn imported(writer: &mut BundleWriter) {
    writer.push(Marker {
        id: RowId(1),
        pid: Pid(100),
        tid: Tid(100),
        domain: "annotation".into(),
        name: "step".into(),
        start_ns: at(10),
        end_ns: at(990),
    });
    writer.push(Collective {
        op_id: OpId(1),
        pid: Pid(100),
        device: DeviceId(0),
        stream: StreamId(7),
        op: "all_reduce".into(),
        communicator: text("0x1"),
        rank: Some(0),
        ranks: Some(2),
        sequence: 0,
        count: Some(1024),
        data_type: text("f32"),
        bytes: Some(4096),
        start_ns: at(10),
        end_ns: at(20),
    });
}

fn stacks(writer: &mut BundleWriter) {
    writer.push(Sample {
        id: RowId(1),
        pid: Pid(200),
        tid: Tid(200),
        time_ns: at(315),
        cpu: 1,
        mode: "user".into(),
        frames: vec![
            Frame {
                kind: "native".into(),
                function: text("jpeg_idct_islow"),
                file: None,
                line: None,
                module: text("libjpeg.so.62.3.0"),
                address: None,
            },
            Frame {
                kind: "python".into(),
                function: text("decode"),
                file: text("/srv/train.py"),
                line: Some(118),
                module: None,
                address: None,
            },
        ],
        incomplete: false,
    });
}

fn host(writer: &mut BundleWriter) {
    writer.push(OffCpu {
        syscall: text("read"),
        syscall_start_ns: Some(at(318)),
        waker_kind: text("task"),
        waker_pid: Some(Pid(200)),
        waker_tid: Some(Tid(200)),
        waker_comm: text(HOSTILE),
        waker_syscall: text("write"),
        ..off_cpu(1, 100, 320, 670, 680)
    });
    writer.push(OffCpu {
        state: "uninterruptible".into(),
        syscall: text("pread64"),
        syscall_start_ns: Some(at(335)),
        waker_kind: text("block"),
        waker_object: text("vda"),
        request_id: Some(RequestId(5)),
        ..off_cpu(2, 200, 340, 560, 570)
    });
    let call = |id, tid: i32, name: &str, start, end, kind: &str, object: &str| Syscall {
        id: RowId(id),
        pid: Pid(tid),
        tid: Tid(tid),
        name: name.into(),
        start_ns: at(start),
        end_ns: Some(at(end)),
        result: Some(4096),
        blocked_ns: DurationNs(0),
        fd: Some(5),
        object_kind: text(kind),
        object: text(object),
        device: None,
        peer: None,
        offset: None,
        bytes: Some(4096),
    };
    writer.push(Syscall {
        blocked_ns: DurationNs(350_000),
        ..call(1, 100, "read", 318, 681, "pipe", "pipe:[77]")
    });
    writer.push(Syscall {
        blocked_ns: DurationNs(220_000),
        device: text("vda1"),
        ..call(2, 200, "pread64", 335, 575, "file", "/data/shard-\"03\".tar")
    });
    writer.push(call(3, 200, "write", 668, 672, "pipe", "pipe:[77]"));
    writer.push(SyscallCount {
        pid: Pid(100),
        tid: Tid(100),
        name: "read".into(),
        calls: 10,
        total_ns: DurationNs(5_000),
        max_ns: DurationNs(900),
        result_sum: 100,
        errors: 0,
        first_ns: at(1),
        last_ns: at(50),
    });
    writer.push(BlockIo {
        request_id: RequestId(5),
        pid: Some(Pid(200)),
        tid: Some(Tid(200)),
        comm: text(HOSTILE),
        device: "vda".into(),
        op: "read".into(),
        sector: 2048,
        bytes: 131_072,
        queued_ns: at(338),
        issued_ns: at(345),
        completed_ns: at(558),
        in_flight: 1,
        error: 0,
        throttled: None,
        swap: None,
        file: text("/data/shard-\"03\".tar"),
    });
    trouble(writer);
    writer.push(Loss {
        source: "ring.syscall".into(),
        reason: "full".into(),
        pid: None,
        start_ns: at(992),
        end_ns: at(995),
        count: 3,
    });
    writer.push(ClockSample {
        before_ns: at(1),
        other_ns: 5,
        after_ns: at(2),
        clock: "realtime".into(),
        pid: None,
    });
}

/// What keeps a thread from going on that is no wait for another.
fn trouble(writer: &mut BundleWriter) {
    writer.push(MemoryStall {
        id: RowId(1),
        pid: Pid(200),
        tid: Tid(200),
        kind: "group_reclaim".into(),
        start_ns: at(580),
        end_ns: at(590),
        syscall: None,
        pages: Some(32),
    });
    writer.push(Interrupt {
        id: RowId(1),
        pid: Pid(200),
        tid: Tid(200),
        cpu: 1,
        name: "NET_RX".into(),
        start_ns: at(600),
        end_ns: at(640),
    });
    writer.push(Retransmit { time_ns: at(610), connection: "10.0.0.1:41532 -> 10.0.0.2:9000".into() });
}

fn hop(tid: i32, thread: &str, state: &str, call: &str, object: Option<Text>, edge: Option<Text>) -> Hop {
    Hop {
        pid: Pid(tid),
        tid: Tid(tid),
        thread: thread.into(),
        state: state.into(),
        call: text(call),
        object,
        edge,
    }
}

fn analysis(writer: &mut BundleWriter) {
    steps(writer);
    let gap = |id, kind: &str, start, end, prev, next, cause: &str| Gap {
        gap_id: GapId(id),
        device: DeviceId(0),
        kind: kind.into(),
        start_ns: at(start),
        end_ns: at(end),
        prev_op: Some(OpId(prev)),
        next_op: Some(OpId(next)),
        cause: cause.into(),
        stage: "data_loading".into(),
        enabler: text("cuStreamSynchronize"),
        pid: Some(Pid(100)),
        tid: Some(Tid(100)),
    };
    writer.push(gap(1, "idle", 300, 705, 1, 2, "storage.read.device"));
    writer.push(gap(2, "exposed_copy", 705, 760, 1, 3, "copy.pageable"));
    writer.push(gap(3, "idle", 760, 765, 2, 3, "gpu.submit_latency"));

    let wait = |edge: &str| hop(100, "python3", "blocked", "read", text("pipe:[77]"), text(edge));
    let file = text("/data/shard-\"03\".tar");
    #[allow(clippy::type_complexity, reason = "it is a table of literals")]
    let pieces: [(i64, i32, i64, i64, &str, i32, Vec<Hop>); 10] = [
        (
            1,
            0,
            300,
            310,
            "cuda.sync",
            100,
            vec![hop(100, "python3", "running", "cuStreamSynchronize", None, None)],
        ),
        (1, 1, 310, 320, "host.cpu.user", 100, vec![hop(100, "python3", "running", "read", None, None)]),
        (
            1,
            2,
            320,
            345,
            "storage.read.queue",
            200,
            vec![
                wait("woken by task"),
                hop(200, HOSTILE, "blocked", "pread64", file.clone(), text("block completion")),
            ],
        ),
        (
            1,
            3,
            345,
            558,
            "storage.read.device",
            200,
            vec![
                wait("woken by task"),
                hop(200, HOSTILE, "blocked", "pread64", file.clone(), text("block completion")),
                Hop { call: None, ..hop(200, "vda", "device", "", text("vda"), None) },
            ],
        ),
        (
            1,
            4,
            558,
            570,
            "host.wake_latency",
            200,
            vec![wait("woken by task"), hop(200, HOSTILE, "runnable", "pread64", file, None)],
        ),
        (
            1,
            5,
            570,
            670,
            "host.cpu.user",
            200,
            vec![wait("woken by task"), hop(200, HOSTILE, "running", "write", None, None)],
        ),
        (1, 6, 670, 700, "host.wake_latency", 100, vec![hop(100, "python3", "runnable", "read", None, None)]),
        (1, 7, 700, 705, "gpu.submit_latency", 100, vec![]),
        (2, 0, 705, 760, "copy.pageable", 100, vec![]),
        (3, 0, 760, 765, "gpu.submit_latency", 100, vec![]),
    ];
    for (gap, seq, start, end, cause, pid, path) in pieces {
        writer.push(GapSegment {
            gap_id: GapId(gap),
            seq,
            start_ns: at(start),
            end_ns: at(end),
            cause: cause.into(),
            stage: "data_loading".into(),
            object: cause.starts_with("storage").then(|| "/data/shard-\"03\".tar".into()),
            pid: Some(Pid(pid)),
            tid: Some(Tid(pid)),
            path,
            evidence: vec![Evidence { table: "off_cpu".into(), row: RowId(1) }],
            confidence: "exact".into(),
        });
    }
}

fn steps(writer: &mut BundleWriter) {
    let none = DurationNs(0);
    writer.push(Step {
        step: 0,
        device: DeviceId(0),
        start_ns: at(300),
        end_ns: at(970),
        found_by: "range".into(),
        range: text("ProfilerStep#7"),
        ops: 2,
        compute_ns: DurationNs(205_000),
        idle_ns: DurationNs(410_000),
        exposed_copy_ns: DurationNs(55_000),
        exposed_comm_ns: none,
        data_loading_ns: DurationNs(465_000),
        h2d_ns: none,
        forward_backward_ns: none,
        communication_ns: none,
        checkpoint_ns: none,
        serving_ns: none,
        startup_ns: none,
        other_ns: none,
        outlier: text("first"),
    });
    writer.push(WhatIf {
        cause: "storage.read.device".into(),
        role: text("dataloader_worker"),
        gap_ns: DurationNs(213_000),
        start_ns: at(100),
        end_ns: at(990),
        alone_ns: DurationNs(677_000),
        together_ns: DurationNs(677_000),
        next_cause: text("host.cpu.user"),
        next_role: text("dataloader_worker"),
        next_ns: Some(DurationNs(100_000)),
    });
}
