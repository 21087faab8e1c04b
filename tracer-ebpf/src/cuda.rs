//! Calls of the CUDA driver, counted for a moment before CUPTI comes into a process.

use aya_ebpf::macros::uprobe;
use aya_ebpf::maps::HashMap;
use aya_ebpf::programs::ProbeContext;

use crate::maps::{CUDA_CALLS, GRAPH_LAUNCHES};
use crate::{kernel, threads};

/// The driver's `cuGraphLaunch`.
#[uprobe]
pub fn cuda_graph_launch(_ctx: ProbeContext) -> u32 {
    count(&GRAPH_LAUNCHES);
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
