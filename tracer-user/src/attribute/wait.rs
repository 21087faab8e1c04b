//! Waits that are begun again: a timed wait that ran out and was at once repeated on the same object is **one** wait,
//! ended by the edge that really ended it. A thread that wants Python's interpreter lock waits anew every 5 ms;
//! condition variables with time-outs and poll loops do the same. Read one by one, all of them would be "a timer".

use super::names::Name;
use super::system_call::SystemCall;
use super::timeline::{OffCpu, OffState, ThreadIndex, Timeline, Waker};
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

/// Whether the interval `next` goes on with the wait of the interval before it: that was ended by its time-out, or nobody
/// knows by what, and the same call on the same object followed at once.
fn is_same_wait(timeline: &Timeline, thread: ThreadIndex, index: usize, next: usize) -> bool {
    let (row, after) = (&timeline.off_cpu[index], &timeline.off_cpu[next]);
    let waiting = row.state == OffState::Waiting;
    let timed_out = row.waker == Waker::Timer && waiting;
    // Of a wait for the interpreter lock that nobody was seen ending, the time-out is the likely end, and not having got the
    // lock is why it is begun again.
    let unseen = row.state == OffState::Unseen
        || (waiting && row.waker == Waker::None && is_interpreter_lock(timeline, thread, row));
    if !(timed_out || unseen) || after.off - row.on.min(after.off) > AT_ONCE {
        return false;
    }
    let kind = SystemCall::of(timeline.names.get(row.syscall));
    if !kind.can_wait_again() || after.syscall != row.syscall {
        return false;
    }
    let object = |start| {
        let call = timeline.system_call_at(thread, start)?;
        Some(timeline.syscalls[call].object)
    };
    let (first, second) = (object(row.syscall_start), object(after.syscall_start));
    let same = first == second
        || (kind == SystemCall::Futex
            && first.zip(second).is_some_and(|(a, b)| is_same_condition(timeline, a, b)));
    same && matches!(after.state, OffState::Waiting | OffState::Unseen)
}

/// Whether an interval is a wait for CPython's interpreter lock.
fn is_interpreter_lock(timeline: &Timeline, thread: ThreadIndex, row: &OffCpu) -> bool {
    let call = timeline.system_call_at(thread, row.syscall_start);
    call.is_some_and(|call| timeline.names.get(timeline.syscalls[call].object_kind) == "gil")
}

/// Whether two futex words are neighbours: a condition variable of glibc has two (`__g_signals`), and a thread that waits
/// for it anew may wait on the other one.
fn is_same_condition(timeline: &Timeline, first: Name, second: Name) -> bool {
    let address = |name: Name| {
        let digits = timeline.names.get(name).strip_prefix("0x")?;
        u64::from_str_radix(digits, 16).ok()
    };
    address(first).zip(address(second)).is_some_and(|(first, second)| first / 8 == second / 8)
}
