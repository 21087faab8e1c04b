//! Wake edges: who wakes, in what context, at the instant of `sched_waking`.

use aya_ebpf::helpers::generated::bpf_probe_read_kernel_str;
use aya_ebpf::macros::raw_tracepoint;
use aya_ebpf::programs::RawTracePointContext;
use tracer_abi::kernel::{THREAD_NAME_BYTES, Waker, WakerKind};

use crate::config::off;
use crate::cpu::{self, Frame, frame_kind, vector};
use crate::threads::{self, First};
use crate::{config, kernel};

/// `NET_RX_SOFTIRQ`.
const NET_RX: u32 = 3;

/// Fires at the start of a wake-up, in the waker's context. A wake-up that finds the sleeper still on its way off its
/// CPU comes before the switch-out: it is kept as pending, and a later one replaces it (a thread that really sleeps
/// needs one after its switch-out, so what is left at the switch-in is the one that ended the wait).
#[raw_tracepoint(tracepoint = "sched_waking")]
pub fn sched_waking(ctx: RawTracePointContext) -> i32 {
    let sleeper: u64 = ctx.arg(0);
    let (tid, tgid) = kernel::task_ids(sleeper);
    let flags = || kernel::field(sleeper, off!(task_flags));
    let Some(state) = threads::find_or_make(tid, tgid, First::Off, flags) else { return 0 };
    // SAFETY: the thread's element of the map; a task is woken by one CPU at a time.
    unsafe {
        fill(&raw mut (*state).waker);
        (*state).woken_ns = kernel::now_ns();
    }
    0
}

/// Describes this CPU's context as a waker.
///
/// # Safety
/// `waker` is writable.
#[inline(always)]
pub unsafe fn fill(waker: *mut Waker) {
    let Some(cpu) = cpu::this() else { return };
    let (tid, tgid) = kernel::current_ids();
    // SAFETY: by the contract, and this CPU's element of the map.
    unsafe {
        (*waker).cpu = kernel::this_cpu();
        (*waker).tid = tid;
        (*waker).tgid = tgid;
        // The recorder has no system calls of its own in the recording.
        (*waker).syscall_nr = if tgid == config::own_tgid() {
            -1
        } else {
            threads::find(tid).map_or(-1, |state| (*state).syscall_nr)
        };
        (*waker).irq = 0;
        (*waker).request_id = 0;
        (*waker).function = 0;
        (*waker).socket.family = 0;
        kernel::current_comm(&raw mut (*waker).comm);
        let depth = (*cpu).depth;
        if depth == 0 {
            // The idle task wakes nobody of its own: it runs what another CPU asked for without an interrupt
            // (`flush_smp_call_function_queue`), or an interrupt has no tracepoint.
            (*waker).kind = if tid == 0 { WakerKind::HardIrq } else { WakerKind::Task } as u32;
        } else if depth > cpu::FRAMES {
            (*waker).kind = WakerKind::HardIrq as u32;
        } else {
            let frame = &raw const (*cpu).frames[kernel::masked(depth - 1, cpu::FRAMES - 1)];
            fill_from_interrupt(waker, frame);
        }
    }
}

#[inline(always)]
unsafe fn fill_from_interrupt(waker: *mut Waker, frame: *const Frame) {
    // SAFETY: the caller's contract; `frame` is this CPU's.
    unsafe {
        (*waker).irq = (*frame).vector;
        (*waker).request_id = (*frame).request_id;
        (*waker).function = (*frame).function;
        if (*frame).socket.family != 0 {
            (*waker).socket = (*frame).socket;
        }
        if (*frame).request_id != 0 {
            (*waker).kind = WakerKind::Block as u32;
        } else if (*frame).function != 0 {
            (*waker).kind = WakerKind::Timer as u32;
        } else if (*frame).socket.family != 0
            && (*frame).kind == frame_kind::SOFTIRQ
            && (*frame).vector == NET_RX
        {
            (*waker).kind = WakerKind::Net as u32;
        } else if (*frame).kind == frame_kind::SOFTIRQ {
            (*waker).kind = WakerKind::SoftIrq as u32;
        } else {
            (*waker).kind = WakerKind::HardIrq as u32;
            name_of_interrupt(frame, &raw mut (*waker).comm);
        }
    }
}

/// Writes the name of a hardware interrupt.
///
/// # Safety
/// `frame` is this CPU's, `name` is writable.
#[inline(always)]
pub unsafe fn name_of_interrupt(frame: *const Frame, name: *mut [u8; THREAD_NAME_BYTES]) {
    // SAFETY: by the contract.
    unsafe {
        if (*frame).kind == frame_kind::IRQ {
            let text: u64 = kernel::field((*frame).action, off!(irqaction_name));
            bpf_probe_read_kernel_str(name.cast(), THREAD_NAME_BYTES as u32, text as *const _);
        } else {
            *name = vector_name((*frame).vector);
        }
    }
}

#[inline(always)]
fn vector_name(vector: u32) -> [u8; THREAD_NAME_BYTES] {
    match vector {
        vector::LOCAL_TIMER => *b"local_timer\0\0\0\0\0",
        vector::RESCHEDULE => *b"reschedule\0\0\0\0\0\0",
        vector::CALL_FUNCTION => *b"call_function\0\0\0",
        vector::CALL_FUNCTION_SINGLE => *b"call_func_singl\0",
        vector::IRQ_WORK => *b"irq_work\0\0\0\0\0\0\0\0",
        _ => *b"ipi\0\0\0\0\0\0\0\0\0\0\0\0\0",
    }
}
