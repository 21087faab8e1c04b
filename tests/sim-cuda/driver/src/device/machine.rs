//! The discrete-event simulation of all devices.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::clock;
use crate::config;
use crate::device::channel::{Channel, ChannelKey, CopyEngine, GraphSpan, HostCall, Mark, Op, State, Work};
use crate::device::data::PLANE;
use crate::device::rendezvous::Arrival;
use crate::device::shared;
use crate::device::threads;
use crate::device::wait::Waiter;
use crate::hook;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    End,
    Ready,
}

#[derive(Default)]
struct Engines {
    kernels: u32,
    kernel_queue: Vec<(i32, u64, ChannelKey)>,
    copying: [bool; 4],
    copy_queue: [Vec<(i32, u64, ChannelKey)>; 4],
}

/// A host function whose turn has come.
pub struct HostJob {
    /// Where it stands.
    pub mark: Mark,
    /// What to call.
    pub call: HostCall,
    /// The data job that has to be done before.
    pub ticket: u64,
}

/// What to put into a channel.
pub struct Submission {
    /// What it does.
    pub work: Work,
    /// What it waits for.
    pub deps: Vec<Mark>,
    /// CUPTI's token.
    pub token: u64,
    /// Graph launch that it belongs to.
    pub span: Option<Arc<GraphSpan>>,
}

impl Submission {
    /// Work without dependencies that CUPTI does not hear of.
    pub fn plain(work: Work) -> Self {
        Self { work, deps: Vec::new(), token: 0, span: None }
    }
}

/// All devices of the process.
#[derive(Default)]
pub struct Machine {
    /// Channels.
    pub channels: HashMap<ChannelKey, Channel>,
    /// Host functions whose turn has come.
    pub host_jobs: VecDeque<HostJob>,
    /// Threads that sleep until some marks are reached.
    pub waiters: Vec<Waiter>,
    /// When the scheduler thread is going to look again; 0: not before it is asked to.
    pub alarm: u64,
    engines: Vec<Engines>,
    /// Collectives that wait for peers.
    arrivals: Vec<(ChannelKey, Arrival)>,
    events: BinaryHeap<Reverse<(u64, u64, ChannelKey, Event)>>,
    todo: VecDeque<ChannelKey>,
    order: u64,
    next_channel: ChannelKey,
    time: u64,
}

/// The machine, locked. Lock order: machine, then the data plane, then CUPTI.
pub fn lock() -> MutexGuard<'static, Machine> {
    static MACHINE: OnceLock<Mutex<Machine>> = OnceLock::new();
    MACHINE.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

impl Machine {
    /// Opens a channel.
    pub fn open(&mut self, device: u32, priority: i32) -> ChannelKey {
        let done = PLANE.done();
        self.channels.retain(|_, c| {
            !(c.closed && c.queue.is_empty() && c.tickets.back().is_none_or(|(_, ticket)| *ticket <= done))
        });
        while self.engines.len() <= device as usize {
            self.engines.push(Engines::default());
        }
        self.next_channel += 1;
        self.channels.insert(self.next_channel, Channel::new(device, priority));
        self.next_channel
    }

    /// Closes a channel; what is in it is still done.
    pub fn close(&mut self, key: ChannelKey) {
        if let Some(channel) = self.channels.get_mut(&key) {
            channel.closed = true;
        }
    }

    /// Puts work at the end of a channel.
    pub fn submit(&mut self, key: ChannelKey, submission: Submission) -> Mark {
        let Submission { work, deps, token, span } = submission;
        let ready = clock::now().max(self.time) + config::get().submit_ns;
        let time = self.time;
        let Some(channel) = self.channels.get_mut(&key) else { return Mark { channel: key, seq: 0 } };
        channel.last_seq += 1;
        let mark = Mark { channel: key, seq: channel.last_seq };
        let needs_host = work.needs_host();
        if needs_host {
            channel.alarms.push_back(mark.seq);
        }
        let was_empty = channel.queue.is_empty();
        channel.queue.push_back(Op { seq: mark.seq, work, ready, deps, token, span, start: 0 });
        if was_empty {
            self.todo.push_back(key);
            self.work_off(time);
        }
        if needs_host {
            let start = self.start_bound(mark, time);
            threads::wake_scheduler(self, start);
        }
        mark
    }

    /// The last operation of a channel.
    pub fn tail(&self, key: ChannelKey) -> Mark {
        Mark { channel: key, seq: self.channels.get(&key).map_or(0, |c| c.last_seq) }
    }

    /// Operations of a channel that are not over.
    pub fn depth(&self, key: ChannelKey) -> usize {
        self.channels.get(&key).map_or(0, |c| c.queue.len())
    }

    /// Whether the devices have come past a mark.
    pub fn is_done(&self, mark: Mark) -> bool {
        self.channels.get(&mark.channel).is_none_or(|c| c.done_seq >= mark.seq)
    }

    /// The last data job up to a mark.
    pub fn ticket(&self, mark: Mark) -> u64 {
        self.channels.get(&mark.channel).map_or(0, |c| c.ticket_at(mark.seq))
    }

    /// Whether the devices have come past all these marks and the data are in place.
    pub fn is_settled(&self, marks: &[Mark]) -> bool {
        marks.iter().all(|mark| self.is_done(*mark))
            && (marks.iter().map(|mark| self.ticket(*mark)).max()).is_none_or(|ticket| PLANE.done() >= ticket)
    }

    /// Works off all that happens up to now.
    pub fn advance(&mut self) -> u64 {
        let now = clock::now();
        self.meet_peers();
        while let Some(Reverse((at, _, key, event))) = self.events.peek().copied() {
            if at > now {
                break;
            }
            self.events.pop();
            self.time = self.time.max(at);
            match event {
                Event::Ready => {
                    if let Some(c) = self.channels.get_mut(&key)
                        && c.state == State::AwaitReady(at)
                    {
                        c.state = State::Idle;
                        self.todo.push_back(key);
                    }
                }
                Event::End => self.finish(key, at),
            }
            self.work_off(at);
        }
        self.time = self.time.max(now);
        if !self.host_jobs.is_empty() {
            threads::wake_host_thread();
        }
        now
    }

    /// A host function has returned.
    pub fn host_done(&mut self, mark: Mark) {
        let now = self.advance();
        let waits = self.channels.get(&mark.channel).is_some_and(|c| c.state == State::AwaitHost);
        if waits && !self.is_done(mark) {
            self.finish(mark.channel, now);
            self.work_off(now);
        }
    }

    /// Waits for all channels of some set: their present ends.
    pub fn tails(&self, keys: impl Iterator<Item = ChannelKey>) -> Vec<Mark> {
        keys.map(|key| self.tail(key)).filter(|mark| !self.is_settled(&[*mark])).collect()
    }

    fn work_off(&mut self, at: u64) {
        while let Some(key) = self.todo.pop_front() {
            self.try_head(key, at);
        }
    }

    fn push_event(&mut self, at: u64, key: ChannelKey, event: Event) {
        self.order += 1;
        self.events.push(Reverse((at, self.order, key, event)));
    }

    /// Starts the operation at the head of a channel, or notes what it waits for.
    fn try_head(&mut self, key: ChannelKey, at: u64) {
        let Some(channel) = self.channels.get_mut(&key) else { return };
        let Some(head) = channel.queue.front() else { return };
        if channel.state != State::Idle {
            return;
        }
        let earliest = head.ready.max(channel.free_at);
        if earliest > at {
            channel.state = State::AwaitReady(earliest);
            self.push_event(earliest, key, Event::Ready);
            return;
        }
        let (seq, device, priority) = (head.seq, channel.device, channel.priority);
        let kernel = matches!(head.work, Work::Kernel { .. }).then(|| head.work.duration());
        let deps = head.deps.clone();
        if let Some(dep) = deps.iter().find(|dep| !self.is_done(**dep)).copied() {
            if let Some(other) = self.channels.get_mut(&dep.channel) {
                other.dependents.push((dep.seq, key));
            }
            self.set_state(key, State::AwaitDep(dep));
            return;
        }
        if let Some(duration) = kernel
            && self.engines[device as usize].kernels < config::get().concurrent_kernels
            && let Err(until) = shared::take_turn(device, at, at + duration)
        {
            // Another process has the device.
            self.set_state(key, State::AwaitReady(until));
            self.push_event(until, key, Event::Ready);
            return;
        }
        if !self.take_engine(key, device, priority) {
            self.set_state(key, State::AwaitEngine);
            return;
        }
        let ticket = deps.iter().map(|dep| self.ticket(*dep)).max().unwrap_or(0);
        let Some(channel) = self.channels.get_mut(&key) else { return };
        channel.note_ticket(seq, ticket, PLANE.done());
        while channel.alarms.front().is_some_and(|alarm| *alarm <= seq) {
            channel.alarms.pop_front();
        }
        let Some(head) = channel.queue.front_mut() else { return };
        head.start = at;
        let data = match &mut head.work {
            Work::Kernel { data, .. } | Work::Copy { data, .. } | Work::Marker { data, .. } => data.take(),
            Work::Host(_) | Work::Collective(_) => None,
        };
        let rendezvous =
            if let Work::Collective(rendezvous) = &head.work { Some(Arc::clone(rendezvous)) } else { None };
        let host = if let Work::Host(call) = &head.work { Some(*call) } else { None };
        let end = at + head.work.duration();
        let is_device_work = head.work.is_device_work();
        if let Some(job) = data {
            let ticket = PLANE.push(job);
            channel.note_ticket(seq, ticket, PLANE.done());
        }
        if let Some(call) = host {
            channel.state = State::AwaitHost;
            let ticket = channel.ticket_at(seq);
            self.host_jobs.push_back(HostJob { mark: Mark { channel: key, seq }, call, ticket });
        } else if let Some(rendezvous) = rendezvous {
            channel.state = State::AwaitPeers;
            self.arrivals.push((key, rendezvous.arrive(at)));
            self.meet_peers();
        } else if is_device_work {
            channel.state = State::Running(end);
            self.push_event(end, key, Event::End);
        } else {
            self.finish(key, at);
        }
    }

    /// Collectives whose peers have all started end when the bytes have moved. That can lie in the past: nobody looked
    /// earlier.
    fn meet_peers(&mut self) {
        let mut met = Vec::new();
        self.arrivals.retain(|(key, arrival)| match arrival.end() {
            Some(end) => {
                met.push((*key, end));
                false
            }
            None => true,
        });
        for (key, end) in met {
            self.set_state(key, State::Running(end));
            self.push_event(end, key, Event::End);
        }
    }

    fn set_state(&mut self, key: ChannelKey, state: State) {
        if let Some(channel) = self.channels.get_mut(&key) {
            channel.state = state;
        }
    }

    fn take_engine(&mut self, key: ChannelKey, device: u32, priority: i32) -> bool {
        let Some(head) = self.channels.get(&key).and_then(|c| c.queue.front()) else { return false };
        let engines = &mut self.engines[device as usize];
        self.order += 1;
        match &head.work {
            Work::Kernel { .. } | Work::Collective(_)
                if engines.kernels < config::get().concurrent_kernels =>
            {
                engines.kernels += 1;
            }
            Work::Kernel { .. } | Work::Collective(_) => {
                engines.kernel_queue.push((priority, self.order, key));
                return false;
            }
            Work::Copy { engine, .. } => {
                let engine = *engine as usize;
                if engines.copying[engine] {
                    engines.copy_queue[engine].push((priority, self.order, key));
                    return false;
                }
                engines.copying[engine] = true;
            }
            Work::Marker { .. } | Work::Host(_) => {}
        }
        true
    }

    /// Ends the operation at the head of a channel.
    fn finish(&mut self, key: ChannelKey, at: u64) {
        let Some(channel) = self.channels.get_mut(&key) else { return };
        let Some(op) = channel.queue.pop_front() else { return };
        let device = channel.device;
        channel.done_seq = op.seq;
        channel.state = State::Idle;
        if op.work.is_device_work() {
            channel.free_at = at + config::get().kernel_gap_ns;
        }
        let mut woken = Vec::new();
        channel.dependents.retain(|(seq, dependent)| {
            let waits = *seq > op.seq;
            if !waits {
                woken.push(*dependent);
            }
            waits
        });
        for dependent in woken {
            if let Some(c) = self.channels.get_mut(&dependent)
                && matches!(c.state, State::AwaitDep(_))
            {
                c.state = State::Idle;
                if op.work.is_device_work() {
                    c.free_at = c.free_at.max(at + config::get().kernel_gap_ns);
                }
                self.todo.push_back(dependent);
            }
        }
        match &op.work {
            Work::Kernel { .. } | Work::Collective(_) => {
                let engines = &mut self.engines[device as usize];
                engines.kernels -= 1;
                let next = take_first(&mut engines.kernel_queue);
                self.resume(next);
            }
            Work::Copy { engine, .. } => {
                let engine: CopyEngine = *engine;
                let engines = &mut self.engines[device as usize];
                engines.copying[engine as usize] = false;
                let next = take_first(&mut engines.copy_queue[engine as usize]);
                self.resume(next);
            }
            Work::Marker { point: Some(point), .. } => point.0.store(at, Ordering::Release),
            Work::Marker { .. } | Work::Host(_) => {}
        }
        if op.token != 0 {
            hook::op_done(op.token, device, op.start, at);
        }
        if let Some(span) = &op.span {
            span.done(op.start, at);
        }
        self.todo.push_back(key);
    }

    fn resume(&mut self, key: Option<ChannelKey>) {
        if let Some(key) = key
            && let Some(channel) = self.channels.get_mut(&key)
            && channel.state == State::AwaitEngine
        {
            channel.state = State::Idle;
            self.todo.push_back(key);
        }
    }
}

fn take_first(queue: &mut Vec<(i32, u64, ChannelKey)>) -> Option<ChannelKey> {
    let first = (0..queue.len()).min_by_key(|i| (queue[*i].0, queue[*i].1))?;
    Some(queue.remove(first).2)
}
