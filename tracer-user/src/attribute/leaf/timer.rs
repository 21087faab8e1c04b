//! Waits that a timer ended.

use super::wait::{Wait, cause_of_call, purpose};
use crate::attribute::cause::Cause;
use crate::attribute::names::Name;
use crate::attribute::segment::Leaf;
use crate::attribute::system_call::SystemCall;
use crate::attribute::timeline::{TakenBy, Timeline};
use crate::attribute::walk::{Chain, Walker};
use crate::event::DurationNs;

/// A timer ran out: a sleep, a wait with a time-out, or the kernel's own delay on the way to something.
pub fn ran_out(walker: &mut Walker, wait: &Wait, chain: Chain) {
    let timeline = walker.timeline;
    if wait.end.throttled {
        let leaf = wait.leaf(timeline, Cause::StorageWriteThrottled);
        return walker.emit(wait.time, chain, leaf);
    }
    if made_to_sleep_after_reclaim(timeline, wait) {
        let object = walker.names.str("the control group's memory (above memory.high)");
        let leaf = wait.leaf(timeline, Cause::MemoryReclaim).on(object).inferred();
        return walker.emit(wait.time, chain, leaf);
    }
    let kernel = timeline.thread(wait.thread).is_kernel();
    let call = if kernel { purpose(timeline, None, chain) } else { wait.call(timeline) };
    let kind = match call {
        Some(call) => call.kind,
        None => wait.kind(&timeline.names),
    };
    let own_timer = wait.end.waker_object.is_none()
        || ["hrtimer_wakeup", "process_timeout"].contains(&timeline.names.get(wait.end.waker_object));
    let waits_for_nothing =
        call.is_none_or(|call| call.object.is_none() || timeline.names.get(call.object_kind) == "sleep");
    let cause = match cause_of_call(&timeline.names, call, kind) {
        // A kernel thread that works for a call delays it by its own timers; so do the timers of a connection.
        Some(cause) if kernel || (!own_timer && cause.family() == "net") => {
            super::network::or_retransmit(timeline, wait, wait.object(timeline), cause)
        }
        Some(Cause::HostSleep) => Cause::HostSleep,
        Some(_) if waits_for_nothing && is_bare_select(timeline.names.get(wait.end.syscall)) => {
            Cause::HostSleep
        }
        // A thread that wants the interpreter lock looks every 5 ms whether it is free: nobody had to wake it.
        Some(Cause::HostGil) => Cause::HostGil,
        None if kernel => Cause::UnknownInterrupt,
        _ => Cause::HostTimedWait,
    };
    let leaf = wait.leaf(timeline, cause);
    let object = match cause {
        Cause::HostSleep | Cause::UnknownInterrupt => wait.end.syscall.or(wait.end.waker_object),
        _ => call.map_or(Name::NONE, |call| call.object).or(wait.end.syscall),
    };
    let mut leaf = Leaf { object, ..leaf };
    leaf.call = wait.end.syscall;
    walker.emit(wait.time, chain, leaf);
}

/// From the end of freeing its group's memory to the sleep that follows there are a few instructions.
const AT_ONCE: DurationNs = DurationNs(1_000_000);

/// Whether the kernel made the thread sleep because its control group is above `memory.high`: on the way out of the kernel it
/// frees memory of the group, and, if that is not enough, sleeps there where no signal but a deadly one ends it. There is no
/// tracepoint for it; programs do not sleep so outside a system call.
fn made_to_sleep_after_reclaim(timeline: &Timeline, wait: &Wait) -> bool {
    let row = &timeline.off_cpu[wait.row];
    let sleeps = row.syscall.is_none()
        && row.uninterruptible
        && timeline.names.get(wait.end.waker_object) == "process_timeout";
    sleeps
        && timeline
            .last_taken(wait.thread, row.off)
            .is_some_and(|taken| taken.by == TakenBy::Reclaim && row.off - taken.time.end <= AT_ONCE)
}

/// `select` without descriptors is how some runtimes sleep.
fn is_bare_select(name: &str) -> bool {
    matches!(SystemCall::of(name), SystemCall::Sleep) || matches!(name, "select" | "pselect6")
}
