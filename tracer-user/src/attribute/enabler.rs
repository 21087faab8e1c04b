//! What had drained the launch queue: without that synchronising call, the work would already have been queued.

use super::busy::Activity;
use super::gaps::RawGap;
use super::timeline::{DeviceMoment, NO_INDEX, Op, Timeline};
use crate::event::{CLOCK_NOISE, Interval};

/// The enabler of a gap. Where a collective waited for a late rank, that of the late rank.
#[must_use]
pub fn of_gap(timeline: &Timeline, gap: &RawGap) -> Option<usize> {
    if gap.activity == Activity::ExposedComm
        && let DeviceMoment::Running(op) = timeline.op_before(gap.device, gap.time.end)
        && let Some(&meeting) = timeline.meeting_of.get(&op)
    {
        let index = timeline.meetings[meeting as usize].last;
        let last = &timeline.ops[index];
        // Since its own GPU had run out of work.
        let before = index.checked_sub(1).filter(|&before| timeline.ops[before].device == last.device);
        let idle = before.map_or(gap.time.start, |before| timeline.latest_ends[before]);
        return enabler(timeline, last, Interval::new(idle.min(last.start()), last.start()));
    }
    gap.next.and_then(|next| enabler(timeline, &timeline.ops[next], gap.time))
}

/// The last synchronising CUDA call of the launching thread that ended within the gap, before the launch of the op that
/// ended the gap, and that had begun before the gap did; an index into [`Timeline::api`].
///
/// The end of the op before the gap is a time of the device, the call's end one of the host: a call that seems to return a
/// moment before the op that it waited for has ended did not.
#[must_use]
pub fn enabler(timeline: &Timeline, next: &Op, gap: Interval) -> Option<usize> {
    if next.launch == NO_INDEX {
        return None;
    }
    let launch = next.launch as usize;
    let calls = timeline.thread(timeline.api[launch].thread).api.clone();
    // Calls that began before the gap lie before those that began in it; the drain is the last of them.
    let begun =
        calls.start + timeline.api[calls.clone()].partition_point(|call| call.time.start <= gap.start);
    let last = begun.min(launch).checked_sub(1).filter(|&last| last >= calls.start)?;
    let drained =
        (calls.start..=last).rev().take(8).find(|&index| timeline.api[index].kind.drains_queue())?;
    let end = timeline.api[drained].time.end;
    let latest = end + timeline.clock_residual + CLOCK_NOISE;
    (gap.start <= latest && end <= timeline.api[launch].time.start).then(|| timeline.outermost(drained))
}
