//! What the device waited for before it started an op that had been launched already.

use super::cuda_call::CudaCall;
use super::timeline::{NO_INDEX, Op, Timeline};
use crate::event::{DurationNs, MonoNs};

/// A launch takes 2–20 µs from the call's return to the kernel's start; what takes longer waited for something.
pub const SUBMIT_LATENCY_LIMIT: DurationNs = DurationNs(50_000);

/// Why an op did not start as soon as it was submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeldBy {
    /// It was on its way.
    Submission,
    /// The op before it on its stream, or the one that an event stood for; an index into [`Timeline::ops`].
    Op {
        /// That op.
        op: usize,
        /// Whether it is only known by overlap that it is that op.
        inferred: bool,
    },
    /// A host function on its stream; an index into [`Timeline::api`].
    HostFunction(usize),
    /// The device changed over from this op of another process.
    OtherProcess(usize),
    /// Nothing visible.
    Nothing,
}

/// The op on another device that `op` waited for through an event and that ended last within `(after, start of op]`.
#[must_use]
pub fn producer_elsewhere(timeline: &Timeline, op: usize, after: MonoNs) -> Option<usize> {
    waits_for_event(timeline, op)?;
    let waiting = &timeline.ops[op];
    timeline
        .device_ranges
        .iter()
        .filter(|&(&device, _)| device != waiting.device)
        .filter_map(|(_, range)| {
            let ops = &timeline.ops[range.clone()];
            let begun = ops.partition_point(|other| other.start() < waiting.start());
            // Ops of one device seldom overlap by many: the latest end is found a few steps back.
            (0..begun)
                .rev()
                .take(64)
                .map(|index| range.start + index)
                .filter(|&index| {
                    let other = &timeline.ops[index];
                    other.pid == waiting.pid && other.end() > after && other.end() <= waiting.start()
                })
                .max_by_key(|&index| (timeline.ops[index].end(), timeline.ops[index].id))
        })
        .max_by_key(|&index| (timeline.ops[index].end(), timeline.ops[index].id))
}

/// The record of `op`'s stream having been told to wait for an event since the op before it was launched.
#[must_use]
pub fn waits_for_event(timeline: &Timeline, op: usize) -> Option<u32> {
    let waiting = &timeline.ops[op];
    let launched = launch_start(timeline, waiting)?;
    let before = timeline.stream_predecessors[op];
    let since = (before != NO_INDEX)
        .then(|| launch_start(timeline, &timeline.ops[before as usize]))
        .flatten()
        .unwrap_or(MonoNs::MIN);
    let key = (waiting.pid, Some(waiting.stream));
    let end = timeline.stream_waits.partition_point(|&index| {
        let sync = &timeline.syncs[index as usize];
        (sync.pid, sync.stream, sync.start) <= (key.0, key.1, launched)
    });
    let index = *timeline.stream_waits.get(end.checked_sub(1)?)?;
    let sync = &timeline.syncs[index as usize];
    ((sync.pid, sync.stream) == key && sync.context == waiting.context && sync.start >= since)
        .then_some(index)
}

fn launch_start(timeline: &Timeline, op: &Op) -> Option<MonoNs> {
    (op.launch != NO_INDEX).then(|| timeline.api[op.launch as usize].time.start)
}

/// What held `op`, launched before the device became idle; `previous` is the op that ended last before that.
#[must_use]
pub fn held_by(timeline: &Timeline, op: usize, previous: Option<usize>) -> HeldBy {
    let waiting = &timeline.ops[op];
    if waiting.launch == NO_INDEX {
        return HeldBy::Nothing;
    }
    let launched = timeline.api[waiting.launch as usize].time.end;
    let predecessor =
        Some(timeline.stream_predecessors[op]).filter(|&index| index != NO_INDEX).map(|index| index as usize);
    let short = waiting.start() - launched.max(previous.map_or(launched, |op| timeline.ops[op].end()))
        <= SUBMIT_LATENCY_LIMIT;
    if let Some(call) = host_function_between(timeline, op, predecessor)
        && !short
    {
        return HeldBy::HostFunction(call);
    }
    if let Some(predecessor) = predecessor
        && timeline.ops[predecessor].end() > launched
        && waiting.start() - timeline.ops[predecessor].end() <= SUBMIT_LATENCY_LIMIT
    {
        return HeldBy::Op { op: predecessor, inferred: false };
    }
    if let Some(previous) = previous {
        if timeline.ops[previous].pid != waiting.pid {
            return HeldBy::OtherProcess(previous);
        }
        if short && timeline.ops[previous].end() > launched && waits_for_event(timeline, op).is_some() {
            return HeldBy::Op { op: previous, inferred: true };
        }
    }
    if waiting.start() - launched <= SUBMIT_LATENCY_LIMIT { HeldBy::Submission } else { HeldBy::Nothing }
}

/// A host function that the launching thread put between the predecessor and the op. Calls carry no stream, so that this
/// is an inference.
fn host_function_between(timeline: &Timeline, op: usize, predecessor: Option<usize>) -> Option<usize> {
    let launch = timeline.ops[op].launch as usize;
    let thread = timeline.api[launch].thread;
    let first = timeline.thread(thread).api.start;
    let stop = predecessor.map_or(NO_INDEX, |index| timeline.ops[index].launch);
    // A few calls stand between two launches of a stream; a longer way back says nothing about this stream.
    (first..launch)
        .rev()
        .take(256)
        .take_while(|&index| index as u32 != stop)
        .find(|&index| timeline.api[index].kind == CudaCall::HostFunction)
}
