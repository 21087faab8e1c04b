//! Time inside CUDA calls: the driver's own work, and waits for the GPU.

use super::wait::Wait;
use crate::attribute::cause::Cause;
use crate::attribute::cuda_call::CudaCall;
use crate::attribute::path::{Edge, EvidenceTable, HopState, PathHop};
use crate::attribute::segment::{Leaf, task_name};
use crate::attribute::timeline::{ApiCall, CopyKind, NO_INDEX, ThreadIndex, Timeline};
use crate::attribute::wake_edge::WakeEdge;
use crate::attribute::walk::{Chain, Walker};
use crate::event::{DeviceId, DurationNs, Interval, Pid, RowId};

/// A thread ran inside a CUDA call. In a synchronising one it spins: it is on the CPU, but waits all the same.
pub fn running_in_call(walker: &mut Walker, thread: ThreadIndex, time: Interval, call: usize, chain: Chain) {
    let leaf = call_leaf(walker, thread, call, HopState::Running);
    if walker.call_kind(call) == CudaCall::Synchronize
        && let Some(device) = other_device(walker, thread, call)
    {
        let path = walker.paths.push(PathHop { edge: Edge::Gpu, ..leaf.hop(chain.path) });
        walker.wait_for_device(device, time, Chain { path, ..chain });
        return;
    }
    walker.emit(time, chain, leaf);
}

/// A thread that had been woken inside a CUDA call waited for an idle CPU to come.
pub fn waking_in_call(
    walker: &mut Walker,
    thread: ThreadIndex,
    time: Interval,
    call: usize,
    row: RowId,
    chain: Chain,
) {
    let leaf = call_leaf(walker, thread, call, HopState::Runnable);
    walker.emit(time, chain, leaf.resting_on((EvidenceTable::OffCpu, row.0)));
}

/// A thread blocked inside a CUDA call. `false`: the wait is an ordinary one that only happened to lie in such a call.
pub fn blocked_in_call(walker: &mut Walker, wait: &Wait, call: usize, edge: WakeEdge, chain: Chain) -> bool {
    let timeline = walker.timeline;
    let leaf = call_leaf(walker, wait.thread, call, HopState::Blocked).resting_on(wait.off_row(timeline));
    match edge {
        // Paging in a mapped file that is being copied.
        WakeEdge::Block(_) | WakeEdge::UnknownBlock => false,
        WakeEdge::Task(task) if timeline.thread(task).is_tool() => {
            let name = timeline.thread(task).name;
            walker.emit(wait.time, chain, Leaf { cause: Cause::ToolOverhead, object: name, ..leaf });
            true
        }
        WakeEdge::Task(task) if timeline.api_call_before(task, wait.end.woken).0.is_some() => {
            let rows = timeline.thread(task);
            let holder = task_name(&mut walker.names, Pid(rows.tid.0), rows.name);
            walker.emit(wait.time, chain, Leaf { cause: Cause::CudaLock, object: holder, ..leaf });
            true
        }
        WakeEdge::Outside => {
            let holder = task_name(&mut walker.names, wait.end.waker_pid, wait.end.waker_comm);
            walker.emit(wait.time, chain, Leaf { cause: Cause::CudaLock, object: holder, ..leaf });
            true
        }
        _ => {
            if let Some(device) = other_device(walker, wait.thread, call) {
                let path = walker.paths.push(PathHop { edge: Edge::Gpu, ..leaf.hop(chain.path) });
                walker.wait_for_device(device, wait.time, Chain { path, ..chain });
            } else {
                walker.emit(wait.time, chain, leaf);
            }
            true
        }
    }
}

/// The driver ended a wait outside any recorded CUDA call.
pub fn woken_by_driver(walker: &mut Walker, wait: &Wait, chain: Chain) {
    let leaf = wait.leaf(walker.timeline, Cause::CudaSync).on(wait.end.syscall).inferred();
    walker.emit(wait.time, chain, leaf);
}

fn call_leaf(walker: &mut Walker, thread: ThreadIndex, call: usize, state: HopState) -> Leaf {
    let timeline = walker.timeline;
    let row = &timeline.api[call];
    let kind = walker.call_kind(call);
    // Staging a pageable buffer is part of the copy, on the host as on the device.
    let staging =
        matches!(kind, CudaCall::Copy | CudaCall::Submit) && copies(timeline, call) == CopyKind::Pageable;
    let cause = if staging { Cause::CopyPageable } else { kind.cause() };
    let cold = cold_start(walker, call);
    let table = if row.overhead { EvidenceTable::CudaOverhead } else { EvidenceTable::CudaApi };
    let leaf = Leaf::thread(timeline, thread, state, cold.unwrap_or(cause))
        .in_call(row.name)
        .on(row.name)
        .resting_on(Some((table, row.id.0)));
    Leaf { inferred: cold.is_some(), ..leaf }
}

/// A launch of a kernel that was never launched before and takes so long has the driver load its code: an ordinary one takes
/// microseconds, and an idle device's queue is not full.
const LOADING_LAUNCH: DurationNs = DurationNs(10_000_000);
/// Freeing memory while the device idles takes microseconds on CUDA (on ROCm up to 70 ms were seen). A call that takes so
/// long sets up a context or a library: `cudaFree(0)` is how programs and libraries ask for it.
const INITIALIZING_FREE: DurationNs = DurationNs(200_000_000);

/// What another tool's recording does not say, but the time that the call took: driver work of a first use.
fn cold_start(walker: &Walker, call: usize) -> Option<Cause> {
    let timeline = walker.timeline;
    let row = &timeline.api[call];
    if !timeline.imported || row.overhead {
        return None;
    }
    let length = row.time.length();
    match row.kind {
        CudaCall::Free if length >= INITIALIZING_FREE => Some(Cause::CudaInit),
        CudaCall::Submit
            if length >= LOADING_LAUNCH
                && walker.is_first_launch(call)
                && timeline.names.get(row.name).contains("LaunchKernel") =>
        {
            Some(Cause::CudaModuleLoad)
        }
        _ => None,
    }
}

/// What a call, or the one around it, copies.
fn copies(timeline: &Timeline, call: usize) -> CopyKind {
    match timeline.api[call].copies {
        CopyKind::None => timeline.api[timeline.outermost(call)].copies,
        kind => kind,
    }
}

/// The device that a synchronising call waits for, if it is another one than that of the gap. For the gap's own device,
/// which idles, a synchronising call can only be on its way back.
fn other_device(walker: &Walker, thread: ThreadIndex, call: usize) -> Option<DeviceId> {
    let timeline = walker.timeline;
    let pid = timeline.thread(thread).pid;
    let enclosing = |call: &ApiCall| (call.parent != NO_INDEX).then(|| &timeline.api[call.parent as usize]);
    let context = std::iter::successors(Some(&timeline.api[call]), |call| enclosing(call))
        .find_map(|call| timeline.sync_of(pid, call.correlation))
        .filter(|sync| !sync.stream_wait)?
        .context;
    timeline.devices.get(&(pid, context)).copied().filter(|&device| device != walker.device())
}
