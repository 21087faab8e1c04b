//! A bundle made by hand.

use std::collections::BTreeMap;

use gtrace::event::{
    ContextId, CorrelationId, DeviceId, DurationNs, GapId, MonoNs, OpId, Pid, RequestId, RowId, StreamId, Tid,
};
use gtrace::store::meta::{GpuInfo, Meta, SchemaVersion};
use gtrace::store::schema::{
    BlockIo, CudaApi, Evidence, Gap, GapSegment, GpuOp, Hop, Loss, OffCpu, Process, Step, Syscall, Thread,
    WhatIf,
};
use gtrace::store::{Bundle, BundleWriter, Table};

/// Beginning of every made recording.
pub const START: i64 = 1_000_000_000;
/// A millisecond.
pub const MS: i64 = 1_000_000;

/// Rows of a bundle.
pub struct Scene {
    pub meta: Meta,
    pub processes: Vec<Process>,
    pub threads: Vec<Thread>,
    pub ops: Vec<GpuOp>,
    pub calls: Vec<CudaApi>,
    pub gaps: Vec<Gap>,
    pub segments: Vec<GapSegment>,
    pub off_cpu: Vec<OffCpu>,
    pub syscalls: Vec<Syscall>,
    pub block_io: Vec<BlockIo>,
    pub losses: Vec<Loss>,
    pub steps: Vec<Step>,
    pub what_if: Vec<WhatIf>,
}

impl Scene {
    /// An empty recording of `length` nanoseconds.
    pub fn new(command: &[&str], length: i64) -> Self {
        Self {
            meta: Meta {
                began_ns: None,
                schema: SchemaVersion::CURRENT,
                gtrace_version: "0.1.0".into(),
                mode: "run".into(),
                command: command.iter().map(ToString::to_string).collect(),
                root_pid: Some(100),
                host: "node7".into(),
                kernel: "6.18.0".into(),
                cpus: 8,
                utc_offset_ns: 0,
                started_ns: START,
                ended_ns: Some(START + length),
                ended: "target_exited".into(),
                gpus: vec![GpuInfo { device: 0, name: "NVIDIA H200".into(), ..GpuInfo::default() }],
                gpu_processes: vec![],
                gpu_bounds: Vec::new(),
                gpu_devices: Vec::new(),
                gpu_missing: None,
                probes: vec![],
                rows: BTreeMap::new(),
                losses: BTreeMap::new(),
                cpu_throttled_ns: BTreeMap::new(),
                interpreters: BTreeMap::new(),
                stolen_cpu_ns: 0,
                clock_residual_ns: 1_250,
                recorder_cpu_ns: 12 * MS,
                recorder_pid: Some(90),
            },
            processes: vec![],
            threads: vec![],
            ops: vec![],
            calls: vec![],
            gaps: vec![],
            segments: vec![],
            off_cpu: vec![],
            syscalls: vec![],
            block_io: vec![],
            losses: vec![],
            steps: vec![],
            what_if: vec![],
        }
    }

    /// Adds a step of GPU 0 that waits for data where it does not compute.
    pub fn step(&mut self, step: i64, (start, end): (i64, i64), compute: i64, outlier: Option<&str>) {
        let none = DurationNs(0);
        self.steps.push(Step {
            step,
            device: DeviceId(0),
            start_ns: MonoNs(start),
            end_ns: MonoNs(end),
            found_by: "sequence".into(),
            range: None,
            ops: 1,
            compute_ns: DurationNs(compute),
            idle_ns: DurationNs(end - start - compute),
            exposed_copy_ns: none,
            exposed_comm_ns: none,
            data_loading_ns: DurationNs(end - start - compute),
            h2d_ns: none,
            forward_backward_ns: none,
            communication_ns: none,
            checkpoint_ns: none,
            serving_ns: none,
            startup_ns: none,
            other_ns: none,
            outlier: outlier.map(Into::into),
        });
    }

    /// Adds a thread, and its process if it is the first of it.
    pub fn thread(&mut self, pid: i32, tid: i32, comm: &str, role: Option<&str>) {
        if pid == tid {
            self.processes.push(Process {
                pid: Pid(pid),
                parent: None,
                start_ns: MonoNs(START),
                end_ns: None,
                comm: comm.into(),
                exe: None,
                cmdline: None,
                cgroup: None,
                container: None,
                owns_gpu: pid == 100,
                outside: false,
                kernel: false,
            });
        }
        self.threads.push(Thread {
            pid: Pid(pid),
            tid: Tid(tid),
            comm: comm.into(),
            start_ns: MonoNs(START),
            end_ns: None,
            before_attach: false,
            role: role.map(Into::into),
        });
    }

    /// Adds an op of process 100 on a device, with its launch call in its main thread.
    pub fn op(&mut self, device: i32, kind: &str, name: &str, start: i64, end: i64) -> OpId {
        let op_id = OpId(self.ops.len() as i64 + 1);
        let copy = kind == "memcpy";
        let correlation_id = CorrelationId(op_id.0 + 1_000);
        self.calls.push(CudaApi {
            id: RowId(op_id.0 + 500),
            pid: Pid(100),
            tid: Tid(100),
            domain: "driver".into(),
            name: if copy { "cuMemcpyHtoDAsync" } else { "cuLaunchKernel" }.into(),
            start_ns: MonoNs(start - 30_000),
            end_ns: MonoNs(start - 22_000),
            correlation_id,
            result: 0,
        });
        self.ops.push(GpuOp {
            op_id,
            pid: Pid(100),
            device: DeviceId(device),
            context: ContextId(1),
            stream: StreamId(7),
            kind: kind.into(),
            name: name.into(),
            start_ns: MonoNs(start),
            end_ns: MonoNs(end),
            correlation_id,
            graph_id: None,
            graph_node_id: None,
            bytes: copy.then_some(8 << 20),
            copy_kind: copy.then(|| "HtoD".into()),
            src_kind: copy.then(|| "pageable".into()),
            dst_kind: copy.then(|| "device".into()),
            is_async: copy.then_some(true),
            grid_x: None,
            grid_y: None,
            grid_z: None,
            block_x: None,
            block_y: None,
            block_z: None,
        });
        op_id
    }

    /// Adds a gap before the op that was added last, from `start` to that op's start, with its segments one after the
    /// other: cause, stage, object, thread, length.
    pub fn gap(&mut self, kind: &str, start: i64, enabler: Option<&str>, pieces: &[Piece]) -> GapId {
        let gap_id = GapId(self.gaps.len() as i64);
        let next = self.ops.last().expect("there is an op");
        let end = start + pieces.iter().map(|piece| piece.ns).sum::<i64>();
        let mut start_ns = start;
        for (seq, piece) in pieces.iter().enumerate() {
            self.segments.push(GapSegment {
                gap_id,
                seq: seq as i32,
                start_ns: MonoNs(start_ns),
                end_ns: MonoNs(start_ns + piece.ns),
                cause: piece.cause.into(),
                stage: piece.stage.into(),
                object: piece.object.as_deref().map(Into::into),
                pid: piece.thread.map(|(pid, _)| Pid(pid)),
                tid: piece.thread.map(|(_, tid)| Tid(tid)),
                path: piece.path.clone(),
                evidence: piece.evidence.clone(),
                confidence: piece.confidence.into(),
            });
            start_ns += piece.ns;
        }
        let longest = pieces.iter().max_by_key(|piece| piece.ns).expect("a gap has a piece");
        self.gaps.push(Gap {
            gap_id,
            device: next.device,
            kind: kind.into(),
            start_ns: MonoNs(start),
            end_ns: MonoNs(end),
            prev_op: self.ops.len().checked_sub(2).map(|index| self.ops[index].op_id),
            next_op: Some(next.op_id),
            cause: longest.cause.into(),
            stage: longest.stage.into(),
            enabler: enabler.map(Into::into),
            pid: Some(Pid(100)),
            tid: Some(Tid(100)),
        });
        gap_id
    }

    /// Adds a read of a block device.
    pub fn read(&mut self, device: &str, file: &str, queued: i64, issued: i64, completed: i64) -> Evidence {
        let request_id = RequestId(self.block_io.len() as i64 + 40);
        self.block_io.push(BlockIo {
            request_id,
            pid: Some(Pid(101)),
            tid: Some(Tid(101)),
            comm: Some("python3".into()),
            device: device.into(),
            op: "read".into(),
            sector: 2048,
            bytes: 512 << 10,
            queued_ns: MonoNs(queued),
            issued_ns: MonoNs(issued),
            completed_ns: MonoNs(completed),
            in_flight: 1,
            error: 0,
            throttled: None,
            swap: None,
            file: Some(file.into()),
        });
        Evidence { table: "block_io".into(), row: RowId(request_id.0) }
    }

    /// Adds an interval off the CPU of a thread.
    pub fn off(
        &mut self,
        thread: (i32, i32),
        off: i64,
        woken: i64,
        on: i64,
        syscall: &str,
        waker: Waker,
    ) -> Evidence {
        let id = RowId(self.off_cpu.len() as i64 + 70);
        let task = match waker {
            Waker::Task(pid, tid, comm) => Some((pid, tid, comm)),
            Waker::Block(..) => None,
        };
        self.off_cpu.push(OffCpu {
            id,
            pid: Pid(thread.0),
            tid: Tid(thread.1),
            off_ns: MonoNs(off),
            woken_ns: Some(MonoNs(woken)),
            on_ns: Some(MonoNs(on)),
            state: "interruptible".into(),
            before_attach: false,
            syscall: Some(syscall.into()),
            syscall_start_ns: Some(MonoNs(off - 1_000)),
            waker_kind: Some(if task.is_some() { "task" } else { "block" }.into()),
            waker_pid: task.map(|(pid, _, _)| Pid(pid)),
            waker_tid: task.map(|(_, tid, _)| Tid(tid)),
            waker_comm: task.map(|(_, _, comm)| comm.into()),
            waker_syscall: task.map(|_| "write".into()),
            waker_object: match waker {
                Waker::Block(device, _) => Some(device.into()),
                Waker::Task(..) => None,
            },
            request_id: match waker {
                Waker::Block(_, request) => Some(RequestId(request)),
                Waker::Task(..) => None,
            },
            off_cpu: 2,
            on_cpu: Some(2),
            culprit_pid: None,
            culprit_tid: None,
            culprit_comm: None,
            culprit_ns: None,
            others_ns: DurationNs(0),
            idle_ns: DurationNs(on - woken),
            allowed_cpus: None,
            forbidden_idle_ns: None,
            throttled: None,
        });
        Evidence { table: "off_cpu".into(), row: id }
    }

    /// Writes it as a bundle and opens that.
    pub fn bundle(self) -> (tempfile::TempDir, Bundle) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("made.gtrace");
        let mut writer = BundleWriter::create(&path, self.meta.clone(), None).expect("a new bundle");
        sorted(&mut writer, self.processes);
        sorted(&mut writer, self.threads);
        sorted(&mut writer, self.ops);
        sorted(&mut writer, self.calls);
        sorted(&mut writer, self.gaps);
        sorted(&mut writer, self.steps);
        sorted(&mut writer, self.what_if);
        sorted(&mut writer, self.segments);
        sorted(&mut writer, self.off_cpu);
        sorted(&mut writer, self.syscalls);
        sorted(&mut writer, self.block_io);
        sorted(&mut writer, self.losses);
        writer.finish(self.meta).expect("the bundle is written");
        let bundle = Bundle::open(&path).expect("the bundle is readable");
        (folder, bundle)
    }
}

fn sorted<T: Table>(writer: &mut BundleWriter, mut rows: Vec<T>) {
    rows.sort_by_key(Table::sort_key);
    writer.append(rows);
}

/// Who woke a thread.
#[derive(Clone, Copy)]
pub enum Waker<'a> {
    Task(i32, i32, &'a str),
    Block(&'a str, i64),
}

/// A segment to be.
#[derive(Clone)]
pub struct Piece {
    cause: &'static str,
    ns: i64,
    stage: &'static str,
    object: Option<String>,
    thread: Option<(i32, i32)>,
    path: Vec<Hop>,
    evidence: Vec<Evidence>,
    confidence: &'static str,
}

impl Piece {
    pub fn new(cause: &'static str, ns: i64) -> Self {
        Self {
            cause,
            ns,
            stage: "other",
            object: None,
            thread: None,
            path: vec![],
            evidence: vec![],
            confidence: "exact",
        }
    }

    pub fn stage(self, stage: &'static str) -> Self {
        Self { stage, ..self }
    }

    pub fn object(self, object: &str) -> Self {
        Self { object: Some(object.into()), ..self }
    }

    pub fn thread(self, pid: i32, tid: i32) -> Self {
        Self { thread: Some((pid, tid)), ..self }
    }

    pub fn path(self, path: Vec<Hop>) -> Self {
        Self { path, ..self }
    }

    pub fn evidence(self, evidence: Vec<Evidence>) -> Self {
        Self { evidence, ..self }
    }

    pub fn inferred(self) -> Self {
        Self { confidence: "inferred", ..self }
    }
}

/// A hop.
pub fn hop(
    thread: (i32, i32),
    name: &str,
    state: &str,
    call: Option<&str>,
    object: Option<&str>,
    edge: Option<&str>,
) -> Hop {
    Hop {
        pid: Pid(thread.0),
        tid: Tid(thread.1),
        thread: name.into(),
        state: state.into(),
        call: call.map(Into::into),
        object: object.map(Into::into),
        edge: edge.map(Into::into),
    }
}
