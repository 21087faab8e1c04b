//! Waits that are begun again: a timed wait that ran out and was at once repeated on the same object is **one** wait,
//! ended by the edge that really ended it. A thread that wants Python's interpreter lock waits anew every 5 ms;
//! condition variables with time-outs and poll loops do the same. Read one by one, all of them would be "a timer".

use super::timeline::{OffState, ThreadIndex, Timeline, Waker};
use crate::event::DurationNs;

/// Longest time on the CPU between two waits that are one: waking up, looking at a flag and calling again takes a few
/// microseconds, a few tens with system call tracing.
const AT_ONCE: DurationNs = DurationNs(200_000);

/// Sets `ended_by` of every off-CPU interval.
pub fn join_waits_begun_again(timeline: &mut Timeline) {
    for thread in 0..timeline.threads.len() {
        let thread = ThreadIndex(thread as u32);
        let rows = timeline.thread(thread).off_cpu.clone();
        for index in rows.clone().rev() {
            let next = index + 1;
            let ended_by = if next < rows.end && is_same_wait(timeline, thread, index, next) {
                timeline.off_cpu[next].ended_by
            } else {
                index as u32
            };
            timeline.off_cpu[index].ended_by = ended_by;
        }
    }
}

/// Whether the interval `next` goes on with the wait of the interval before it.
fn is_same_wait(timeline: &Timeline, thread: ThreadIndex, index: usize, next: usize) -> bool {
    let (row, after) = (&timeline.off_cpu[index], &timeline.off_cpu[next]);
    if row.waker != Waker::Timer
        || row.state != OffState::Waiting
        || after.off - row.on.min(after.off) > AT_ONCE
    {
        return false;
    }
    let syscall = timeline.names.get(row.syscall);
    if !super::system_call::SystemCall::of(syscall).can_wait_again() || after.syscall != row.syscall {
        return false;
    }
    let object = |start| timeline.system_call_at(thread, start).map(|call| timeline.syscalls[call].object);
    after.state == OffState::Waiting && object(row.syscall_start) == object(after.syscall_start)
}
