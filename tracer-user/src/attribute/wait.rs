//! Waits that are begun again: a timed wait that ran out and was at once repeated on the same object is **one** wait,
//! ended by the edge that really ended it. A thread that wants Python's interpreter lock waits anew every 5 ms;
//! condition variables with time-outs and poll loops do the same. Read one by one, all of them would be "a timer".

use std::collections::HashSet;

use super::names::Name;
use super::system_call::SystemCall;
use super::timeline::{NO_INDEX, OffCpu, OffState, ThreadIndex, Timeline, Waker};
use crate::event::{DurationNs, MonoNs};

/// Longest time on the CPU between two waits that are one: waking up, looking at a flag and calling again takes a few
/// microseconds, a few tens with system call tracing.
const AT_ONCE: DurationNs = DurationNs(200_000);

/// Longest time on the CPU of a thread that was woken with others, saw that there was nothing for it, and waits again.
const LOOKED_ONLY: DurationNs = DurationNs(20_000);

/// A call that wakes several threads does so within this time.
const WOKEN_TOGETHER: DurationNs = DurationNs(50_000);

/// Sets `ended_by` of every off-CPU interval.
pub fn join_waits_begun_again(timeline: &mut Timeline) {
    let herds = woken_for_nothing(timeline);
    for thread in 0..timeline.threads.len() {
        let thread = ThreadIndex(thread as u32);
        let rows = timeline.thread(thread).off_cpu.clone();
        for index in rows.clone().rev() {
            let next = index + 1;
            let goes_on = next < rows.end
                && (herds.contains(&(index as u32)) || is_same_wait(timeline, thread, index, next));
            let ended_by = if goes_on { timeline.off_cpu[next].ended_by } else { index as u32 };
            timeline.off_cpu[index].ended_by = ended_by;
        }
    }
}

/// The intervals that ended because a task woke all who waited for a condition, and whose thread waited again at once: the
/// wake-up delivered nothing. One that woke this thread alone handed something over: a lock, an item; its waker is the
/// cause up to then, and whoever ends the next wait is another one.
fn woken_for_nothing(timeline: &Timeline) -> HashSet<u32> {
    let mut candidates: Vec<(u32, MonoNs, u32)> = Vec::new();
    for (number, thread) in timeline.threads.iter().enumerate() {
        let number = ThreadIndex(number as u32);
        for index in thread.off_cpu.clone().skip(1).map(|next| next - 1) {
            let row = &timeline.off_cpu[index];
            let short =
                timeline.off_cpu[index + 1].off - row.on.min(timeline.off_cpu[index + 1].off) <= LOOKED_ONLY;
            if short
                && row.waker == Waker::Task
                && row.waker_thread != NO_INDEX
                && row.state == OffState::Waiting
                && SystemCall::of(timeline.names.get(row.syscall)) == SystemCall::Futex
                && waits_for_the_same(timeline, number, index, index + 1)
            {
                candidates.push((row.waker_thread, row.woken, index as u32));
            }
        }
    }
    if candidates.is_empty() {
        return HashSet::new();
    }
    candidates.sort_unstable();
    // Candidates whose waker woke somebody else at the same time.
    let mut herds = HashSet::new();
    for (index, row) in timeline.off_cpu.iter().enumerate().filter(|(_, row)| row.waker == Waker::Task) {
        let same_call = |&(waker, woken, _): &(u32, MonoNs, u32)| (waker, woken);
        let early = MonoNs(row.woken.0.saturating_sub(WOKEN_TOGETHER.0));
        let late = MonoNs(row.woken.0.saturating_add(WOKEN_TOGETHER.0));
        let from = candidates.partition_point(|one| same_call(one) < (row.waker_thread, early));
        let together = candidates[from..].iter().take_while(|one| same_call(one) <= (row.waker_thread, late));
        herds.extend(together.map(|one| one.2).filter(|&other| other != index as u32));
    }
    herds
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
    waits_for_the_same(timeline, thread, index, next)
}

/// Whether two intervals off the CPU lie in the same call on the same object.
fn waits_for_the_same(timeline: &Timeline, thread: ThreadIndex, index: usize, next: usize) -> bool {
    let (row, after) = (&timeline.off_cpu[index], &timeline.off_cpu[next]);
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
