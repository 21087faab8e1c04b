//! The partition of a thread's time: running, runnable, blocked, each moment in exactly one state.

use super::timeline::{OffState, ThreadIndex, Timeline};
use crate::event::{Interval, MonoNs};

/// What a thread does in a piece of its time. Rows are indices into [`Timeline::off_cpu`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadState {
    /// On a CPU.
    Running,
    /// On its way out: after its end was recorded, before it was gone.
    Exiting,
    /// Woken or preempted, not on a CPU.
    Runnable {
        /// The interval off the CPU.
        row: usize,
    },
    /// Waiting.
    Blocked {
        /// The interval off the CPU.
        row: usize,
        /// The one whose wake-up ended the wait: `row`, or a later one of a wait that was begun again.
        ended_by: usize,
    },
    /// Stopped by a signal or debugger.
    Stopped {
        /// The interval off the CPU.
        row: usize,
    },
    /// It did not exist yet.
    Unborn,
    /// The recording had not begun.
    BeforeAttach,
    /// Nothing is known about it.
    NotRecorded,
}

/// A piece of a thread's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// When.
    pub time: Interval,
    /// What the thread did.
    pub state: ThreadState,
}

/// The last piece of `thread` within `within`, which must not be empty: it ends where `within` ends.
#[must_use]
pub fn last_piece(timeline: &Timeline, thread: ThreadIndex, within: Interval) -> Piece {
    let end = within.end;
    let piece = |start: MonoNs, state| Piece { time: Interval::new(start.max(within.start), end), state };
    let rows = timeline.thread(thread);
    let range = rows.off_cpu.clone();
    let before = timeline.off_cpu[range.clone()].partition_point(|row| row.off < end);
    let Some(index) = before.checked_sub(1).map(|last| range.start + last) else {
        return before_first_row(timeline, thread, within);
    };
    let row = &timeline.off_cpu[index];
    if row.ended_by as usize != index {
        let begun = first_of_wait(timeline, index, range.start, within.start);
        let off = timeline.off_cpu[begun].off;
        return piece(off, ThreadState::Blocked { row: begun, ended_by: row.ended_by as usize });
    }
    // A row whose end was not recorded ends at the latest where the next begins.
    let next_off = if index + 1 < range.end { timeline.off_cpu[index + 1].off } else { MonoNs::MAX };
    let on = row.on.min(next_off);
    let woken = row.woken.min(on);
    if end > on {
        return match rows.end {
            Some(died) if died < end && died > on => piece(died, ThreadState::Exiting),
            _ => piece(on, ThreadState::Running),
        };
    }
    if end > woken {
        return piece(woken, ThreadState::Runnable { row: index });
    }
    if row.state == OffState::Stopped {
        return piece(row.off, ThreadState::Stopped { row: index });
    }
    let begun = first_of_wait(timeline, index, range.start, within.start);
    piece(timeline.off_cpu[begun].off, ThreadState::Blocked { row: begun, ended_by: index })
}

/// The first interval, not before `earliest` and holding or following the moment `from`, of the wait that goes on in `index`.
fn first_of_wait(timeline: &Timeline, index: usize, earliest: usize, from: MonoNs) -> usize {
    let ended_by = timeline.off_cpu[index].ended_by;
    let mut first = index;
    while first > earliest
        && timeline.off_cpu[first].off > from
        && timeline.off_cpu[first - 1].ended_by == ended_by
    {
        first -= 1;
    }
    first
}

/// The time before the first interval off the CPU.
fn before_first_row(timeline: &Timeline, thread: ThreadIndex, within: Interval) -> Piece {
    let rows = timeline.thread(thread);
    let end = within.end;
    let piece = |start: MonoNs, state| Piece { time: Interval::new(start.max(within.start), end), state };
    // Of a recording without scheduler data nothing is known but what the thread itself says: its calls and ranges.
    // A kernel thread's time is recorded from its first interval on: without one, it may have been asleep.
    let (Some(start), false) = (rows.start, rows.is_kernel() || timeline.imported) else {
        return piece(within.start, ThreadState::NotRecorded);
    };
    if end > start {
        return match rows.end {
            Some(died) if died < end && died > start => piece(died, ThreadState::Exiting),
            _ => piece(start, ThreadState::Running),
        };
    }
    if rows.before_attach || start <= timeline.recording.start {
        return piece(within.start, ThreadState::BeforeAttach);
    }
    piece(within.start, ThreadState::Unborn)
}
