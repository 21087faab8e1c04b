//! Calls of the CUDA driver one by one, in processes where CUPTI is not: launches and copies by their entry, waits and blocking
//! calls from entry to return.

use core::mem::MaybeUninit;

use aya_ebpf::EbpfContext as _;
use aya_ebpf::bindings::pt_regs;
use aya_ebpf::helpers::generated::{bpf_get_attach_cookie, bpf_probe_read_user};
use aya_ebpf::macros::{uprobe, uretprobe};
use aya_ebpf::programs::{ProbeContext, RetProbeContext};
use tracer_abi::kernel::{CudaCallRecord, LossClass, RecordKind, call_argument};

use crate::maps::OPEN_CUDA_CALLS;
use crate::{emit, kernel, threads};

/// A call that has begun.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct OpenCall {
    pub start_ns: u64,
    pub stream: u64,
    pub argument: u64,
}

/// A call that sends work and returns at once: only its entry is seen, which costs half.
#[uprobe]
pub fn cuda_submit(ctx: ProbeContext) -> u32 {
    let (tid, tgid) = kernel::current_ids();
    if !threads::is_member(tgid) {
        return 0;
    }
    let cookie = cookie(&ctx);
    let now = kernel::now_ns();
    let open = OpenCall { start_ns: now, stream: argument(&ctx, cookie >> 16), argument: argument(&ctx, cookie >> 24) };
    write(cookie, (tid, tgid), &open, now, 0);
    0
}

/// A call that waits, or takes long: its entry.
#[uprobe]
pub fn cuda_begin(ctx: ProbeContext) -> u32 {
    let (tid, tgid) = kernel::current_ids();
    if !threads::is_member(tgid) {
        return 0;
    }
    let cookie = cookie(&ctx);
    let open = OpenCall {
        start_ns: kernel::now_ns(),
        stream: argument(&ctx, cookie >> 16),
        argument: argument(&ctx, cookie >> 24),
    };
    // Full: the call is not recorded, and the work that it waits for counts as running on.
    let _ = OPEN_CUDA_CALLS.insert(key(tid, cookie), open, 0);
    0
}

/// Its return.
#[uretprobe]
pub fn cuda_end(ctx: RetProbeContext) -> u32 {
    let (tid, tgid) = kernel::current_ids();
    if !threads::is_member(tgid) {
        return 0;
    }
    // SAFETY: the context is that of this attachment.
    let cookie = unsafe { bpf_get_attach_cookie(ctx.as_ptr()) };
    let key = key(tid, cookie);
    // SAFETY: the entry is this thread's, which is here and changes nothing meanwhile.
    let Some(open) = (unsafe { OPEN_CUDA_CALLS.get(key) }).copied() else { return 0 };
    let _ = OPEN_CUDA_CALLS.remove(key);
    write(cookie, (tid, tgid), &open, kernel::now_ns(), ctx.ret::<i32>());
    0
}

#[inline(always)]
fn cookie(ctx: &ProbeContext) -> u64 {
    // SAFETY: the context is that of this attachment.
    unsafe { bpf_get_attach_cookie(ctx.as_ptr()) }
}

/// One call of a function in one thread.
#[inline(always)]
fn key(tid: u32, cookie: u64) -> u64 {
    u64::from(tid) << 16 | cookie & 0xffff
}

#[inline(always)]
fn write(cookie: u64, (tid, tgid): (u32, u32), open: &OpenCall, end_ns: u64, result: i32) {
    let Some(mut entry) = emit::reserve::<CudaCallRecord>(LossClass::RingSyscall) else { return };
    let record = entry.as_mut_ptr();
    // SAFETY: room for a record in the ring.
    unsafe {
        (*record).header = emit::header(RecordKind::CudaCall, end_ns);
        (*record).start_ns = open.start_ns;
        (*record).end_ns = end_ns;
        (*record).tid = tid;
        (*record).tgid = tgid;
        (*record).function = (cookie & 0xffff) as u32;
        (*record).result = result;
        (*record).stream = open.stream;
        (*record).argument = open.argument;
    }
    emit::submit(entry);
}

/// The argument at a place that the cookie names in its lowest byte.
#[inline(always)]
fn argument(ctx: &ProbeContext, place: u64) -> u64 {
    match place as u8 {
        0 => ctx.arg(0).unwrap_or(0),
        1 => ctx.arg(1).unwrap_or(0),
        2 => ctx.arg(2).unwrap_or(0),
        3 => ctx.arg(3).unwrap_or(0),
        4 => ctx.arg(4).unwrap_or(0),
        5 => ctx.arg(5).unwrap_or(0),
        number @ 6..=9 => on_stack(ctx, number),
        call_argument::CONFIG_STREAM => {
            read_user(ctx.arg::<u64>(0).unwrap_or(0).wrapping_add(call_argument::CONFIG_STREAM_OFFSET))
        }
        _ => 0,
    }
}

/// An argument that does not fit into registers, at the function's first instruction.
#[cfg(bpf_target_arch = "x86_64")]
#[inline(always)]
fn on_stack(ctx: &ProbeContext, number: u8) -> u64 {
    // SAFETY: the registers of the probed thread.
    let stack = unsafe { (*ctx.regs.cast::<pt_regs>()).rsp };
    // The return address comes first, the seventh argument after it.
    read_user(stack + 8 * (u64::from(number) - 5))
}

/// The same where eight are in registers and nothing lies before the rest.
#[cfg(not(bpf_target_arch = "x86_64"))]
#[inline(always)]
fn on_stack(ctx: &ProbeContext, number: u8) -> u64 {
    if number < 8 {
        return ctx.arg(number as usize).unwrap_or(0);
    }
    // SAFETY: the registers of the probed thread.
    let stack = unsafe { (*ctx.regs.cast::<pt_regs>()).sp };
    read_user(stack + 8 * (u64::from(number) - 8))
}

/// A word of the target's memory, 0 where it cannot be read.
#[inline(always)]
fn read_user(address: u64) -> u64 {
    let mut value = MaybeUninit::<u64>::uninit();
    // SAFETY: the helper writes the whole of `value`, with zeros where it cannot read.
    unsafe {
        bpf_probe_read_user(value.as_mut_ptr().cast(), 8, address as *const _);
        value.assume_init()
    }
}
