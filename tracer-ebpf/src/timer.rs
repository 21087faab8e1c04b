//! Timers: which function runs in the timer interrupt or softirq at this moment.

use aya_ebpf::macros::raw_tracepoint;
use aya_ebpf::programs::RawTracePointContext;

use crate::config::off;
use crate::{cpu, kernel};

#[inline(always)]
fn set_function(function: u64) {
    if let Some(frame) = cpu::top_frame() {
        // SAFETY: this CPU's element of the map.
        unsafe { (*frame).function = function };
    }
}

#[raw_tracepoint(tracepoint = "hrtimer_expire_entry")]
pub fn hrtimer_expire_entry(ctx: RawTracePointContext) -> i32 {
    set_function(kernel::field(ctx.arg(0), off!(hrtimer_function)));
    0
}

#[raw_tracepoint(tracepoint = "hrtimer_expire_exit")]
pub fn hrtimer_expire_exit(_ctx: RawTracePointContext) -> i32 {
    set_function(0);
    0
}

#[raw_tracepoint(tracepoint = "timer_expire_entry")]
pub fn timer_expire_entry(ctx: RawTracePointContext) -> i32 {
    set_function(kernel::field(ctx.arg(0), off!(timer_function)));
    0
}

#[raw_tracepoint(tracepoint = "timer_expire_exit")]
pub fn timer_expire_exit(_ctx: RawTracePointContext) -> i32 {
    set_function(0);
    0
}
