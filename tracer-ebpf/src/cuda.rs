//! Calls of the CUDA driver, counted for a moment before CUPTI comes into a process, and the calls by which other clients of
//! CUPTI come and go.

use aya_ebpf::EbpfContext as _;
use aya_ebpf::helpers::generated::bpf_get_attach_cookie;
use aya_ebpf::macros::uprobe;
use aya_ebpf::maps::HashMap;
use aya_ebpf::programs::ProbeContext;
use tracer_abi::kernel::{ClientCall, THREAD_NAME_BYTES};

use crate::maps::{CUDA_CALLS, CUPTI_CLIENTS, GRAPH_LAUNCHES, LAUNCHES};
use crate::{kernel, threads};

/// The name of the shim's own thread.
const SHIM_THREAD: &[u8; 13] = b"gtrace-cupti\0";

/// A function of CUPTI by which a client comes or goes; which one is in the attachment's cookie.
#[uprobe]
pub fn cupti_client(ctx: ProbeContext) -> u32 {
    let (_, tgid) = kernel::current_ids();
    if !threads::is_member(tgid) {
        return 0;
    }
    let mut name = [0; THREAD_NAME_BYTES];
    // SAFETY: the array is writable.
    unsafe { kernel::current_comm(&raw mut name) };
    if name[..SHIM_THREAD.len()] == *SHIM_THREAD {
        return 0;
    }
    // SAFETY: the context is that of this attachment.
    let function = unsafe { bpf_get_attach_cookie(ctx.as_ptr()) };
    let key = (u64::from(tgid) << 32) | (function & 0xffff_ffff);
    let now = kernel::now_ns();
    match CUPTI_CLIENTS.get_ptr_mut(key) {
        // SAFETY: an element of the map, aligned to 8.
        Some(call) => unsafe {
            kernel::atomic_add(&raw mut (*call).count, 1);
            (*call).last_ns = now;
        },
        None => drop(CUPTI_CLIENTS.insert(key, ClientCall { count: 1, last_ns: now }, 0)),
    }
    0
}

/// The driver's `cuGraphLaunch`.
#[uprobe]
pub fn cuda_graph_launch(_ctx: ProbeContext) -> u32 {
    count(&GRAPH_LAUNCHES);
    count(&CUDA_CALLS);
    0
}

/// Its calls that launch kernels.
#[uprobe]
pub fn cuda_launch(_ctx: ProbeContext) -> u32 {
    count(&LAUNCHES);
    count(&CUDA_CALLS);
    0
}

/// Its other calls that send work to a device.
#[uprobe]
pub fn cuda_call(_ctx: ProbeContext) -> u32 {
    count(&CUDA_CALLS);
    0
}

#[inline(always)]
fn count(counts: &HashMap<u32, u64>) {
    let (_, tgid) = kernel::current_ids();
    if !threads::is_member(tgid) {
        return;
    }
    match counts.get_ptr_mut(tgid) {
        // SAFETY: an element of the map, aligned to 8.
        Some(count) => unsafe { kernel::atomic_add(count, 1) },
        // Full, or another CPU was first: that there are some is what counts.
        None => drop(counts.insert(tgid, 1, 0)),
    }
}
