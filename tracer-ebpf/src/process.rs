//! Forks, execs and exits: membership is followed here, so that a child is recorded from its first instruction.

use aya_ebpf::macros::raw_tracepoint;
use aya_ebpf::programs::RawTracePointContext;
use tracer_abi::kernel::{ExecRecord, ExitRecord, ForkRecord, LossClass, RecordKind};

use crate::config::off;
use crate::threads::{self, First};
use crate::{emit, kernel, wake};

#[raw_tracepoint(tracepoint = "sched_process_fork")]
pub fn sched_process_fork(ctx: RawTracePointContext) -> i32 {
    let (parent, child): (u64, u64) = (ctx.arg(0), ctx.arg(1));
    let (parent_tid, parent_tgid) = kernel::task_ids(parent);
    let (child_tid, child_tgid) = kernel::task_ids(child);
    if !threads::is_member(parent_tgid) {
        // A number that a forgotten thread had: a tid is only given out again after its thread is gone.
        threads::free(child_tid);
        return 0;
    }
    let now = kernel::now_ns();
    threads::free(child_tid);
    threads::set_member(child_tgid, true);
    if let Some(state) = threads::make(child_tid, child_tgid, false, First::Running) {
        // SAFETY: the new thread's element of the map; it does not run yet.
        unsafe {
            // Runnable from now on until it first runs, woken by its parent.
            (*state).off_ns = now;
            (*state).off_cpu = kernel::this_cpu();
            wake::fill(&raw mut (*state).waker);
            (*state).woken_ns = now;
        }
    }
    let Some(mut entry) = emit::reserve::<ForkRecord>(LossClass::RingProcess) else { return 0 };
    let record = entry.as_mut_ptr();
    // SAFETY: room for a record in the ring.
    unsafe {
        (*record).header = emit::header(RecordKind::Fork, now);
        (*record).parent_tid = parent_tid;
        (*record).parent_tgid = parent_tgid;
        (*record).child_tid = child_tid;
        (*record).child_tgid = child_tgid;
        (*record).comm = kernel::field(child, off!(task_comm));
    }
    emit::submit(entry);
    0
}

#[raw_tracepoint(tracepoint = "sched_process_exec")]
pub fn sched_process_exec(ctx: RawTracePointContext) -> i32 {
    let task: u64 = ctx.arg(0);
    let old_tid: u32 = ctx.arg(1);
    let (tid, tgid) = kernel::task_ids(task);
    if !threads::is_member(tgid) {
        return 0;
    }
    if old_tid != tid {
        threads::rename(old_tid, tid);
    }
    let Some(mut entry) = emit::reserve::<ExecRecord>(LossClass::RingProcess) else { return 0 };
    let record = entry.as_mut_ptr();
    // SAFETY: room for a record in the ring.
    unsafe {
        (*record).header = emit::header(RecordKind::Exec, kernel::now_ns());
        (*record).tgid = tgid;
        (*record).old_tid = old_tid;
        (*record).comm = kernel::field(task, off!(task_comm));
    }
    emit::submit(entry);
    0
}

/// The thread's state is kept until its last task switch: what follows here (closing files, freeing memory) may block
/// for long.
#[raw_tracepoint(tracepoint = "sched_process_exit")]
pub fn sched_process_exit(ctx: RawTracePointContext) -> i32 {
    let task: u64 = ctx.arg(0);
    let (tid, tgid) = kernel::task_ids(task);
    if !threads::is_member(tgid) {
        return 0;
    }
    let signal: u64 = kernel::field(task, off!(task_signal));
    // Counted down before this point: the last thread finds none left.
    let live: i32 = kernel::field(signal, off!(signal_live));
    if live <= 0 {
        threads::set_member(tgid, false);
    }
    let Some(mut entry) = emit::reserve::<ExitRecord>(LossClass::RingProcess) else { return 0 };
    let record = entry.as_mut_ptr();
    // SAFETY: room for a record in the ring.
    unsafe {
        (*record).header = emit::header(RecordKind::Exit, kernel::now_ns());
        (*record).tid = tid;
        (*record).tgid = tgid;
        (*record).process_ended = u32::from(live <= 0);
        (*record).reserved = 0;
        (*record).comm = kernel::field(task, off!(task_comm));
    }
    emit::submit(entry);
    0
}
