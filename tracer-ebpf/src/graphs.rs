//! CUDA graphs that a process launches, counted for a moment before CUPTI comes into it.

use aya_ebpf::macros::uprobe;
use aya_ebpf::programs::ProbeContext;

use crate::maps::GRAPH_LAUNCHES;
use crate::{kernel, threads};

/// The driver's `cuGraphLaunch`. Attached for a second, to the file that is mapped into the process.
#[uprobe]
pub fn cuda_graph_launch(_ctx: ProbeContext) -> u32 {
    let (_, tgid) = kernel::current_ids();
    if !threads::is_member(tgid) {
        return 0;
    }
    match GRAPH_LAUNCHES.get_ptr_mut(tgid) {
        // SAFETY: an element of the map, aligned to 8.
        Some(count) => unsafe { kernel::atomic_add(count, 1) },
        // Full, or another CPU was first: there are launches, which is all that counts.
        None => drop(GRAPH_LAUNCHES.insert(tgid, 1, 0)),
    }
    0
}
