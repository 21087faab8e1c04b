//! Exposed collectives. The kernel of one begins on each rank when that rank's stream reaches it, and ends on all when the
//! last has come and the data has moved. So until the last rank's began it is a wait for that rank, whose cause is that
//! rank's own ledger over the same time: what its GPU waited for, or that it was still computing. The rest is transfer.

use super::copy::{by_running_op, copy_leaf};
use crate::attribute::cause::Cause;
use crate::attribute::gaps::RawGap;
use crate::attribute::path::{Edge, EvidenceTable, HopState, PathHop};
use crate::attribute::segment::Leaf;
use crate::attribute::timeline::{DeviceMoment, Meeting, OpClass, ThreadIndex, Timeline};
use crate::attribute::walk::{Chain, Walker};
use crate::event::{DeviceId, Interval, MonoNs};

/// Only collectives run.
pub fn exposed_communication(walker: &mut Walker, gap: &RawGap) {
    by_running_op(walker, gap, |walker, index, piece| {
        let chain = walker.launch_hop(index, Chain::START);
        running(walker, index, piece, chain);
    });
}

/// `time`, in which collective `index` ran.
fn running(walker: &mut Walker, index: usize, time: Interval, chain: Chain) {
    let op = walker.timeline.ops[index];
    let meeting =
        walker.timeline.meeting_of.get(&index).map(|&meeting| walker.timeline.meetings[meeting as usize]);
    let device = walker.device_name(op.device);
    let row = Some((EvidenceTable::GpuOps, op.id.0));
    let Some(meeting) = meeting else {
        let leaf = Leaf::device(device, Cause::CommWaitOrTransfer).on(op.name).resting_on(row);
        return walker.emit(time, chain, leaf);
    };
    let last = walker.timeline.ops[meeting.last];
    let arrival = last.start().clamp(time.start, time.end);
    let leaf = Leaf::device(device, Cause::CommTransfer)
        .on(op.name)
        .resting_on(row)
        .resting_on(Some((EvidenceTable::GpuOps, last.id.0)));
    walker.emit(Interval::new(arrival, time.end), chain, leaf);
    late_rank(walker, index, meeting, Interval::new(time.start, arrival), chain);
}

/// `time`, in which collective `index` waited for the last rank.
fn late_rank(walker: &mut Walker, index: usize, meeting: Meeting, time: Interval, chain: Chain) {
    if time.is_empty() || !walker.enter_rank(meeting.last, time, chain) {
        return;
    }
    let (waiting, last) = (walker.timeline.ops[index], walker.timeline.ops[meeting.last]);
    let rank = rank_name(walker, meeting);
    let device = walker.device_name(waiting.device);
    let path = walker.paths.push(PathHop {
        edge: Edge::LateRank,
        evidence: [Some((EvidenceTable::GpuOps, waiting.id.0)), Some((EvidenceTable::GpuOps, last.id.0))],
        ..Leaf::device(device, Cause::CommWaitRank).in_call(waiting.name).on(rank).hop(chain.path)
    });
    let outer = walker.turn_to(last.device);
    ledger(walker, last.device, meeting, time, Chain { path, ..chain });
    walker.turn_back(outer);
    walker.leave();
}

/// What the device of the late rank did in `time`.
fn ledger(walker: &mut Walker, device: DeviceId, meeting: Meeting, time: Interval, chain: Chain) {
    let mut rest = time;
    while !rest.is_empty() {
        let (since, op, idle) = match moment(walker.timeline, device, rest.end) {
            DeviceMoment::Running(op) => (walker.timeline.ops[op].start(), Some(op), false),
            DeviceMoment::Idle { since, next } => (since, next, true),
        };
        let piece = Interval::new(since.max(rest.start), rest.end);
        match op {
            Some(op) if idle => {
                walker.follow_op(op, piece, chain);
            }
            Some(op) => match walker.timeline.ops[op].class {
                OpClass::Compute => busy(walker, op, meeting, piece, chain),
                OpClass::Copy => {
                    let leaf = copy_leaf(walker, op);
                    walker.emit(piece, chain, leaf);
                }
                OpClass::Communication => running(walker, op, piece, chain),
            },
            // Cannot be: its own kernel of the collective comes after.
            None => {
                let name = walker.device_name(device);
                walker.emit(piece, chain, Leaf::device(name, Cause::GpuQueued));
            }
        }
        rest.end = piece.start;
    }
}

/// The late rank's GPU was computing.
fn busy(walker: &mut Walker, op: usize, meeting: Meeting, time: Interval, chain: Chain) {
    let running = walker.timeline.ops[op];
    let rank = rank_name(walker, meeting);
    let text = format!("{}: {}", walker.names.get(rank), walker.names.get(running.name));
    let object = walker.names.str(&text);
    let device = walker.device_name(running.device);
    let leaf = Leaf::device(device, Cause::CommWaitRank)
        .on(running.name)
        .resting_on(Some((EvidenceTable::GpuOps, running.id.0)));
    walker.emit(time, chain, Leaf { object, ..leaf });
}

/// What a device did just before a moment; of several ops that ran, one that computed.
fn moment(timeline: &Timeline, device: DeviceId, moment: MonoNs) -> DeviceMoment {
    let found = timeline.op_before(device, moment);
    let DeviceMoment::Running(last) = found else { return found };
    let first = timeline.device_ranges.get(&device).map_or(last, |range| range.start);
    let computes =
        (first..=last).rev().take_while(|&index| timeline.latest_ends[index] >= moment).find(|&index| {
            let op = &timeline.ops[index];
            op.class == OpClass::Compute && op.start() < moment && op.end() >= moment
        });
    DeviceMoment::Running(computes.unwrap_or(last))
}

/// `rank 2`; where the number is not known, its GPU.
fn rank_name(walker: &mut Walker, meeting: Meeting) -> crate::attribute::names::Name {
    match meeting.rank {
        Some(rank) => {
            let text = format!("rank {rank}");
            walker.names.str(&text)
        }
        None => walker.device_name(walker.timeline.ops[meeting.last].device),
    }
}

/// A thread was setting a communicator up.
pub fn set_up(walker: &mut Walker, thread: ThreadIndex, time: Interval, marker: usize, chain: Chain) {
    let marker = walker.timeline.markers[marker];
    let leaf = Leaf::thread(walker.timeline, thread, HopState::Unknown, Cause::CommInit)
        .in_call(marker.name)
        .on(marker.name)
        .resting_on(Some((EvidenceTable::Markers, marker.id.0)));
    walker.emit(time, chain, leaf);
}
