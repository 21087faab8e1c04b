//! Interrupts: "am I in one" is kept by these programs, because a raw tracepoint is not told.
//!
//! On x86 the local timer, reschedule, call-function and irq-work interrupts have only their own tracepoints; without
//! them a timer's wake-up looks as if the interrupted task had made it. On arm64 the timer is an ordinary interrupt and
//! the others are `ipi:*`.

use aya_ebpf::macros::raw_tracepoint;
use aya_ebpf::programs::RawTracePointContext;

use tracer_abi::kernel::{InterruptKind, InterruptRecord, LossClass, RecordKind, off_cpu_flags};

use crate::cpu::{self, CpuState, Frame, frame_kind, vector};
use crate::{emit, kernel, sched, threads, wake};

/// An interrupt that took less from a thread is not told: the device's own handlers take a few microseconds.
const LONG_NS: u64 = 20_000;

#[raw_tracepoint(tracepoint = "irq_handler_entry")]
pub fn irq_handler_entry(ctx: RawTracePointContext) -> i32 {
    let irq: i32 = ctx.arg(0);
    let action: u64 = ctx.arg(1);
    sched::find_unseen_return(kernel::current_ids().0);
    cpu::enter(frame_kind::IRQ, irq as u32, action);
    0
}

#[raw_tracepoint(tracepoint = "irq_handler_exit")]
pub fn irq_handler_exit(ctx: RawTracePointContext) -> i32 {
    let irq: i32 = ctx.arg(0);
    cpu::leave(frame_kind::IRQ, irq as u32);
    0
}

#[raw_tracepoint(tracepoint = "softirq_entry")]
pub fn softirq_entry(ctx: RawTracePointContext) -> i32 {
    let softirq: u32 = ctx.arg(0);
    cpu::enter(frame_kind::SOFTIRQ, softirq, 0);
    0
}

#[raw_tracepoint(tracepoint = "softirq_exit")]
pub fn softirq_exit(ctx: RawTracePointContext) -> i32 {
    let softirq: u32 = ctx.arg(0);
    cpu::leave(frame_kind::SOFTIRQ, softirq);
    0
}

/// The outermost interrupt has ended: tells it if it took long from a recorded thread that was in user code. In a system
/// call a softirq may be the thread's own work (what it sends to this very machine is delivered within its call).
///
/// # Safety
/// This CPU's state, and its outermost frame.
#[inline(always)]
pub unsafe fn took(cpu: *mut CpuState, frame: *const Frame) {
    // SAFETY: by the contract.
    unsafe {
        let since = (*cpu).interrupt_since_ns;
        (*cpu).interrupt_since_ns = 0;
        let now = kernel::now_ns();
        if since != 0 && now.wrapping_sub(since) >= LONG_NS {
            long(frame, since, now);
        }
    }
}

/// Rare, so it is a function of its own in the programs.
#[inline(never)]
unsafe fn long(frame: *const Frame, since: u64, now: u64) -> u32 {
    let (tid, tgid) = kernel::current_ids();
    let Some(state) = threads::find(tid) else { return 0 };
    // SAFETY: the current thread's element of the map.
    if unsafe { (*state).syscall_nr != -1 || (*state).flags & off_cpu_flags::KERNEL_THREAD != 0 } {
        return 0;
    }
    let Some(mut entry) = emit::reserve::<InterruptRecord>(LossClass::RingOther) else { return 0 };
    let record = entry.as_mut_ptr();
    // SAFETY: room for a record in the ring; this CPU's frame.
    unsafe {
        let kind = (*frame).kind;
        (*record).header = emit::header(RecordKind::Interrupt, now);
        (*record).start_ns = since;
        (*record).end_ns = now;
        (*record).tid = tid;
        (*record).tgid = tgid;
        (*record).vector = (*frame).vector;
        (*record).kind = match kind {
            frame_kind::IRQ => InterruptKind::Device,
            frame_kind::SOFTIRQ => InterruptKind::Soft,
            _ => InterruptKind::Other,
        } as u32;
        (*record).comm = [0; 16];
        if kind != frame_kind::SOFTIRQ {
            wake::name_of_interrupt(frame, &raw mut (*record).comm);
        }
    }
    emit::submit(entry);
    1
}

macro_rules! vectors {
    ($($entry:ident $exit:ident $vector:expr;)+) => { $(
        #[raw_tracepoint]
        pub fn $entry(_ctx: RawTracePointContext) -> i32 {
            sched::find_unseen_return(kernel::current_ids().0);
            cpu::enter(frame_kind::VECTOR, $vector, 0);
            0
        }

        #[raw_tracepoint]
        pub fn $exit(_ctx: RawTracePointContext) -> i32 {
            cpu::leave(frame_kind::VECTOR, $vector);
            0
        }
    )+ };
}

vectors! {
    local_timer_entry local_timer_exit vector::LOCAL_TIMER;
    reschedule_entry reschedule_exit vector::RESCHEDULE;
    call_function_entry call_function_exit vector::CALL_FUNCTION;
    call_function_single_entry call_function_single_exit vector::CALL_FUNCTION_SINGLE;
    irq_work_entry irq_work_exit vector::IRQ_WORK;
    ipi_entry ipi_exit vector::IPI;
}
