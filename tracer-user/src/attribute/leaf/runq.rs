//! Time on the run queue: woken or preempted, and no CPU to run on.

use crate::attribute::cause::Cause;
use crate::attribute::path::{EvidenceTable, HopState};
use crate::attribute::segment::{Leaf, task_name};
use crate::attribute::timeline::{OffCpu, OffState, ThreadIndex, Timeline};
use crate::attribute::wake_edge::is_driver_name;
use crate::attribute::walk::{Chain, Walker};
use crate::event::{DurationNs, Interval};

/// No CPU takes longer to come out of idle (deep C-states take 0.2 ms, a virtual CPU that has to be scheduled a few times
/// that). A longer wait for an idle CPU is a quota's if there is one, and otherwise cannot be explained: the thread may have
/// come from another CPU's queue, the host of a virtual machine may have been late, or who ran was not seen.
const LONGEST_IDLE_EXIT: DurationNs = DurationNs(2_000_000);

/// A thread was runnable in `time`, within the off-CPU interval `row`.
pub fn runnable(walker: &mut Walker, thread: ThreadIndex, time: Interval, row: usize, chain: Chain) {
    let timeline = walker.timeline;
    let row = timeline.off_cpu[row];
    let cause = cause(timeline, thread, &row);
    let for_the_call =
        cause == Cause::HostWakeLatency || is_driver_name(timeline.names.get(row.culprit_comm));
    if for_the_call && let (Some(call), _) = timeline.api_call_before(thread, time.end) {
        // Waking up is part of a synchronising call's way back, and a thread of the driver that runs meanwhile does the
        // call's work.
        super::gpu::waking_in_call(walker, thread, time, call, row.id, chain);
        return;
    }
    let object = match cause {
        Cause::HostWakeLatency | Cause::HostRunqThrottled | Cause::UnknownNotScheduled => {
            let cpu = format!("CPU {}", row.cpu);
            walker.names.str(&cpu)
        }
        Cause::UnknownLostEvents => walker.names.str("sched_switch"),
        Cause::HostRunqAffinity => {
            let allowed = format!("may run on {} CPUs", row.allowed_cpus);
            walker.names.str(if row.allowed_cpus == 1 { "may run on 1 CPU" } else { &allowed })
        }
        _ => task_name(&mut walker.names, row.culprit_pid, row.culprit_comm),
    };
    let (call, _) = timeline.system_call_before(thread, time.end);
    let leaf = Leaf::thread(timeline, thread, HopState::Runnable, cause)
        .in_call(call.map_or(row.syscall, |call| timeline.syscalls[call].name))
        .on(object)
        .resting_on(Some((EvidenceTable::OffCpu, row.id.0)));
    walker.emit(time, chain, Leaf { inferred: cause == Cause::HostRunqThrottled, ..leaf });
}

/// Named by who held the CPU. A task that idle time outweighs is innocent.
fn cause(timeline: &Timeline, thread: ThreadIndex, row: &OffCpu) -> Cause {
    if row.state == OffState::Unseen {
        return Cause::UnknownLostEvents;
    }
    if row.culprit_tid.0 == 0 || row.idle > row.culprit_ran {
        let pid = timeline.thread(thread).pid;
        let throttled = timeline.processes.get(&pid).map_or(DurationNs(0), |process| process.throttled);
        return match row.idle {
            idle if idle <= LONGEST_IDLE_EXIT => Cause::HostWakeLatency,
            // A thread is held back for as long as its group at the most.
            idle if idle <= throttled => Cause::HostRunqThrottled,
            _ => Cause::UnknownNotScheduled,
        };
    }
    if timeline.is_tool(row.culprit_pid, row.culprit_comm) {
        return Cause::ToolOverhead;
    }
    // The whole wait, but for what it takes to notice: with a wider mask it would have run.
    let waited = row.on - row.woken.min(row.on);
    if row.forbidden_idle.0 > 0 && row.forbidden_idle.0 >= waited.0 / 10 * 9 {
        return Cause::HostRunqAffinity;
    }
    if row.culprit_pid == timeline.thread(thread).pid {
        return Cause::HostRunqOversubscribed;
    }
    match row.state {
        OffState::Preempted => Cause::HostRunqPreempted,
        _ => Cause::HostRunqContention,
    }
}
