//! Wake edges: who or what ended a wait, as the kernel saw it at that instant.

use super::system_call::SystemCall;
use super::timeline::{NO_INDEX, OffCpu, Request, ThreadIndex, Timeline, Waker};

/// The end of a wait.
#[derive(Clone, Copy, Debug)]
pub enum WakeEdge<'a> {
    /// A task with a timeline: the wait goes on in its time.
    Task(ThreadIndex),
    /// A kernel thread without a timeline.
    KernelTask,
    /// A task outside the recording.
    Outside,
    /// The GPU: its driver's interrupt or thread, or the simulated GPU's scheduler.
    Gpu,
    /// This request completed.
    Block(&'a Request),
    /// A request completed that is not in the recording.
    UnknownBlock,
    /// A packet was delivered; on loopback its sender, if that is recorded.
    Network(Option<ThreadIndex>),
    /// A timer ran out.
    Timer,
    /// An interrupt of another kind.
    Interrupt,
    /// None was seen.
    None,
}

/// The edge of an off-CPU interval.
#[must_use]
pub fn wake_edge<'a>(timeline: &'a Timeline, row: &OffCpu) -> WakeEdge<'a> {
    match row.waker {
        Waker::None => WakeEdge::None,
        Waker::Task => task_edge(timeline, row),
        Waker::Block(id) => timeline.requests.get(id).map_or(WakeEdge::UnknownBlock, WakeEdge::Block),
        Waker::Net => WakeEdge::Network(loopback_sender(timeline, row)),
        Waker::Timer => WakeEdge::Timer,
        Waker::Irq | Waker::Softirq => {
            let name = timeline.names.get(row.waker_object);
            if name.contains("nvidia") { WakeEdge::Gpu } else { WakeEdge::Interrupt }
        }
    }
}

fn task_edge<'a>(timeline: &'a Timeline, row: &OffCpu) -> WakeEdge<'a> {
    if row.waker_tid.0 == 0 {
        // The idle task wakes nobody in its own context: the interrupt around it was missed.
        return WakeEdge::None;
    }
    if is_driver_name(timeline.names.get(row.waker_comm)) {
        return WakeEdge::Gpu;
    }
    let process = timeline.processes.get(&row.waker_pid);
    if row.waker_thread != NO_INDEX {
        let index = ThreadIndex(row.waker_thread);
        let thread = timeline.thread(index);
        if thread.is_driver() {
            return WakeEdge::Gpu;
        }
        if has_timeline(timeline, index) {
            return WakeEdge::Task(index);
        }
        if thread.is_kernel() {
            return WakeEdge::KernelTask;
        }
    }
    match process {
        Some(process) if process.kernel => WakeEdge::KernelTask,
        _ => WakeEdge::Outside,
    }
}

/// Whether a thread's time is recorded.
#[must_use]
pub fn has_timeline(timeline: &Timeline, thread: ThreadIndex) -> bool {
    let rows = timeline.thread(thread);
    if !rows.off_cpu.is_empty() {
        return true;
    }
    let outside = timeline.processes.get(&rows.pid).is_some_and(|process| process.outside);
    rows.start.is_some() && !rows.is_kernel() && !outside
}

/// On loopback the receive softirq runs inside the sender's own call, so that the interrupted task is the sender.
fn loopback_sender(timeline: &Timeline, row: &OffCpu) -> Option<ThreadIndex> {
    if row.waker_thread == NO_INDEX || !SystemCall::of(timeline.names.get(row.waker_syscall)).can_send() {
        return None;
    }
    let thread = ThreadIndex(row.waker_thread);
    has_timeline(timeline, thread).then_some(thread)
}

/// Whether a thread of this name works for the GPU.
#[must_use]
pub fn is_driver_name(name: &str) -> bool {
    name.starts_with("sim-gpu") || name.starts_with("cuda-EvtHandlr")
}

/// Whether a thread of this name works for gtrace, or for CUPTI, inside the program's process.
#[must_use]
pub fn is_tool_name(name: &str) -> bool {
    name.starts_with("gtrace") || name.starts_with("cupti-worker")
}
