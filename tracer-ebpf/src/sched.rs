//! Task switches: a thread leaves its CPU, another comes back and its off-CPU interval is written.

use aya_ebpf::macros::raw_tracepoint;
use aya_ebpf::programs::RawTracePointContext;
use tracer_abi::kernel::{
    LossClass, OffCpuRecord, RecordKind, SyscallClass, ThreadState, WakerKind, off_cpu_flags,
};

use crate::config::{self, off};
use crate::cpu::{self, CpuState};
use crate::kernel::now_ns;
use crate::threads::{self, First};
use crate::{emit, kernel, object, runq};

/// `TASK_DEAD`: the task's last switch. (`include/linux/sched.h`, since 4.14)
const TASK_DEAD: u32 = 0x80;
/// Flags of a thread that outlive an off-CPU interval.
const LASTING: u32 =
    off_cpu_flags::KERNEL_THREAD | off_cpu_flags::CALL_BEFORE_ATTACH | off_cpu_flags::SEEN_RUNNING;
/// A wake-up that came before the switch-out belongs to it only if it came while the scheduler was already taking the
/// thread off: microseconds, at most a load balance. An older one was for a wait that did not come to sleep.
const PENDING_NS: u64 = 1_000_000;
/// A thread that was told to sleep because too many pages are dirty does so at once.
const DIRTY_NS: u64 = 100_000;

/// 5.18 and later pass `prev_state` (5.18 itself in another place: the loader refuses it).
#[raw_tracepoint(tracepoint = "sched_switch")]
pub fn sched_switch(ctx: RawTracePointContext) -> i32 {
    let (preempt, next): (u64, u64) = (ctx.arg(0), ctx.arg(2));
    let state: u32 = ctx.arg(3);
    switch(preempt & 0xff != 0, next, state);
    0
}

/// Before 5.18: the state is still in the task.
#[raw_tracepoint(tracepoint = "sched_switch")]
pub fn sched_switch_before_5_18(ctx: RawTracePointContext) -> i32 {
    let (preempt, next): (u64, u64) = (ctx.arg(0), ctx.arg(2));
    switch(preempt & 0xff != 0, next, kernel::current_word::<u32>(off!(task_state)));
    0
}

#[inline(always)]
fn switch(preempt: bool, next: u64, prev_state: u32) {
    let now = now_ns();
    let Some(cpu) = cpu::this() else { return };
    // The previous task is still the current one.
    let (prev_tid, prev_tgid) = kernel::current_ids();
    // SAFETY: this CPU's element of the map.
    unsafe {
        if (*cpu).depth != 0 {
            // A CPU that switches tasks is in no interrupt: an exit was missed.
            (*cpu).depth = 0;
            (*cpu).interrupt_since_ns = 0;
            emit::lost(LossClass::IrqDepthReset);
        }
        runq::push(cpu, now, prev_tid, prev_tgid);
        if prev_tid != 0 {
            leave(now, prev_tid, prev_tgid, preempt, prev_state);
        }
        let (next_tid, next_tgid) = kernel::task_ids(next);
        (*cpu).task = next;
        (*cpu).tid = next_tid;
        if prev_tid == 0 || next_tid == 0 {
            runq::idles(if next_tid == 0 { now } else { 0 });
        }
        if next_tid != 0 {
            // A kernel thread that is not known yet has not slept under our eyes: nothing to write.
            if let Some(state) = threads::find_or_make(next_tid, next_tgid, First::Off, || 0) {
                come(cpu, now, state);
            }
        }
    }
}

/// A task is back from the scheduler, in its own context (6.16 and later). `sched_switch` runs in the context of the task
/// that leaves, and some kernels report nothing there for certain tasks (seen on a 6.18: those of its init process):
/// here the task that follows one of them is caught.
#[raw_tracepoint(tracepoint = "sched_exit_tp")]
pub fn sched_exit_tp(ctx: RawTracePointContext) -> i32 {
    let is_switch: u64 = ctx.arg(0);
    if is_switch & 0xff == 0 {
        return 0;
    }
    let Some(cpu) = cpu::this() else { return 0 };
    let (tid, tgid) = kernel::current_ids();
    // SAFETY: this CPU's element of the map.
    unsafe {
        if (*cpu).tid == tid || (*cpu).since_ns == 0 {
            return 0;
        }
        let now = now_ns();
        runq::push_unreported(cpu, now);
        (*cpu).task = kernel::current_task();
        (*cpu).tid = tid;
        runq::idles(if tid == 0 { now } else { 0 });
        if tid != 0 {
            // As in `switch`.
            if let Some(state) = threads::find_or_make(tid, tgid, First::Off, || 0) {
                come(cpu, now, state);
            }
        }
    }
    0
}

#[inline(always)]
unsafe fn leave(now: u64, tid: u32, tgid: u32, preempt: bool, prev_state: u32) {
    if !preempt && prev_state & TASK_DEAD != 0 {
        threads::free(tid);
        return;
    }
    let flags = || kernel::current_word::<u32>(off!(task_flags));
    let Some(state) = threads::find_or_make(tid, tgid, First::Running, flags) else { return };
    // A task that was about to sleep with a signal pending is not put to sleep, and its state is set back to running;
    // older kernels still pass the state that it had.
    let blocked = !preempt && prev_state != 0 && kernel::current_word::<u32>(off!(task_state)) != 0;
    // SAFETY: the thread's element of the map.
    unsafe {
        if (*state).off_ns != 0 {
            returned_unseen(tid);
        }
        (*state).off_cpu = kernel::this_cpu();
        let flags = (*state).flags & LASTING;
        if blocked {
            let dirty = now.wrapping_sub((*state).dirty_ns) < DIRTY_NS;
            (*state).flags = if dirty { flags | off_cpu_flags::DIRTY_THROTTLED } else { flags };
            (*state).off_state = prev_state;
            if now.wrapping_sub((*state).woken_ns) > PENDING_NS {
                (*state).woken_ns = 0;
                (*state).waker.kind = WakerKind::None as u32;
            }
            read_object(state, tgid);
        } else {
            (*state).flags = flags | off_cpu_flags::PREEMPTED;
            (*state).off_state = 0;
            (*state).woken_ns = now;
            (*state).waker.kind = WakerKind::None as u32;
        }
        (*state).off_ns = now;
    }
}

/// Reads the object of the call that blocks, at its first block: the call holds a reference to it by now, and another
/// thread that closes and reuses the descriptor during the wait cannot mislabel it.
#[inline(always)]
unsafe fn read_object(state: *mut ThreadState, tgid: u32) {
    // SAFETY: the caller's contract: the current thread's element of the map.
    unsafe {
        if (*state).object.kind != 0 {
            return;
        }
        let fd = match config::syscall_class((*state).syscall_nr) {
            class if class == SyscallClass::Fd0 as u8 => (*state).args[0],
            class if class == SyscallClass::Fd1 as u8 => (*state).args[1],
            class if class == SyscallClass::Fd4 as u8 => (*state).args[4],
            _ => return,
        };
        object::of_descriptor(fd as i32, tgid, &raw mut (*state).object);
    }
}

/// Looks whether the current thread, which runs, is off the CPU by what is kept of it: then its switch-in was not
/// reported. (See [`sched_exit_tp`], which older kernels do not have. Programs can be skipped, too.) What runs often in a thread's own context asks this, so that little time stays uncertain.
#[inline(always)]
pub fn find_unseen_return(tid: u32) {
    if tid == 0 {
        return;
    }
    // SAFETY: an element of the map; nobody else writes it while its thread runs.
    if threads::find(tid).is_some_and(|state| unsafe { (*state).off_ns } != 0) {
        returned_unseen(tid);
    }
}

/// Ends the interval of a thread that came back unseen. Rare, so it is a function of its own in the programs.
#[inline(never)]
pub fn returned_unseen(tid: u32) -> u32 {
    let Some(state) = threads::find(tid) else { return 0 };
    let now = now_ns();
    // SAFETY: the thread's element of the map.
    unsafe {
        let (off, woken, flags) = ((*state).off_ns, (*state).woken_ns, (*state).flags);
        let woken = if woken != 0 && woken < off { off } else { woken };
        if (*state).syscall_nr != -1 && flags & off_cpu_flags::PREEMPTED == 0 && woken > off {
            (*state).syscall_blocked_ns += woken - off;
        }
        if let Some(mut entry) = emit::reserve::<OffCpuRecord>(LossClass::RingOffCpu) {
            let record = entry.as_mut_ptr();
            fill(record, state, now, off, woken);
            (*record).flags = flags | off_cpu_flags::RETURN_UNSEEN;
            runq::account_none(record);
            runq::forbidden_none(record);
            emit::submit(entry);
        }
        back(state, flags);
    }
    1
}

/// What every record of an interval has. The culprit and the flags are the caller's.
#[inline(always)]
unsafe fn fill(record: *mut OffCpuRecord, state: *mut ThreadState, now: u64, off: u64, woken: u64) {
    // SAFETY: the caller's contract: room for a record in the ring, a thread's element of the map.
    unsafe {
        (*record).header = emit::header(RecordKind::OffCpu, now);
        (*record).tid = (*state).tid;
        (*record).tgid = (*state).tgid;
        (*record).off_ns = off;
        (*record).woken_ns = woken;
        (*record).on_ns = now;
        (*record).syscall_start_ns = (*state).syscall_start_ns;
        (*record).syscall_nr = (*state).syscall_nr;
        (*record).off_state = (*state).off_state;
        (*record).off_cpu = (*state).off_cpu;
        (*record).on_cpu = kernel::this_cpu();
        (*record).waker = (*state).waker;
        (*record).args0 = (*state).args[0];
    }
}

/// The thread is on a CPU.
#[inline(always)]
unsafe fn back(state: *mut ThreadState, flags: u32) {
    // SAFETY: the caller's contract: the thread's element of the map.
    unsafe {
        (*state).off_ns = 0;
        (*state).woken_ns = 0;
        (*state).waker.kind = WakerKind::None as u32;
        (*state).flags = flags & LASTING | off_cpu_flags::SEEN_RUNNING;
    }
}

#[inline(always)]
unsafe fn come(cpu: *mut CpuState, now: u64, state: *mut ThreadState) {
    // SAFETY: the caller's contract: the thread's element of the map, this CPU's state.
    unsafe {
        let (off, woken, flags) = ((*state).off_ns, (*state).woken_ns, (*state).flags);
        let kernel_thread = flags & off_cpu_flags::KERNEL_THREAD != 0;
        // It runs as far as is known: an interrupt that came between its switch and this has found it back already
        // (`find_unseen_return`).
        if off == 0 && (flags & off_cpu_flags::SEEN_RUNNING != 0 || kernel_thread && woken == 0) {
            return;
        }
        let preempted = flags & off_cpu_flags::PREEMPTED != 0;
        // A wake-up that came before the switch-out ends the wait at its beginning.
        let woken = if woken != 0 && woken < off { off } else { woken };
        if (*state).syscall_nr != -1 && !preempted && off != 0 {
            let until = if woken == 0 { now } else { woken };
            (*state).syscall_blocked_ns += until.saturating_sub(off);
        }
        if let Some(mut entry) = emit::reserve::<OffCpuRecord>(LossClass::RingOffCpu) {
            let record = entry.as_mut_ptr();
            fill(record, state, now, off, woken);
            (*record).flags = if off == 0 { flags | off_cpu_flags::BEFORE_ATTACH } else { flags };
            let from = if woken == 0 { now } else { woken };
            runq::account(cpu, from, now, record);
            runq::forbidden(cpu, from, now, record);
            emit::submit(entry);
        }
        back(state, flags);
    }
}
