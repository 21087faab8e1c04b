//! From rows of the bundle's tables to a [`Timeline`], whatever order the rows come in.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::join::{find_set_ups, join_launches, join_meetings, nest, order_ops};
use super::op::copy_kind;
use super::{
    ApiCall, Call, CopyKind, LossKind, Lost, Marker, MarkerKind, NO_INDEX, OffCpu, OffState, Op, OpClass,
    ProcessRow, Request, Requests, Sample, Sync, Taken, TakenBy, ThreadIndex, ThreadKind, ThreadRows,
    Timeline, Waker, is_collective,
};
use crate::attribute::cuda_call::CudaCall;
use crate::attribute::frame;
use crate::attribute::names::Name;
use crate::attribute::system_call::SystemCall;
use crate::attribute::wait;
use crate::attribute::wake_edge::{is_driver_name, is_tool_name};
use crate::event::{CorrelationId, DurationNs, Interval, MonoNs, Pid, Tid};
use crate::store::schema;

/// A thread before it has a place.
type ThreadKey = (Pid, Tid);

/// Latest moment that is kept, 2⁶¹ ns (73 years) after boot: what lies outside is nonsense from outside, and sums of what
/// lies inside cannot overflow.
const LATEST: MonoNs = MonoNs(1 << 61);

/// A time from outside.
fn checked(time: MonoNs) -> MonoNs {
    time.clamp(MonoNs(0), LATEST)
}

/// An interval from outside.
fn interval(start: MonoNs, end: MonoNs) -> Interval {
    Interval::new(checked(start), checked(end))
}

/// What follows from a string, worked out once for each.
#[derive(Debug)]
struct ByName<T>(Vec<Option<T>>);

impl<T> Default for ByName<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Copy> ByName<T> {
    fn get(&mut self, name: Name, find: impl FnOnce() -> T) -> T {
        let place = name.number() as usize;
        if place >= self.0.len() {
            self.0.resize(place + 1, None);
        }
        *self.0[place].get_or_insert_with(find)
    }
}

/// Collects rows; [`TimelineBuilder::finish`] makes the timeline.
#[derive(Default)]
pub struct TimelineBuilder {
    timeline: Timeline,
    threads: BTreeMap<ThreadKey, ThreadRows>,
    off_cpu: Vec<(ThreadKey, OffCpu)>,
    syscalls: Vec<(ThreadKey, Call)>,
    api: Vec<(ThreadKey, ApiCall)>,
    markers: Vec<(ThreadKey, Marker)>,
    taken: Vec<(ThreadKey, Taken)>,
    samples: Vec<(ThreadKey, Sample)>,
    requests: Vec<Request>,
    collectives: Vec<schema::Collective>,
    latest: MonoNs,
    ended: bool,
    cuda_calls: ByName<CudaCall>,
    system_calls: ByName<SystemCall>,
    collective_names: ByName<bool>,
    /// For how long each control group was held back by a CPU quota.
    throttled: BTreeMap<String, i64>,
}

impl TimelineBuilder {
    /// For a recording from `started` to `ended` (of one that did not end, to its last event) by this process, with this
    /// error of the conversion of GPU times.
    #[must_use]
    pub fn new(
        started: MonoNs,
        ended: Option<MonoNs>,
        recorder: Option<Pid>,
        clock_residual: DurationNs,
    ) -> Self {
        let recording = interval(started, ended.unwrap_or(started));
        let timeline = Timeline { recording, recorder, clock_residual, ..Timeline::default() };
        Self { timeline, ended: ended.is_some(), ..Self::default() }
    }

    /// For a recording of another tool, without scheduler data.
    #[must_use]
    pub fn imported(mut self, imported: bool) -> Self {
        self.timeline.imported = imported;
        self
    }

    /// For how long a CPU quota held back control groups (`Meta::cpu_throttled_ns`). To be told before their processes.
    #[must_use]
    pub fn throttled(mut self, groups: BTreeMap<String, i64>) -> Self {
        self.throttled = groups;
        self
    }

    fn saw(&mut self, moment: Option<MonoNs>) {
        self.latest = self.latest.max(moment.map_or(MonoNs(0), checked));
    }

    /// Adds a GPU op. One without a valid interval must have been refused before.
    pub fn gpu_op(&mut self, row: &schema::GpuOp) {
        self.saw(Some(row.end_ns));
        let names = &mut self.timeline.names;
        let full_name = names.text(&row.name);
        let class = match row.kind.as_str() {
            "memcpy" | "memset" => OpClass::Copy,
            _ if self.collective_names.get(full_name, || is_collective(&row.name)) => OpClass::Communication,
            _ => OpClass::Compute,
        };
        if &*row.kind == "queued" {
            self.timeline.bounded.insert(row.device);
        }
        let copy =
            copy_kind(&row.kind, row.copy_kind.as_deref(), row.src_kind.as_deref(), row.dst_kind.as_deref());
        let name = match (copy, &row.copy_kind) {
            (CopyKind::None | CopyKind::Memset, _) | (_, None) => full_name,
            (_, Some(copy)) => names.text(copy),
        };
        self.timeline.devices.insert((row.pid, row.context), row.device);
        self.timeline.ops.push(Op {
            id: row.op_id,
            pid: row.pid,
            device: row.device,
            context: row.context,
            stream: row.stream,
            class,
            copy,
            name,
            time: interval(row.start_ns, row.end_ns),
            correlation: row.correlation_id,
            bytes: row.bytes.unwrap_or_default(),
            launch: NO_INDEX,
            first_of_name: false,
        });
    }

    /// Adds a CUDA call.
    pub fn cuda_api(&mut self, row: &schema::CudaApi) {
        self.saw(Some(row.end_ns));
        let first = self.timeline.first_correlation.entry(row.pid).or_insert(row.correlation_id);
        *first = row.correlation_id.min(*first);
        let name = self.timeline.names.text(&row.name);
        self.api.push((
            (row.pid, row.tid),
            ApiCall {
                id: row.id,
                overhead: false,
                time: interval(row.start_ns, row.end_ns),
                name,
                kind: self.cuda_calls.get(name, || CudaCall::of_function(&row.name)),
                correlation: row.correlation_id,
                thread: ThreadIndex(NO_INDEX),
                parent: NO_INDEX,
                copies: CopyKind::None,
            },
        ));
    }

    /// Adds an interval that CUPTI or the driver needed for itself. One without a thread is left out: nobody can be found
    /// waiting in it.
    pub fn cuda_overhead(&mut self, row: &schema::CudaOverhead) {
        let Some(tid) = row.tid else { return };
        let name = self.timeline.names.text(&row.kind);
        self.api.push((
            (row.pid, tid),
            ApiCall {
                id: row.id,
                overhead: true,
                time: interval(row.start_ns, row.end_ns),
                name,
                kind: CudaCall::of_overhead(&row.kind),
                correlation: CorrelationId::default(),
                thread: ThreadIndex(NO_INDEX),
                parent: NO_INDEX,
                copies: CopyKind::None,
            },
        ));
    }

    /// Adds a marked range.
    pub fn marker(&mut self, row: &schema::Marker) {
        let name = self.timeline.names.text(&row.name);
        self.markers.push((
            (row.pid, row.tid),
            Marker {
                id: row.id,
                time: interval(row.start_ns, row.end_ns),
                name,
                kind: MarkerKind::of(&row.domain, &row.name),
                thread: ThreadIndex(NO_INDEX),
                parent: NO_INDEX,
            },
        ));
    }

    /// Adds a stack sample. One that names nothing is left out.
    pub fn sample(&mut self, row: &schema::Sample) {
        let Some(place) = frame::place(&row.frames) else { return };
        let names = &mut self.timeline.names;
        self.samples.push((
            (row.pid, row.tid),
            Sample {
                id: row.id,
                time: checked(row.time_ns),
                file: names.str(&place.file),
                function: names.str(&place.function),
                line: place.line.unwrap_or(0),
                inside: names.str(&place.inside),
            },
        ));
    }

    /// Adds a collective.
    pub fn collective(&mut self, row: &schema::Collective) {
        self.collectives.push(row.clone());
    }

    /// Adds a synchronisation.
    pub fn cuda_sync(&mut self, row: &schema::CudaSync) {
        self.timeline.syncs.push(Sync {
            id: row.id,
            pid: row.pid,
            stream_wait: row.kind.as_str() == "stream_wait_event",
            context: row.context,
            stream: row.stream,
            start: checked(row.start_ns),
            correlation: row.correlation_id,
        });
    }

    /// Adds an off-CPU interval.
    pub fn off_cpu(&mut self, row: &schema::OffCpu) {
        self.saw(row.on_ns.or(Some(row.off_ns)));
        let names = &mut self.timeline.names;
        let state = match row.state.as_str() {
            "preempted" => OffState::Preempted,
            "stopped" | "traced" => OffState::Stopped,
            "unseen" => OffState::Unseen,
            _ => OffState::Waiting,
        };
        let off = checked(row.off_ns);
        let on = row.on_ns.map_or(MonoNs::MAX, checked).max(off);
        let woken = match state {
            OffState::Preempted | OffState::Unseen => off,
            _ => row.woken_ns.map_or(MonoNs::MAX, |woken| woken.clamp(off, on)),
        };
        let waker = match row.waker_kind.as_deref() {
            Some("task") => Waker::Task,
            Some("block") => row.request_id.map_or(Waker::Softirq, Waker::Block),
            Some("net") => Waker::Net,
            Some("timer") => Waker::Timer,
            Some("irq") => Waker::Irq,
            Some("softirq") => Waker::Softirq,
            _ => Waker::None,
        };
        self.off_cpu.push((
            (row.pid, row.tid),
            OffCpu {
                id: row.id,
                off,
                woken,
                on,
                state,
                uninterruptible: &*row.state == "uninterruptible",
                syscall: names.optional(row.syscall.as_ref()),
                syscall_start: row.syscall_start_ns.map_or(MonoNs::MIN, checked),
                waker,
                waker_pid: row.waker_pid.unwrap_or_default(),
                waker_tid: row.waker_tid.unwrap_or_default(),
                waker_thread: NO_INDEX,
                waker_comm: names.optional(row.waker_comm.as_ref()),
                waker_syscall: names.optional(row.waker_syscall.as_ref()),
                waker_object: names.optional(row.waker_object.as_ref()),
                cpu: row.on_cpu.unwrap_or(-1),
                culprit_pid: row.culprit_pid.unwrap_or_default(),
                culprit_tid: row.culprit_tid.unwrap_or_default(),
                culprit_comm: names.optional(row.culprit_comm.as_ref()),
                culprit_ran: row.culprit_ns.unwrap_or_default(),
                idle: row.idle_ns,
                forbidden_idle: row.forbidden_idle_ns.unwrap_or_default(),
                allowed_cpus: row.allowed_cpus.unwrap_or_default(),
                throttled: row.throttled.unwrap_or_default(),
                ended_by: NO_INDEX,
            },
        ));
    }

    /// Adds a system call.
    pub fn syscall(&mut self, row: &schema::Syscall) {
        let names = &mut self.timeline.names;
        let end = row.end_ns.unwrap_or(MonoNs::MAX);
        let name = names.text(&row.name);
        self.syscalls.push((
            (row.pid, row.tid),
            Call {
                id: row.id,
                time: interval(row.start_ns, end),
                name,
                kind: self.system_calls.get(name, || SystemCall::of(&row.name)),
                object_kind: names.optional(row.object_kind.as_ref()),
                object: names.optional(row.object.as_ref()),
                device: names.optional(row.device.as_ref()),
                peer: names.optional(row.peer.as_ref()),
            },
        ));
    }

    /// Adds a block request.
    pub fn block_io(&mut self, row: &schema::BlockIo) {
        let names = &mut self.timeline.names;
        let queued = checked(row.queued_ns);
        let issued = checked(row.issued_ns).max(queued);
        self.requests.push(Request {
            id: row.request_id,
            pid: row.pid.unwrap_or_default(),
            tid: row.tid.unwrap_or_default(),
            comm: names.optional(row.comm.as_ref()),
            device: names.text(&row.device),
            writes: row.op.as_str() != "read",
            queued,
            issued,
            completed: checked(row.completed_ns).max(issued),
            file: names.optional(row.file.as_ref()),
            throttled: row.throttled.unwrap_or_default(),
            swap: row.swap.unwrap_or_default(),
        });
    }

    /// Adds a stretch of freeing memory.
    pub fn memory_stall(&mut self, row: &schema::MemoryStall) {
        let by = if row.kind.as_str() == "compaction" { TakenBy::Compaction } else { TakenBy::Reclaim };
        let name = self.timeline.names.str(match row.kind.as_str() {
            "group_reclaim" => "the control group's memory",
            "node_reclaim" => "the memory node's memory",
            "compaction" => "large pages",
            _ => "the machine's memory",
        });
        let time = interval(row.start_ns, row.end_ns);
        self.taken.push(((row.pid, row.tid), Taken { id: row.id, time, by, name }));
    }

    /// Adds an interrupt that took long.
    pub fn interrupt(&mut self, row: &schema::Interrupt) {
        let name = self.timeline.names.text(&row.name);
        let time = interval(row.start_ns, row.end_ns);
        self.taken.push(((row.pid, row.tid), Taken { id: row.id, time, by: TakenBy::Interrupt, name }));
    }

    /// Adds a segment that was sent again.
    pub fn retransmit(&mut self, row: &schema::Retransmit) {
        let connection = self.timeline.names.text(&row.connection);
        self.timeline.retransmits.entry(connection).or_default().push(checked(row.time_ns));
    }

    /// Adds a thread.
    pub fn thread(&mut self, row: &schema::Thread) {
        let name = self.timeline.names.text(&row.comm);
        let thread = self.threads.entry((row.pid, row.tid)).or_insert_with(|| new_thread(row.pid, row.tid));
        // A number can be used again within a recording; the thread is then known from its first life on.
        thread.start =
            Some(thread.start.map_or(checked(row.start_ns), |start| start.min(checked(row.start_ns))));
        thread.end = thread.end.max(row.end_ns);
        thread.before_attach |= row.before_attach;
        thread.name = name;
    }

    /// Adds a process.
    pub fn process(&mut self, row: &schema::Process) {
        let group = row.cgroup.as_deref().unwrap_or_default();
        let names = &mut self.timeline.names;
        let process = ProcessRow {
            parent: row.parent,
            start: row.start_ns,
            comm: names.text(&row.comm),
            exe: names.optional(row.exe.as_ref()),
            outside: row.outside,
            kernel: row.kernel,
            throttled: DurationNs(self.throttled.get(group).copied().unwrap_or(0)),
        };
        // Of several lives of one number, the earliest counts, so that the order of rows does not matter.
        let known = self.timeline.processes.entry(row.pid).or_insert(process);
        if process.start < known.start {
            *known = process;
        }
    }

    /// Adds an interval of lost or refused events.
    pub fn loss(&mut self, row: &schema::Loss) {
        if !hides_causes(&row.source) {
            return;
        }
        let source = self.timeline.names.text(&row.source);
        let kind = if row.source.contains("invalid") { LossKind::Invalid } else { LossKind::Lost };
        self.timeline.losses.push(Lost {
            kind,
            source,
            pid: row.pid,
            time: interval(row.start_ns, row.end_ns),
        });
    }

    /// Sorts and joins everything.
    #[must_use]
    pub fn finish(mut self) -> Timeline {
        self.place_threads();
        let mut timeline = self.timeline;
        if !self.ended {
            timeline.recording.end = timeline.recording.end.max(self.latest);
        }
        wait::join_waits_begun_again(&mut timeline);
        nest(&mut timeline.api);
        nest(&mut timeline.markers);
        find_set_ups(&mut timeline);
        timeline.syncs.sort_by_key(|sync| (sync.pid, sync.correlation, sync.id));
        let mut waits: Vec<u32> = (0..timeline.syncs.len() as u32)
            .filter(|&index| timeline.syncs[index as usize].stream_wait)
            .collect();
        waits.sort_by_key(|&index| {
            let sync = &timeline.syncs[index as usize];
            (sync.pid, sync.stream, sync.start, sync.id)
        });
        timeline.stream_waits = waits;
        timeline.requests = Requests::new(self.requests);
        join_launches(&mut timeline);
        order_ops(&mut timeline);
        join_meetings(&mut timeline, &self.collectives);
        timeline.losses.sort_by_key(|loss| (loss.time, loss.pid, loss.source));
        timeline.retransmits.values_mut().for_each(|times| times.sort_unstable());
        timeline.names.freeze();
        timeline
    }

    /// Sorts by thread and time, two tables at a time.
    fn sort(&mut self) {
        let Self { off_cpu, syscalls, api, markers, taken, .. } = self;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                off_cpu.sort_unstable_by_key(|(key, row)| (*key, row.off, row.on, row.id));
                markers
                    .sort_unstable_by_key(|(key, row)| (*key, row.time.start, Reverse(row.time.end), row.id));
            });
            syscalls.sort_unstable_by_key(|(key, row)| (*key, row.time, row.id));
            api.sort_unstable_by_key(|(key, row)| {
                (*key, row.time.start, Reverse(row.time.end), row.overhead, row.id)
            });
            taken.sort_unstable_by_key(|(key, row)| (*key, row.time, row.id));
        });
    }

    /// Gives every thread its place and its rows.
    fn place_threads(&mut self) {
        for &(key, _) in &self.off_cpu {
            self.threads.entry(key).or_insert_with(|| new_thread(key.0, key.1));
        }
        let calls = self.syscalls.iter().map(|row| row.0).chain(self.api.iter().map(|row| row.0));
        let calls = calls.chain(self.taken.iter().map(|row| row.0));
        let others = self.markers.iter().map(|row| row.0).chain(self.samples.iter().map(|row| row.0));
        for key in calls.chain(others) {
            self.threads.entry(key).or_insert_with(|| new_thread(key.0, key.1));
        }
        self.sort();
        // Of one interval told twice, still open and complete, the complete one counts.
        self.off_cpu.dedup_by_key(|(key, row)| (*key, row.off));
        // An interrupt within a stall belongs to it.
        self.taken.dedup_by(|(key, next), (before, row)| {
            let same = key == before;
            if same && next.time.start < row.time.end {
                next.time = Interval::new(row.time.end, next.time.end.max(row.time.end));
            }
            same && next.time.is_empty()
        });
        self.samples.sort_unstable_by_key(|(key, row)| (*key, row.time, row.id));
        let timeline = &mut self.timeline;
        timeline.threads = std::mem::take(&mut self.threads).into_values().collect();
        let (mut off, mut call, mut api, mut marker, mut taken, mut sample) = (0, 0, 0, 0, 0, 0);
        for (index, thread) in timeline.threads.iter_mut().enumerate() {
            let key = (thread.pid, thread.tid);
            thread.off_cpu = take_range(&self.off_cpu, &mut off, key);
            thread.syscalls = take_range(&self.syscalls, &mut call, key);
            thread.api = take_range(&self.api, &mut api, key);
            thread.markers = take_range(&self.markers, &mut marker, key);
            thread.taken = take_range(&self.taken, &mut taken, key);
            thread.samples = take_range(&self.samples, &mut sample, key);
            for (_, row) in &mut self.markers[thread.markers.clone()] {
                row.thread = ThreadIndex(index as u32);
            }
            for (_, row) in &mut self.api[thread.api.clone()] {
                row.thread = ThreadIndex(index as u32);
            }
            let process = timeline.processes.get(&thread.pid);
            thread.name = thread.name.or(process.map_or(Name::NONE, |process| process.comm));
            let name = timeline.names.get(thread.name);
            thread.kind = match process {
                Some(process) if process.kernel => ThreadKind::Kernel,
                _ if is_driver_name(name) => ThreadKind::Driver,
                _ if is_tool_name(name) => ThreadKind::Tool,
                _ => ThreadKind::Program,
            };
        }
        timeline.off_cpu = std::mem::take(&mut self.off_cpu).into_iter().map(|(_, row)| row).collect();
        timeline.syscalls = std::mem::take(&mut self.syscalls).into_iter().map(|(_, row)| row).collect();
        timeline.api = std::mem::take(&mut self.api).into_iter().map(|(_, row)| row).collect();
        timeline.taken = std::mem::take(&mut self.taken).into_iter().map(|(_, row)| row).collect();
        timeline.samples = std::mem::take(&mut self.samples).into_iter().map(|(_, row)| row).collect();
        timeline.markers = std::mem::take(&mut self.markers).into_iter().map(|(_, row)| row).collect();
        for index in 0..timeline.off_cpu.len() {
            let row = &timeline.off_cpu[index];
            let waker = timeline.find_thread(row.waker_pid, row.waker_tid);
            timeline.off_cpu[index].waker_thread = waker.map_or(NO_INDEX, |thread| thread.0);
        }
    }
}

/// Whether a loss of this source can hide a cause. Fast calls that were not counted and paths that came late do not; where
/// the nesting of interrupts was put right, the edge of one wake-up may lack what it delivered, which then reads unknown
/// by itself.
fn hides_causes(source: &str) -> bool {
    !matches!(source, "syscall_counts" | "ring.object" | "ring.sample" | "irq_reset" | "irq_depth")
}

fn new_thread(pid: Pid, tid: Tid) -> ThreadRows {
    ThreadRows {
        pid,
        tid,
        name: Name::NONE,
        start: None,
        end: None,
        before_attach: false,
        kind: ThreadKind::Program,
        off_cpu: 0..0,
        syscalls: 0..0,
        api: 0..0,
        markers: 0..0,
        taken: 0..0,
        samples: 0..0,
    }
}

fn take_range<T>(rows: &[(ThreadKey, T)], next: &mut usize, key: ThreadKey) -> std::ops::Range<usize> {
    let start = *next;
    while rows.get(*next).is_some_and(|row| row.0 == key) {
        *next += 1;
    }
    start..*next
}
