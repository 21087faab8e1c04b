//! Timelines by hand. Times are in microseconds; the GPU process is 100, its main thread 100.

use std::collections::BTreeMap;

use crate::attribute::names::Name;
use crate::attribute::segment::Segment;
use crate::attribute::{Analysis, Timeline, TimelineBuilder, analyze};
use crate::event::{
    ContextId, CorrelationId, DeviceId, DurationNs, MonoNs, OpId, Pid, RequestId, RowId, StreamId, Text, Tid,
};
use crate::store::schema::{
    BlockIo, Collective, CudaApi, CudaOverhead, CudaSync, Frame, GapSegment, GpuOp, Interrupt, Loss, Marker,
    MemoryStall, OffCpu, Process, Retransmit, Sample, Syscall, Thread,
};

/// The GPU process and its main thread.
pub const MAIN: (i32, i32) = (100, 100);
/// The recorder.
pub const RECORDER: i32 = 9;

/// Microseconds on the clock.
pub fn us(micros: i64) -> MonoNs {
    MonoNs(micros * 1000)
}

/// Rows of all tables.
#[derive(Clone, Default)]
pub struct Scene {
    pub gpu_ops: Vec<GpuOp>,
    pub api: Vec<CudaApi>,
    pub syncs: Vec<CudaSync>,
    pub overhead: Vec<CudaOverhead>,
    pub off_cpu: Vec<OffCpu>,
    pub syscalls: Vec<Syscall>,
    pub block_io: Vec<BlockIo>,
    pub memory_stalls: Vec<MemoryStall>,
    pub interrupts: Vec<Interrupt>,
    pub retransmits: Vec<Retransmit>,
    pub samples: Vec<Sample>,
    pub threads: Vec<Thread>,
    pub processes: Vec<Process>,
    pub losses: Vec<Loss>,
    pub markers: Vec<Marker>,
    pub collectives: Vec<Collective>,
    pub throttled: BTreeMap<String, i64>,
    pub started: i64,
    pub ended: i64,
    ids: i64,
}

impl Scene {
    /// The GPU process with its main thread, recorded over 100 ms.
    pub fn new() -> Self {
        let mut scene = Self { ended: 100_000, ..Self::default() };
        scene.process(MAIN.0, 1, "python3");
        scene.thread(MAIN, "python3");
        scene
    }

    fn id(&mut self) -> i64 {
        self.ids += 1;
        self.ids
    }

    pub fn process(&mut self, pid: i32, parent: i32, comm: &str) -> &mut Process {
        self.processes.push(Process {
            pid: Pid(pid),
            parent: Some(Pid(parent)),
            start_ns: us(self.started),
            end_ns: None,
            comm: comm.into(),
            exe: Some(format!("/usr/bin/{comm}").into()),
            cmdline: None,
            cgroup: None,
            container: None,
            owns_gpu: false,
            outside: false,
            kernel: false,
        });
        self.processes.last_mut().expect("just pushed")
    }

    pub fn thread(&mut self, (pid, tid): (i32, i32), comm: &str) -> &mut Thread {
        self.threads.push(Thread {
            pid: Pid(pid),
            tid: Tid(tid),
            comm: comm.into(),
            start_ns: us(self.started),
            end_ns: None,
            before_attach: true,
            role: None,
        });
        self.threads.last_mut().expect("just pushed")
    }

    /// A kernel on device 0, stream 1, launched by call `correlation`.
    pub fn kernel(&mut self, start: i64, end: i64, correlation: i64) -> &mut GpuOp {
        let id = self.id();
        self.gpu_ops.push(GpuOp {
            op_id: OpId(id),
            pid: Pid(MAIN.0),
            device: DeviceId(0),
            context: ContextId(1),
            stream: StreamId(1),
            kind: "kernel".into(),
            name: format!("kernel_{correlation}").into(),
            start_ns: us(start),
            end_ns: us(end),
            correlation_id: CorrelationId(correlation),
            graph_id: None,
            graph_node_id: None,
            bytes: None,
            copy_kind: None,
            src_kind: None,
            dst_kind: None,
            is_async: None,
            grid_x: None,
            grid_y: None,
            grid_z: None,
            block_x: None,
            block_y: None,
            block_z: None,
        });
        self.gpu_ops.last_mut().expect("just pushed")
    }

    /// A copy to the device.
    pub fn copy(&mut self, start: i64, end: i64, correlation: i64, host: &str) -> &mut GpuOp {
        let op = self.kernel(start, end, correlation);
        op.kind = "memcpy".into();
        op.copy_kind = Some("HtoD".into());
        op.src_kind = Some(host.into());
        op.dst_kind = Some("device".into());
        op.bytes = Some(1_000_000);
        op
    }

    /// A driver call of the main thread.
    pub fn call(&mut self, name: &str, start: i64, end: i64, correlation: i64) -> &mut CudaApi {
        let id = self.id();
        self.api.push(CudaApi {
            id: RowId(id),
            pid: Pid(MAIN.0),
            tid: Tid(MAIN.1),
            domain: "driver".into(),
            name: name.into(),
            start_ns: us(start),
            end_ns: us(end),
            correlation_id: CorrelationId(correlation),
            result: 0,
        });
        self.api.last_mut().expect("just pushed")
    }

    pub fn launch(&mut self, start: i64, end: i64, correlation: i64) -> &mut CudaApi {
        self.call("cuLaunchKernel", start, end, correlation)
    }

    /// Off the CPU and blocked in `[off, woken)`, runnable in `[woken, on)`; by default with nobody seen waking it.
    pub fn off(&mut self, (pid, tid): (i32, i32), off: i64, woken: i64, on: i64) -> &mut OffCpu {
        let id = self.id();
        self.off_cpu.push(OffCpu {
            id: RowId(id),
            pid: Pid(pid),
            tid: Tid(tid),
            off_ns: us(off),
            woken_ns: Some(us(woken)),
            on_ns: Some(us(on)),
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
        });
        self.off_cpu.last_mut().expect("just pushed")
    }

    /// A system call with an object.
    pub fn syscall(
        &mut self,
        (pid, tid): (i32, i32),
        name: &str,
        start: i64,
        end: i64,
        object: (&str, &str),
    ) -> &mut Syscall {
        let id = self.id();
        let text = |text: &str| (!text.is_empty()).then(|| Text::from(text));
        self.syscalls.push(Syscall {
            id: RowId(id),
            pid: Pid(pid),
            tid: Tid(tid),
            name: name.into(),
            start_ns: us(start),
            end_ns: Some(us(end)),
            result: Some(0),
            blocked_ns: DurationNs(0),
            fd: None,
            object_kind: text(object.0),
            object: text(object.1),
            device: None,
            peer: None,
            offset: None,
            bytes: None,
        });
        self.syscalls.last_mut().expect("just pushed")
    }

    /// A read of the block device `vda`.
    pub fn request(
        &mut self,
        number: i64,
        submitter: (i32, i32),
        times: [i64; 3],
        file: &str,
    ) -> &mut BlockIo {
        self.block_io.push(BlockIo {
            request_id: RequestId(number),
            pid: Some(Pid(submitter.0)),
            tid: Some(Tid(submitter.1)),
            comm: Some("submitter".into()),
            device: "vda".into(),
            op: "read".into(),
            sector: 0,
            bytes: 4096,
            queued_ns: us(times[0]),
            issued_ns: us(times[1]),
            completed_ns: us(times[2]),
            in_flight: 1,
            error: 0,
            throttled: None,
            swap: None,
            file: (!file.is_empty()).then(|| file.into()),
        });
        self.block_io.last_mut().expect("just pushed")
    }

    /// A thread frees memory.
    pub fn stall(&mut self, (pid, tid): (i32, i32), kind: &str, start: i64, end: i64) {
        let id = RowId(self.id());
        self.memory_stalls.push(MemoryStall {
            id,
            pid: Pid(pid),
            tid: Tid(tid),
            kind: kind.into(),
            start_ns: us(start),
            end_ns: us(end),
            syscall: None,
            pages: None,
        });
    }

    /// An interrupt takes a thread's CPU.
    pub fn interrupt(&mut self, (pid, tid): (i32, i32), name: &str, start: i64, end: i64) {
        let id = RowId(self.id());
        self.interrupts.push(Interrupt {
            id,
            pid: Pid(pid),
            tid: Tid(tid),
            cpu: 0,
            name: name.into(),
            start_ns: us(start),
            end_ns: us(end),
        });
    }

    /// A segment of a connection is sent again.
    pub fn retransmit(&mut self, connection: &str, time: i64) {
        self.retransmits.push(Retransmit { time_ns: us(time), connection: connection.into() });
    }

    /// A sample in a Python function, which was in a native one where `inside` names one.
    pub fn sample(&mut self, (pid, tid): (i32, i32), at: i64, (function, line): (&str, i32), inside: &str) {
        let frame = |kind: &str| Frame {
            kind: kind.into(),
            function: Some(if kind == "python" { function.into() } else { inside.into() }),
            file: (kind == "python").then(|| "/srv/train.py".into()),
            line: (kind == "python").then_some(line),
            module: (kind == "native").then(|| "libz.so.1".into()),
            address: None,
        };
        let mut frames = vec![frame("python")];
        if !inside.is_empty() {
            frames.insert(0, frame("native"));
        }
        let id = RowId(self.id());
        self.samples.push(Sample {
            id,
            pid: Pid(pid),
            tid: Tid(tid),
            time_ns: us(at),
            cpu: 0,
            mode: "user".into(),
            frames,
            incomplete: false,
        });
    }

    pub fn loss(&mut self, source: &str, start: i64, end: i64) -> &mut Loss {
        self.losses.push(Loss {
            source: source.into(),
            reason: "".into(),
            pid: None,
            start_ns: us(start),
            end_ns: us(end),
            count: 1,
        });
        self.losses.last_mut().expect("just pushed")
    }

    /// Two kernels with the gap `[1000, b)` between them, the second launched by call 2 in `[b - 15, b - 5)`.
    pub fn with_gap(b: i64) -> Self {
        let mut scene = Self::new();
        scene.launch(0, 5, 1);
        scene.kernel(10, 1000, 1);
        scene.launch(b - 15, b - 5, 2);
        scene.kernel(b, b + 1000, 2);
        scene
    }

    pub fn timeline(&self) -> Timeline {
        let mut builder =
            TimelineBuilder::new(us(self.started), Some(us(self.ended)), Some(Pid(RECORDER)), DurationNs(0))
                .throttled(self.throttled.clone());
        self.processes.iter().for_each(|row| builder.process(row));
        self.threads.iter().for_each(|row| builder.thread(row));
        self.gpu_ops.iter().for_each(|row| builder.gpu_op(row));
        self.api.iter().for_each(|row| builder.cuda_api(row));
        self.syncs.iter().for_each(|row| builder.cuda_sync(row));
        self.overhead.iter().for_each(|row| builder.cuda_overhead(row));
        self.off_cpu.iter().for_each(|row| builder.off_cpu(row));
        self.syscalls.iter().for_each(|row| builder.syscall(row));
        self.block_io.iter().for_each(|row| builder.block_io(row));
        self.memory_stalls.iter().for_each(|row| builder.memory_stall(row));
        self.interrupts.iter().for_each(|row| builder.interrupt(row));
        self.retransmits.iter().for_each(|row| builder.retransmit(row));
        self.samples.iter().for_each(|row| builder.sample(row));
        self.losses.iter().for_each(|row| builder.loss(row));
        self.markers.iter().for_each(|row| builder.marker(row));
        self.collectives.iter().for_each(|row| builder.collective(row));
        builder.finish()
    }

    pub fn analysis(&self) -> Analysis {
        analyze(&self.timeline()).expect("time adds up")
    }

    /// The rows that would be written.
    pub fn segments(&self) -> Vec<GapSegment> {
        let timeline = self.timeline();
        let analysis = analyze(&timeline).expect("time adds up");
        analysis.found.segment_rows(&timeline).collect()
    }

    /// All segments, one a line: `start-end cause object`, in microseconds.
    pub fn told(&self) -> Vec<String> {
        let analysis = self.analysis();
        analysis.found.segments.iter().map(|segment| line(&analysis, segment)).collect()
    }
}

fn line(analysis: &Analysis, segment: &Segment) -> String {
    let micros = |time: MonoNs| {
        if time.0 % 1000 == 0 { (time.0 / 1000).to_string() } else { format!("{}ns", time.0) }
    };
    let mut line =
        format!("{}-{} {}", micros(segment.time.start), micros(segment.time.end), segment.cause.code());
    if segment.object != Name::NONE {
        line += " ";
        line += analysis.found.names.get(segment.object);
    }
    if segment.inferred {
        line += " (inferred)";
    }
    line
}

/// What set a waker.
pub trait Woken {
    /// By a task in its own context.
    fn by(&mut self, waker: (i32, i32), comm: &str) -> &mut Self;
    /// By something that is no task.
    fn by_kind(&mut self, kind: &str, object: &str) -> &mut Self;
    /// In this system call.
    fn inside(&mut self, syscall: &str, start: i64) -> &mut Self;
    /// While runnable, this task ran.
    fn behind(&mut self, culprit: (i32, i32), comm: &str, micros: i64) -> &mut Self;
}

impl Woken for OffCpu {
    fn by(&mut self, waker: (i32, i32), comm: &str) -> &mut Self {
        self.waker_kind = Some("task".into());
        self.waker_pid = Some(Pid(waker.0));
        self.waker_tid = Some(Tid(waker.1));
        self.waker_comm = Some(comm.into());
        self
    }

    fn by_kind(&mut self, kind: &str, object: &str) -> &mut Self {
        self.waker_kind = Some(kind.into());
        self.waker_object = (!object.is_empty()).then(|| object.into());
        self
    }

    fn inside(&mut self, syscall: &str, start: i64) -> &mut Self {
        self.syscall = Some(syscall.into());
        self.syscall_start_ns = Some(us(start));
        self
    }

    fn behind(&mut self, culprit: (i32, i32), comm: &str, micros: i64) -> &mut Self {
        self.culprit_pid = Some(Pid(culprit.0));
        self.culprit_tid = Some(Tid(culprit.1));
        self.culprit_comm = Some(comm.into());
        self.culprit_ns = Some(DurationNs(micros * 1000));
        self
    }
}

/// What is told of the beginning and the end of the gap of [`Scene::with_gap`] of 3 ms.
pub const BEFORE: &str = "1000-1100 host.cpu.user /usr/bin/python3";
pub const AFTER: [&str; 3] = [
    "2900-2985 host.cpu.user /usr/bin/python3",
    "2985-2995 cuda.launch cuLaunchKernel",
    "2995-3000 gpu.submit_latency kernel_2",
];

/// Expects that of the gap, and `between` of `[1100, 2900)`.
pub fn expect(scene: &Scene, between: &[&str]) {
    let expected: Vec<&str> = [BEFORE].iter().chain(between).chain(&AFTER).copied().collect();
    assert_eq!(scene.told(), expected);
}
