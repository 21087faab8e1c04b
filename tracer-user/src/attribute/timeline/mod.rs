//! What the attribution reads: the tables of a recording, interned, sorted and joined, so that every question that the
//! walk asks is a binary search.

mod build;
mod join;
mod op;
mod requests;
mod row;
pub mod sample;

use std::collections::{HashMap, HashSet};

pub use build::TimelineBuilder;
pub use op::{CopyKind, Op, OpClass, is_collective};
pub use requests::Requests;
pub use row::{
    ApiCall, Call, LossKind, Lost, Marker, MarkerKind, NO_INDEX, Nested, OffCpu, OffState, ProcessRow,
    Request, Sync, Taken, TakenBy, ThreadIndex, ThreadKind, ThreadRows, Waker,
};

pub use sample::Sample;

use super::names::{Name, Names};
use super::wake_edge::is_tool_name;
use crate::event::{ContextId, CorrelationId, DeviceId, DurationNs, Interval, MonoNs, Pid, Tid};

/// A recording as the attribution sees it. Made by [`TimelineBuilder`].
#[derive(Debug, Default)]
pub struct Timeline {
    /// All strings.
    pub names: Names,
    /// From the first to the last moment of the recording.
    pub recording: Interval,
    /// The recorder's process.
    pub recorder: Option<Pid>,
    /// Largest error of the conversion of GPU times.
    pub clock_residual: DurationNs,
    /// Valid ops by device and start.
    pub ops: Vec<Op>,
    /// For each op the op before it on its stream, or [`NO_INDEX`].
    pub stream_predecessors: Vec<u32>,
    /// For each op the latest end among the ops of its device up to and including it.
    pub latest_ends: Vec<MonoNs>,
    /// Where the ops of each device lie.
    pub device_ranges: HashMap<DeviceId, std::ops::Range<usize>>,
    /// Ops whose times contradict their launch; their time is unknown.
    pub invalid_ops: usize,
    /// Threads by process and thread.
    pub threads: Vec<ThreadRows>,
    /// Off-CPU intervals by thread and time.
    pub off_cpu: Vec<OffCpu>,
    /// System calls by thread and time.
    pub syscalls: Vec<Call>,
    /// CUDA calls by thread and time, a call before those nested in it.
    pub api: Vec<ApiCall>,
    /// Marked ranges by thread and time, a range before those nested in it.
    pub markers: Vec<Marker>,
    /// Stack samples by thread and time.
    pub samples: Vec<Sample>,
    /// Where each thread set communicators up: indices into `markers`, by time, none within another.
    pub set_ups: HashMap<ThreadIndex, Vec<u32>>,
    /// The recording is another tool's: what a thread did between its calls and ranges is not known.
    pub imported: bool,
    /// Synchronisations by process and correlation.
    pub syncs: Vec<Sync>,
    /// Where streams were told to wait for an event: indices into `syncs`, by process, stream and time.
    pub stream_waits: Vec<u32>,
    /// What was taken of threads' time, by thread and time; those of one thread do not overlap.
    pub taken: Vec<Taken>,
    /// When segments of each TCP connection (`local -> peer`) were sent again, in order.
    pub retransmits: HashMap<Name, Vec<MonoNs>>,
    /// Block requests.
    pub requests: Requests,
    /// Intervals in which nothing is blamed, by start.
    pub losses: Vec<Lost>,
    /// Processes.
    pub processes: HashMap<Pid, ProcessRow>,
    /// The device of each context, as its ops show.
    pub devices: HashMap<(Pid, ContextId), DeviceId>,
    /// Where all ranks of a collective met, each once.
    pub meetings: Vec<Meeting>,
    /// For ops that are a collective of which all ranks are recorded, an index into `meetings`.
    pub meeting_of: HashMap<usize, u32>,
    /// The smallest correlation id among the CUDA calls of each process.
    pub first_correlation: HashMap<Pid, CorrelationId>,
    /// Devices of which only the driver's calls tell: their gaps are bounds.
    pub bounded: HashSet<DeviceId>,
}

/// A collective of which all ranks are recorded.
#[derive(Clone, Copy, Debug)]
pub struct Meeting {
    /// The op of the rank that came last, an index into [`Timeline::ops`].
    pub last: usize,
    /// Which rank that is.
    pub rank: Option<i32>,
}

/// What a device did just before a moment. Ops are indices into [`Timeline::ops`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceMoment {
    /// This op ran.
    Running(usize),
    /// Nothing ran.
    Idle {
        /// When the last op ended.
        since: MonoNs,
        /// The op that began next.
        next: Option<usize>,
    },
}

impl Timeline {
    /// A thread's rows.
    #[must_use]
    pub fn thread(&self, thread: ThreadIndex) -> &ThreadRows {
        &self.threads[thread.0 as usize]
    }

    /// Whether a task of this process and name works for gtrace or CUPTI.
    #[must_use]
    pub fn is_tool(&self, pid: Pid, comm: Name) -> bool {
        self.recorder == Some(pid) || is_tool_name(self.names.get(comm))
    }

    /// The thread with these ids.
    #[must_use]
    pub fn find_thread(&self, pid: Pid, tid: Tid) -> Option<ThreadIndex> {
        self.threads
            .binary_search_by_key(&(pid, tid), |thread| (thread.pid, thread.tid))
            .ok()
            .map(|index| ThreadIndex(index as u32))
    }

    /// The first thread of the process that made this thread: its own one's, or for a first thread the parent's.
    #[must_use]
    pub fn maker(&self, thread: ThreadIndex) -> Option<ThreadIndex> {
        let rows = self.thread(thread);
        let first = rows.pid.0 == rows.tid.0;
        let pid = if first { self.processes.get(&rows.pid)?.parent? } else { rows.pid };
        self.find_thread(pid, Tid(pid.0))
    }

    /// The devices that have ops, each with the range of its ops.
    #[must_use]
    pub fn device_ops(&self) -> Vec<(DeviceId, std::ops::Range<usize>)> {
        let mut devices: Vec<(DeviceId, std::ops::Range<usize>)> = Vec::new();
        for (index, op) in self.ops.iter().enumerate() {
            match devices.last_mut() {
                Some((device, range)) if *device == op.device => range.end = index + 1,
                _ => devices.push((op.device, index..index + 1)),
            }
        }
        devices
    }

    /// The system call of `thread` that holds the moment just before `moment`, and the latest boundary of its system calls
    /// before `moment`.
    #[must_use]
    pub fn system_call_before(&self, thread: ThreadIndex, moment: MonoNs) -> (Option<usize>, MonoNs) {
        let range = self.thread(thread).syscalls.clone();
        let calls = &self.syscalls[range.clone()];
        let Some(index) = calls.partition_point(|call| call.time.start < moment).checked_sub(1) else {
            return (None, MonoNs::MIN);
        };
        let time = calls[index].time;
        if time.end >= moment { (Some(range.start + index), time.start) } else { (None, time.end) }
    }

    /// The system call of `thread` that began at `start`.
    #[must_use]
    pub fn system_call_at(&self, thread: ThreadIndex, start: MonoNs) -> Option<usize> {
        let range = self.thread(thread).syscalls.clone();
        self.syscalls[range.clone()]
            .binary_search_by_key(&start, |call| call.time.start)
            .ok()
            .map(|index| range.start + index)
    }

    /// What was taken of `thread`'s time just before `moment`, and the latest boundary of such stretches before `moment`.
    #[must_use]
    pub fn taken_before(&self, thread: ThreadIndex, moment: MonoNs) -> (Option<usize>, MonoNs) {
        let range = self.thread(thread).taken.clone();
        let taken = &self.taken[range.clone()];
        let Some(index) = taken.partition_point(|piece| piece.time.start < moment).checked_sub(1) else {
            return (None, MonoNs::MIN);
        };
        let time = taken[index].time;
        if time.end >= moment { (Some(range.start + index), time.start) } else { (None, time.end) }
    }

    /// What was last taken of `thread`'s time before `moment`, over by then.
    #[must_use]
    pub fn last_taken(&self, thread: ThreadIndex, moment: MonoNs) -> Option<&Taken> {
        let taken = &self.taken[self.thread(thread).taken.clone()];
        let begun = taken.partition_point(|piece| piece.time.start < moment);
        taken[..begun].last().filter(|piece| piece.time.end <= moment)
    }

    /// Whether a segment of a connection was sent again in `time`.
    #[must_use]
    pub fn retransmitted(&self, connection: Name, time: Interval) -> bool {
        self.retransmits.get(&connection).is_some_and(|times| {
            let first = times.partition_point(|&sent| sent < time.start);
            times.get(first).is_some_and(|&sent| sent < time.end)
        })
    }

    /// The innermost CUDA call of `thread` that holds the moment just before `moment`, and the latest boundary of its CUDA
    /// calls before `moment`.
    #[must_use]
    pub fn api_call_before(&self, thread: ThreadIndex, moment: MonoNs) -> (Option<usize>, MonoNs) {
        innermost_before(&self.api, self.thread(thread).api.clone(), moment)
    }

    /// The innermost marked range of `thread` that holds the moment just before `moment`, and the latest boundary of its
    /// ranges before `moment`.
    #[must_use]
    pub fn marker_before(&self, thread: ThreadIndex, moment: MonoNs) -> (Option<usize>, MonoNs) {
        innermost_before(&self.markers, self.thread(thread).markers.clone(), moment)
    }

    /// The stack samples of `thread` in `time`.
    #[must_use]
    pub fn samples_in(&self, thread: ThreadIndex, time: Interval) -> &[Sample] {
        let samples = &self.samples[self.thread(thread).samples.clone()];
        let first = samples.partition_point(|sample| sample.time < time.start);
        let end = samples.partition_point(|sample| sample.time < time.end);
        samples.get(first..end).unwrap_or_default()
    }

    /// The set-up of a communicator in which `thread` was just before `moment`, an index into `markers`, and the latest
    /// boundary of its set-ups before `moment`.
    #[must_use]
    pub fn set_up_before(&self, thread: ThreadIndex, moment: MonoNs) -> (Option<usize>, MonoNs) {
        let Some(set_ups) = self.set_ups.get(&thread) else { return (None, MonoNs::MIN) };
        let time = |index: u32| self.markers[index as usize].time;
        let begun = set_ups.partition_point(|&index| time(index).start < moment);
        let Some(&last) = begun.checked_sub(1).and_then(|last| set_ups.get(last)) else {
            return (None, MonoNs::MIN);
        };
        let time = time(last);
        if time.end >= moment { (Some(last as usize), time.start) } else { (None, time.end) }
    }

    /// The outermost CUDA call around `call`, itself if there is none.
    #[must_use]
    pub fn outermost(&self, call: usize) -> usize {
        let mut index = call;
        while self.api[index].parent != NO_INDEX {
            index = self.api[index].parent as usize;
        }
        index
    }

    /// The last op of `device` that began before `moment`, and whether one of them ran just before `moment`: then that one.
    #[must_use]
    pub fn op_before(&self, device: DeviceId, moment: MonoNs) -> DeviceMoment {
        let range = self.device_ranges.get(&device).cloned().unwrap_or_default();
        let ops = &self.ops[range.clone()];
        let begun = ops.partition_point(|op| op.start() < moment);
        let next = (begun < ops.len()).then_some(range.start + begun);
        let Some(last) = begun.checked_sub(1).map(|last| range.start + last) else {
            return DeviceMoment::Idle { since: MonoNs::MIN, next };
        };
        if self.latest_ends[last] < moment {
            return DeviceMoment::Idle { since: self.latest_ends[last], next };
        }
        let running = (range.start..=last).rev().find(|&index| self.ops[index].end() >= moment);
        running.map_or(DeviceMoment::Idle { since: MonoNs::MIN, next }, DeviceMoment::Running)
    }

    /// The synchronisation that belongs to a CUDA call.
    #[must_use]
    pub fn sync_of(&self, pid: Pid, correlation: CorrelationId) -> Option<&Sync> {
        let first = self.syncs.partition_point(|sync| (sync.pid, sync.correlation) < (pid, correlation));
        self.syncs.get(first).filter(|sync| (sync.pid, sync.correlation) == (pid, correlation))
    }
}

/// The innermost of a thread's `rows` in `range` that holds the moment just before `moment`, and the latest boundary before
/// `moment`.
fn innermost_before<T: Nested>(
    rows: &[T],
    range: std::ops::Range<usize>,
    moment: MonoNs,
) -> (Option<usize>, MonoNs) {
    let begun = rows[range.clone()].partition_point(|row| row.time().start < moment);
    let Some(last) = begun.checked_sub(1) else { return (None, MonoNs::MIN) };
    let mut index = (range.start + last) as u32;
    let mut boundary = MonoNs::MIN;
    while index != NO_INDEX {
        let row = &rows[index as usize];
        if row.time().end >= moment {
            return (Some(index as usize), boundary.max(row.time().start));
        }
        boundary = boundary.max(row.time().end);
        index = row.parent();
    }
    (None, boundary)
}
