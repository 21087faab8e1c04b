//! The walk: from the end of a gap backwards in time to its beginning, through the threads that were waited for.
//!
//! Every function here is given an interval and gives out segments for exactly that interval, from its end to its start.
//! A wait is passed on to the thread that ended it with the same interval, so that a gap is covered exactly, by
//! construction: the cursor only ever moves from a segment's end to its start.

use super::busy::Activity;
use super::cause::Cause;
use super::cuda_call::CudaCall;
use super::gaps::RawGap;
use super::launch::{self, HeldBy};
use super::leaf;
use super::names::{Name, Names};
use super::path::{Edge, EvidenceTable, HopState, PathHop, PathId, Paths};
use super::role::{Role, Roles};
use super::segment::{Leaf, Segment};
use super::stage::stage_of;
use super::thread_time::{Piece, ThreadState, last_piece};
use super::timeline::{DeviceMoment, NO_INDEX, Request, TakenBy, ThreadIndex, Timeline, Waker};
use super::wake_edge::{WakeEdge, has_timeline, wake_edge};
use crate::event::{DeviceId, Interval, MonoNs};

/// A chain of more hops ends as `unknown.depth`.
pub const MAX_HOPS: usize = 32;

/// A station of the chain that is being followed, to see that it does not close in a circle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Station {
    Thread(ThreadIndex),
    Op(usize),
    /// The wait for the rank of this op.
    Rank(usize),
}

/// What is handed from hop to hop.
#[derive(Clone, Copy, Debug)]
pub struct Chain {
    /// The hops so far.
    pub path: PathId,
    /// The system call of the nearest user thread that waits: what a kernel thread on the chain works for. An index into
    /// [`Timeline::syscalls`].
    pub waiting: Option<usize>,
    /// A hop rests on overlap in time.
    pub inferred: bool,
}

impl Chain {
    /// An empty chain.
    pub const START: Self = Self { path: PathId::ROOT, waiting: None, inferred: false };
}

/// Walks gaps.
pub struct Walker<'a> {
    /// What is read.
    pub timeline: &'a Timeline,
    /// The roles of its threads.
    pub roles: &'a Roles,
    /// All strings: the timeline's and those that the walk makes.
    pub names: Names,
    /// All hops.
    pub paths: Paths,
    segments: Vec<Segment>,
    gap: u32,
    device: DeviceId,
    launch: Option<usize>,
    /// The op that `launch` launched.
    launched: Option<usize>,
    previous: Option<usize>,
    stations: Vec<Station>,
}

impl<'a> Walker<'a> {
    /// A walker over a timeline.
    #[must_use]
    pub fn new(timeline: &'a Timeline, roles: &'a Roles) -> Self {
        Self {
            timeline,
            roles,
            // Cheap: those of the timeline are shared.
            names: timeline.names.clone(),
            paths: Paths::default(),
            segments: Vec::new(),
            gap: 0,
            device: DeviceId(0),
            launch: None,
            launched: None,
            previous: None,
            stations: Vec::new(),
        }
    }

    /// The segments of a gap, in order of time.
    pub fn walk(&mut self, index: u32, gap: &RawGap) -> Vec<Segment> {
        self.begin(gap.device);
        self.gap = index;
        self.previous = gap.previous;
        match gap.activity {
            Activity::ExposedCopy => leaf::copy::exposed_copy(self, gap),
            Activity::ExposedComm => leaf::collective::exposed_communication(self, gap),
            Activity::Idle | Activity::Busy => match gap.next {
                Some(op) => self.wait_for_op(op, gap.time, Chain::START),
                None => self.emit(gap.time, Chain::START, Leaf::device(Name::NONE, Cause::AppNoWork)),
            },
        }
        let mut segments = std::mem::take(&mut self.segments);
        segments.reverse();
        segments
    }

    fn begin(&mut self, device: DeviceId) {
        self.segments.clear();
        self.stations.clear();
        self.device = device;
        self.previous = None;
        self.launch = None;
        self.launched = None;
    }

    /// Gives out a segment. It must end where the one before it started.
    pub fn emit(&mut self, time: Interval, chain: Chain, leaf: Leaf) {
        if time.is_empty() {
            return;
        }
        let inferred = chain.inferred || leaf.inferred;
        if let Some(last) = self.segments.last_mut() {
            debug_assert_eq!(last.time.start, time.end, "segments leave no hole");
            if last.says_the_same(&self.paths, chain.path, &leaf, inferred) {
                last.time.start = time.start;
                return;
            }
        }
        let path = self.paths.push(leaf.hop(chain.path));
        let hops = self.paths.backwards(path).map(|hop| (hop, self.role_of(hop)));
        let stage = stage_of(&self.names, leaf.cause, hops);
        self.segments.push(Segment {
            gap: self.gap,
            time,
            cause: leaf.cause,
            stage,
            object: leaf.object,
            path,
            inferred,
        });
    }

    fn role_of(&self, hop: &PathHop) -> Option<Role> {
        if hop.tid.0 == 0 {
            return None;
        }
        self.roles.get(self.timeline.find_thread(hop.pid, hop.tid)?)
    }

    /// Whether the chain may go on to this station; if not, `time` ends as a leaf that says so.
    fn enter(&mut self, station: Station, time: Interval, chain: Chain) -> bool {
        // The op that ends the gap is a station too, but no hop.
        let circle = self.stations.contains(&station);
        if !circle && self.stations.len() <= MAX_HOPS {
            self.stations.push(station);
            return true;
        }
        let why = self.names.str(if circle { "the chain closed in a circle" } else { "more than 32 hops" });
        let leaf = match station {
            Station::Thread(thread) => {
                Leaf::thread(self.timeline, thread, HopState::Unknown, Cause::UnknownDepth)
            }
            Station::Op(op) | Station::Rank(op) => {
                Leaf::device(self.timeline.ops[op].name, Cause::UnknownDepth)
            }
        };
        self.emit(time, chain, leaf.on(why));
        false
    }

    /// Whether the chain may go on to the rank of op `op`; to be followed by [`Walker::leave`].
    pub fn enter_rank(&mut self, op: usize, time: Interval, chain: Chain) -> bool {
        self.enter(Station::Rank(op), time, chain)
    }

    /// Leaves the station that was entered last.
    pub fn leave(&mut self) {
        self.stations.pop();
    }

    /// Turns to another device: its waits are walked as those of its own gaps. What is to be given to
    /// [`Walker::turn_back`].
    pub fn turn_to(&mut self, device: DeviceId) -> (DeviceId, Option<usize>) {
        (std::mem::replace(&mut self.device, device), self.previous.take())
    }

    /// Turns back.
    pub fn turn_back(&mut self, (device, previous): (DeviceId, Option<usize>)) {
        (self.device, self.previous) = (device, previous);
    }

    /// `time`, in which the device that the walker has turned to idled, was a wait for op `op`, the next on it.
    pub fn follow_op(&mut self, op: usize, time: Interval, chain: Chain) {
        let device = self.timeline.ops[op].device;
        let first = self.timeline.device_ranges.get(&device).map_or(op, |range| range.start);
        self.previous = op.checked_sub(1).filter(|&before| before >= first);
        self.wait_for_op(op, time, chain);
        self.previous = None;
    }

    /// `time`, at whose end op `op` started, is explained by what came before that start.
    fn wait_for_op(&mut self, op: usize, time: Interval, chain: Chain) {
        if time.is_empty() || !self.enter(Station::Op(op), time, chain) {
            return;
        }
        let waiting = self.timeline.ops[op];
        if waiting.launch == NO_INDEX {
            let leaf = self.without_launch(op);
            self.emit(time, chain, leaf);
        } else {
            let launch = waiting.launch as usize;
            let call = self.timeline.api[launch];
            let submitted = call.time.end.clamp(time.start, time.end);
            self.wait_on_device(op, Interval::new(submitted, time.end), submitted == time.start, chain);
            let outer = (self.launch.replace(launch), self.launched.replace(op));
            self.walk_thread(call.thread, Interval::new(time.start, submitted), chain);
            (self.launch, self.launched) = outer;
        }
        self.stations.pop();
    }

    fn without_launch(&mut self, op: usize) -> Leaf {
        let op = self.timeline.ops[op];
        let first = self.timeline.first_correlation.get(&op.pid);
        let cause = match first {
            Some(first) if op.correlation < *first => Cause::UnknownBeforeAttach,
            _ => Cause::UnknownNoLaunchRecord,
        };
        let device = self.device_name(op.device);
        Leaf::device(device, cause).on(op.name).resting_on(Some((EvidenceTable::GpuOps, op.id.0)))
    }

    /// The time between the submission of an op and its start. `queued`: it had been submitted before the gap.
    fn wait_on_device(&mut self, op: usize, time: Interval, queued: bool, chain: Chain) {
        if time.is_empty() {
            return;
        }
        let waiting = self.timeline.ops[op];
        let row = Some((EvidenceTable::GpuOps, waiting.id.0));
        let device = self.device_name(waiting.device);
        if let Some(producer) = launch::producer_elsewhere(self.timeline, op, time.start) {
            self.wait_for_producer(op, producer, time, chain);
            return;
        }
        let leaf = Leaf::device(device, Cause::GpuSubmitLatency).on(waiting.name).resting_on(row);
        // What is on its way for longer than any way takes is held by something.
        let held = queued || time.length() > launch::SUBMIT_LATENCY_LIMIT;
        let leaf = if held { self.held_leaf(op, leaf) } else { leaf };
        let chain = self.launch_hop(op, chain);
        self.emit(time, chain, leaf);
    }

    fn held_leaf(&mut self, op: usize, leaf: Leaf) -> Leaf {
        let timeline = self.timeline;
        match launch::held_by(timeline, op, self.previous) {
            HeldBy::Submission => leaf,
            HeldBy::Op { op, inferred } => {
                let held = timeline.ops[op];
                let leaf = Leaf { cause: Cause::GpuDependency, inferred, ..leaf }.on(held.name);
                leaf.resting_on(Some((EvidenceTable::GpuOps, held.id.0)))
            }
            HeldBy::HostFunction(call) => {
                let call = timeline.api[call];
                let leaf = Leaf { cause: Cause::GpuDependency, ..leaf }.on(call.name).inferred();
                leaf.resting_on(Some((EvidenceTable::CudaApi, call.id.0)))
            }
            HeldBy::OtherProcess(op) => {
                let other = timeline.ops[op];
                let comm = timeline.processes.get(&other.pid).map_or(Name::NONE, |process| process.comm);
                let object = super::segment::task_name(&mut self.names, other.pid, comm);
                let leaf = Leaf { cause: Cause::GpuOtherProcess, ..leaf }.on(object).inferred();
                leaf.resting_on(Some((EvidenceTable::GpuOps, other.id.0)))
            }
            HeldBy::Nothing => Leaf { cause: Cause::GpuQueued, ..leaf },
        }
    }

    /// Op `op` waited through an event for `producer` on another device: until that ended it is the cause, and before it
    /// began, what made it late.
    fn wait_for_producer(&mut self, op: usize, producer: usize, time: Interval, chain: Chain) {
        let (waiting, made) = (self.timeline.ops[op], self.timeline.ops[producer]);
        let began = made.start().clamp(time.start, time.end);
        let device = self.device_name(made.device);
        let leaf = Leaf::device(device, Cause::GpuDependency)
            .on(made.name)
            .resting_on(Some((EvidenceTable::GpuOps, made.id.0)))
            .resting_on(Some((EvidenceTable::GpuOps, waiting.id.0)))
            .inferred();
        self.emit(Interval::new(began, time.end), chain, leaf);
        let chain = self.device_hop(producer, chain);
        self.wait_for_op(producer, Interval::new(time.start, began), chain);
    }

    /// The thread that launched an op, as a hop before the device.
    pub fn launch_hop(&mut self, op: usize, chain: Chain) -> Chain {
        let op = &self.timeline.ops[op];
        if op.launch == NO_INDEX {
            return chain;
        }
        let call = self.timeline.api[op.launch as usize];
        let leaf =
            Leaf::thread(self.timeline, call.thread, HopState::Running, Cause::CudaLaunch).in_call(call.name);
        let path = self.paths.push(PathHop {
            edge: Edge::Gpu,
            evidence: [Some((EvidenceTable::CudaApi, call.id.0)), None],
            ..leaf.hop(chain.path)
        });
        Chain { path, ..chain }
    }

    fn device_hop(&mut self, op: usize, chain: Chain) -> Chain {
        let op = self.timeline.ops[op];
        let thread = self.device_name(op.device);
        let path = self.paths.push(PathHop {
            edge: Edge::Gpu,
            evidence: [Some((EvidenceTable::GpuOps, op.id.0)), None],
            ..Leaf::device(thread, Cause::GpuDependency).on(op.name).hop(chain.path)
        });
        Chain { path, inferred: true, ..chain }
    }

    /// The name of a device in a hop: `GPU 1`.
    pub fn device_name(&mut self, device: DeviceId) -> Name {
        let name = format!("GPU {device}");
        self.names.str(&name)
    }

    /// `time` is explained by what `thread` did in it.
    pub fn walk_thread(&mut self, thread: ThreadIndex, time: Interval, chain: Chain) {
        if time.is_empty() || !self.enter(Station::Thread(thread), time, chain) {
            return;
        }
        let mut rest = time;
        while !rest.is_empty() {
            let (set_up, boundary) = self.timeline.set_up_before(thread, rest.end);
            if let Some(marker) = set_up {
                let piece = Interval::new(boundary.max(rest.start), rest.end);
                leaf::collective::set_up(self, thread, piece, marker, chain);
                rest.end = piece.start;
                continue;
            }
            let within = Interval::new(boundary.max(rest.start), rest.end);
            let piece = last_piece(self.timeline, thread, within);
            self.piece(thread, piece, chain);
            rest.end = piece.time.start;
        }
        self.stations.pop();
    }

    fn piece(&mut self, thread: ThreadIndex, piece: Piece, chain: Chain) {
        match piece.state {
            ThreadState::Running => leaf::cpu::running(self, thread, piece.time, chain),
            ThreadState::Exiting => leaf::cpu::exiting(self, thread, piece.time, chain),
            ThreadState::Runnable { row } => leaf::runq::runnable(self, thread, piece.time, row, chain),
            ThreadState::Blocked { row, ended_by } => {
                self.blocked(thread, piece.time, row, ended_by, chain);
            }
            ThreadState::Stopped { row } => leaf::wait::stopped(self, thread, piece.time, row, chain),
            ThreadState::Unborn => self.unborn(thread, piece.time, chain),
            ThreadState::BeforeAttach => {
                leaf::cpu::unrecorded(self, thread, piece.time, Cause::UnknownBeforeAttach, chain);
            }
            ThreadState::NotRecorded => {
                leaf::cpu::unrecorded(self, thread, piece.time, Cause::UnknownNotRecordedThread, chain);
            }
        }
    }

    /// What `thread`, which works for `device`, did in a piece of its time: the segments of a gap of just that time, without
    /// the way to it.
    pub fn explain(&mut self, device: DeviceId, thread: ThreadIndex, piece: Piece) -> &mut Vec<Segment> {
        self.begin(device);
        self.paths.truncate(0);
        self.stations.push(Station::Thread(thread));
        self.piece(thread, piece, Chain::START);
        self.segments.reverse();
        &mut self.segments
    }

    /// A wait: handed on to whoever ended it.
    fn blocked(&mut self, thread: ThreadIndex, time: Interval, row: usize, ended_by: usize, chain: Chain) {
        let timeline = self.timeline;
        if timeline.imported {
            // Who ended the wait is not recorded; in which call it lay may be.
            leaf::cpu::unrecorded(self, thread, time, Cause::UnknownNoWaker, chain);
            return;
        }
        let end = timeline.off_cpu[ended_by];
        // Whatever a thread waits for while it frees memory, freeing is what it waits for.
        if let Some(taken) = freeing_memory(timeline, thread, time.end, row) {
            let leaf = leaf::cpu::taken_leaf(timeline, thread, taken, HopState::Blocked);
            let row = (EvidenceTable::OffCpu, timeline.off_cpu[row].id.0);
            return self.emit(time, chain, leaf.resting_on(row));
        }
        // That a wake-up in between delivered nothing is an inference.
        let for_nothing = ended_by != row && timeline.off_cpu[row].waker == Waker::Task;
        let chain = Chain { inferred: chain.inferred || for_nothing, ..chain };
        let edge = wake_edge(timeline, &end);
        let wait = leaf::wait::Wait::new(timeline, thread, time, row, end);
        if let (Some(call), _) = timeline.api_call_before(thread, time.end)
            && leaf::gpu::blocked_in_call(self, &wait, call, edge, chain)
        {
            return;
        }
        match edge {
            WakeEdge::Task(waker) => self.follow(&wait, waker, Edge::Task, chain),
            WakeEdge::Network(Some(sender)) if sender != thread => {
                self.follow(&wait, sender, Edge::Network, chain);
            }
            WakeEdge::Network(_) => leaf::network::received(self, &wait, chain),
            WakeEdge::Block(request) => leaf::storage::completed(self, &wait, request, chain),
            WakeEdge::Gpu => leaf::gpu::woken_by_driver(self, &wait, chain),
            WakeEdge::Timer => leaf::timer::ran_out(self, &wait, chain),
            WakeEdge::UnknownBlock => leaf::storage::unknown_request(self, &wait, chain),
            WakeEdge::KernelTask => leaf::wait::kernel_task(self, &wait, chain),
            WakeEdge::Outside => leaf::wait::outside(self, &wait, chain),
            WakeEdge::Interrupt => leaf::wait::interrupted(self, &wait, chain),
            WakeEdge::None => leaf::wait::no_waker(self, &wait, chain),
        }
    }

    /// The wait is `waker`'s time.
    pub fn follow(&mut self, wait: &leaf::wait::Wait, waker: ThreadIndex, edge: Edge, chain: Chain) {
        let path = self.paths.push(wait.hop(self.timeline, chain.path, edge));
        let waiting = wait.syscall.or(chain.waiting);
        self.walk_thread(waker, wait.time, Chain { path, waiting, ..chain });
    }

    /// `time`, in which a request was not made yet, is its submitter's, if that is another recorded thread.
    pub fn before_request(
        &mut self,
        wait: &leaf::wait::Wait,
        request: &Request,
        time: Interval,
        chain: Chain,
    ) -> bool {
        let Some(submitter) = self.timeline.find_thread(request.pid, request.tid) else { return false };
        let station = Station::Thread(submitter);
        if !has_timeline(self.timeline, submitter) || self.stations.contains(&station) {
            return false;
        }
        self.follow(&wait.within(time), submitter, Edge::Block, Chain { inferred: true, ..chain });
        true
    }

    /// A thread that did not exist yet: the time is that of whoever made it.
    fn unborn(&mut self, thread: ThreadIndex, time: Interval, chain: Chain) {
        let timeline = self.timeline;
        let maker = timeline.maker(thread).filter(|&maker| {
            maker != thread
                && has_timeline(timeline, maker)
                && !self.stations.contains(&Station::Thread(maker))
        });
        if let Some(maker) = maker {
            let leaf = Leaf::thread(timeline, thread, HopState::Unknown, Cause::HostFork);
            let path = self.paths.push(PathHop { edge: Edge::Parent, ..leaf.hop(chain.path) });
            self.walk_thread(maker, time, Chain { path, inferred: true, ..chain });
        } else {
            let leaf = Leaf::thread(timeline, thread, HopState::Unknown, Cause::HostFork).inferred();
            self.emit(time, chain, leaf);
        }
    }

    /// `time` of another device that is waited for: its ops while they run, and where it idles, what made the next one late.
    pub fn wait_for_device(&mut self, device: DeviceId, time: Interval, chain: Chain) {
        let mut rest = time;
        while !rest.is_empty() {
            let (start, op, idle) = match self.timeline.op_before(device, rest.end) {
                DeviceMoment::Running(op) => (self.timeline.ops[op].start(), Some(op), false),
                DeviceMoment::Idle { since, next } => (since, next, true),
            };
            let piece = Interval::new(start.max(rest.start), rest.end);
            match op {
                Some(op) if !idle => {
                    let running = self.timeline.ops[op];
                    let name = self.device_name(device);
                    let row = Some((EvidenceTable::GpuOps, running.id.0));
                    let leaf = Leaf::device(name, Cause::GpuDependency).on(running.name).resting_on(row);
                    self.emit(piece, chain, leaf);
                }
                Some(op) if self.ends_idle(op, piece.end) => {
                    let chain = self.device_hop(op, chain);
                    self.wait_for_op(op, piece, chain);
                }
                _ => {
                    let name = self.device_name(device);
                    self.emit(piece, chain, Leaf::device(name, Cause::CudaSync));
                }
            }
            rest.end = piece.start;
        }
    }

    /// Whether the wait for op `op` may be looked into for a time that ends at `moment`: it began then, or the host had it
    /// still to launch.
    fn ends_idle(&self, op: usize, moment: MonoNs) -> bool {
        let op = &self.timeline.ops[op];
        op.start() <= moment
            || (op.launch != NO_INDEX && self.timeline.api[op.launch as usize].time.end >= moment)
    }

    /// The device of the gap that is being walked.
    #[must_use]
    pub fn device(&self) -> DeviceId {
        self.device
    }

    /// Whether `call` is (part of) the call that launched the op that is waited for.
    #[must_use]
    pub fn is_launch(&self, call: usize) -> bool {
        self.launch == Some(self.timeline.outermost(call))
    }

    /// Whether `call` launched the op that is waited for, and no op of its name ran before.
    #[must_use]
    pub fn is_first_launch(&self, call: usize) -> bool {
        self.is_launch(call) && self.launched.is_some_and(|op| self.timeline.ops[op].first_of_name)
    }

    /// The kind of a CUDA call as far as the walk is concerned: a copy that has not begun is a launch.
    #[must_use]
    pub fn call_kind(&self, call: usize) -> CudaCall {
        match self.timeline.api[call].kind {
            CudaCall::Copy if self.is_launch(call) => CudaCall::Submit,
            kind => kind,
        }
    }
}

/// The stall of memory management within which `thread` waits: an index into [`Timeline::taken`]. `row` is where the wait
/// began, and it lasted until `end`.
#[must_use]
pub fn freeing_memory(timeline: &Timeline, thread: ThreadIndex, end: MonoNs, row: usize) -> Option<usize> {
    let (taken, _) = timeline.taken_before(thread, end);
    taken.filter(|&taken| {
        let stall = &timeline.taken[taken];
        stall.by != TakenBy::Interrupt && stall.time.start <= timeline.off_cpu[row].off
    })
}
