//! The time of the threads that GPU work depends on, cut into spans that each say what they last for.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::Key;
use crate::attribute::cause::Cause;
use crate::attribute::cuda_call::CudaCall;
use crate::attribute::role::Roles;
use crate::attribute::thread_time::{Piece, ThreadState, last_piece};
use crate::attribute::timeline::{DeviceMoment, NO_INDEX, ThreadIndex, Timeline};
use crate::attribute::wake_edge::{WakeEdge, has_timeline, wake_edge};
use crate::attribute::walk::{Walker, freeing_memory};
use crate::event::{DeviceId, Interval, MonoNs, Pid};

/// What the end of a span waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// The thread itself, for as long as it lasts: work, a device, a timer, a CPU.
    Itself,
    /// The moment in this thread's own time at which the span ends: it wakes this one.
    Thread(ThreadIndex),
    /// The end of this op, an index into [`Timeline::ops`].
    Op(u32),
}

/// A piece of a thread's time.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// As recorded.
    pub time: Interval,
    /// What ends it.
    pub until: Until,
    /// Why it took time; of use where it lasts for itself.
    pub key: Key,
}

/// The spans of each thread that launches work, and of those that they wait for, in order of time and without holes.
pub type Spans = HashMap<ThreadIndex, Vec<Span>, RandomState>;

/// Cuts the time of the launching threads, and of all that they wait for, within `window`.
#[must_use]
pub fn of_threads(timeline: &Timeline, roles: &Roles, window: Interval) -> Spans {
    let devices = devices_of_processes(timeline);
    let mut cutter =
        Cutter { timeline, roles, walker: Walker::new(timeline, roles), window, devices, found: Vec::new() };
    let mut todo: Vec<ThreadIndex> = timeline
        .ops
        .iter()
        .filter(|op| op.launch != NO_INDEX && op.end() > window.start && op.start() < window.end)
        .map(|op| timeline.api[op.launch as usize].thread)
        .collect();
    let mut spans = Spans::default();
    while let Some(thread) = todo.pop() {
        if spans.contains_key(&thread) {
            continue;
        }
        let cut = cutter.cut(thread);
        spans.insert(thread, cut);
        todo.append(&mut cutter.found);
    }
    spans
}

fn devices_of_processes(timeline: &Timeline) -> HashMap<Pid, DeviceId, RandomState> {
    let mut devices = HashMap::default();
    for (&(pid, _), &device) in &timeline.devices {
        let first = devices.entry(pid).or_insert(device);
        *first = device.min(*first);
    }
    devices
}

struct Cutter<'a> {
    timeline: &'a Timeline,
    roles: &'a Roles,
    walker: Walker<'a>,
    window: Interval,
    devices: HashMap<Pid, DeviceId, RandomState>,
    /// Threads that were waited for.
    found: Vec<ThreadIndex>,
}

impl Cutter<'_> {
    fn cut(&mut self, thread: ThreadIndex) -> Vec<Span> {
        let mut spans = Vec::new();
        let mut cursor = self.window.start;
        for (wait, op) in self.waits_for_ops(thread) {
            self.own_time(thread, Interval::new(cursor, wait.start), &mut spans);
            spans.push(Span { time: wait, until: Until::Op(op), key: Key::of(Cause::CudaSync, None) });
            cursor = wait.end;
        }
        self.own_time(thread, Interval::new(cursor, self.window.end), &mut spans);
        spans
    }

    /// Where the thread was inside a call that waited for an op, until that op's end.
    fn waits_for_ops(&self, thread: ThreadIndex) -> Vec<(Interval, u32)> {
        let timeline = self.timeline;
        let mut waits: Vec<(Interval, u32)> = Vec::new();
        for (offset, call) in timeline.api[timeline.thread(thread).api.clone()].iter().enumerate() {
            let outside = call.time.start < self.window.start || call.time.end > self.window.end;
            if outside || call.parent != NO_INDEX || !call.kind.drains_queue() {
                continue;
            }
            let index = timeline.thread(thread).api.start + offset;
            let Some(op) = self.awaited(index) else { continue };
            let start = waits.last().map_or(call.time.start, |(last, _)| call.time.start.max(last.end));
            let wait = Interval::new(start, timeline.ops[op].end());
            if !wait.is_empty() {
                waits.push((wait, op as u32));
            }
        }
        waits
    }

    /// The op whose end the call waited for: of those launched before the call (by a copy: in it) the one that ended last
    /// while it lasted.
    fn awaited(&self, call: usize) -> Option<usize> {
        let timeline = self.timeline;
        let row = &timeline.api[call];
        let pid = timeline.thread(row.thread).pid;
        let sync = timeline.sync_of(pid, row.correlation).filter(|sync| !sync.stream_wait);
        let stream = sync.and_then(|sync| Some((sync.context, sync.stream?)));
        let concerns = |index: usize| {
            let op = &timeline.ops[index];
            let launched = if op.launch == NO_INDEX {
                MonoNs::MIN
            } else if op.launch as usize == call {
                row.time.start
            } else {
                timeline.api[op.launch as usize].time.start
            };
            let copy = row.kind == CudaCall::Copy;
            op.pid == pid
                && op.end() > row.time.start
                && op.end() <= row.time.end
                && launched <= row.time.start
                && stream.is_none_or(|stream| stream == (op.context, op.stream))
                && (!copy || op.launch as usize == call)
        };
        timeline
            .device_ranges
            .values()
            .filter_map(|range| {
                let ops = &timeline.ops[range.clone()];
                let begun = range.start + ops.partition_point(|op| op.start() < row.time.end);
                // Streams seldom overlap by many ops.
                (range.start..begun)
                    .rev()
                    .take(64)
                    .filter(|&op| concerns(op))
                    .max_by_key(|&op| timeline.ops[op].end())
            })
            .max_by_key(|&op| (timeline.ops[op].end(), timeline.ops[op].id))
    }

    /// Cuts time that the thread spent outside such calls.
    fn own_time(&mut self, thread: ThreadIndex, time: Interval, spans: &mut Vec<Span>) {
        let first = spans.len();
        let mut rest = time;
        while !rest.is_empty() {
            let (set_up, boundary) = self.timeline.set_up_before(thread, rest.end);
            let within = Interval::new(boundary.max(rest.start), rest.end);
            if set_up.is_some() {
                let key = Key::of(Cause::CommInit, None);
                spans.push(Span { time: within, until: Until::Itself, key });
                rest.end = within.start;
                continue;
            }
            let piece = last_piece(self.timeline, thread, within);
            if let Some(waker) = self.waits_for(thread, piece.state, rest.end) {
                self.found.push(waker);
                let key = Key::of(Cause::HostLock, None);
                spans.push(Span { time: piece.time, until: Until::Thread(waker), key });
            } else {
                self.explained(thread, piece, spans);
            }
            rest.end = piece.time.start;
        }
        spans[first..].reverse();
    }

    /// The thread that ended a wait, or that made this one.
    fn waits_for(&self, thread: ThreadIndex, state: ThreadState, end: MonoNs) -> Option<ThreadIndex> {
        let timeline = self.timeline;
        let waker = match state {
            ThreadState::Blocked { row, ended_by } if !timeline.imported => {
                if freeing_memory(timeline, thread, end, row).is_some() {
                    return None;
                }
                match wake_edge(timeline, &timeline.off_cpu[ended_by]) {
                    WakeEdge::Task(waker) | WakeEdge::Network(Some(waker)) => waker,
                    _ => return None,
                }
            }
            ThreadState::Unborn => timeline.maker(thread)?,
            _ => return None,
        };
        let other = waker != thread && has_timeline(timeline, waker) && !timeline.thread(waker).is_tool();
        other.then_some(waker)
    }

    /// Adds the causes of a piece, the last one first.
    fn explained(&mut self, thread: ThreadIndex, piece: Piece, spans: &mut Vec<Span>) {
        let pid = self.timeline.thread(thread).pid;
        let device = self.devices.get(&pid).copied().unwrap_or_default();
        let role = self.roles.get(thread);
        let segments = self.walker.explain(device, thread, piece);
        spans.extend(segments.iter().rev().map(|segment| Span {
            time: segment.time,
            until: Until::Itself,
            key: Key::of(segment.cause, role),
        }));
    }
}

/// What a device does just before a moment, where that is an op.
#[must_use]
pub fn running_before(timeline: &Timeline, device: DeviceId, moment: MonoNs) -> Option<usize> {
    match timeline.op_before(device, moment) {
        DeviceMoment::Running(op) => Some(op),
        DeviceMoment::Idle { .. } => None,
    }
}
