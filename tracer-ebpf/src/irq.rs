//! Interrupts: "am I in one" is kept by these programs, because a raw tracepoint is not told.
//!
//! On x86 the local timer, reschedule, call-function and irq-work interrupts have only their own tracepoints; without
//! them a timer's wake-up looks as if the interrupted task had made it. On arm64 the timer is an ordinary interrupt and
//! the others are `ipi:*`.

use aya_ebpf::macros::raw_tracepoint;
use aya_ebpf::programs::RawTracePointContext;

use crate::cpu::{self, frame_kind, vector};
use crate::{kernel, sched};

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
