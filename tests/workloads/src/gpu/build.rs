//! Graphs, built node by node.

use std::ffi::c_void;

use anyhow::Result;
use cudarc::driver::sys;

use super::{Gpu, OrSay as _};

impl Gpu {
    /// Builds a graph of so many kernels in a row, instantiates it, and destroys both.
    ///
    /// # Errors
    /// A call fails.
    pub fn build_graph(&self, kernels: usize) -> Result<()> {
        let (mut graph, mut exec) = (std::ptr::null_mut(), std::ptr::null_mut());
        let mut duration = 1_000_u64;
        let mut parameters = [(&raw mut duration).cast::<c_void>()];
        let node = sys::CUDA_KERNEL_NODE_PARAMS {
            func: self.spin_ns,
            gridDimX: 1,
            gridDimY: 1,
            gridDimZ: 1,
            blockDimX: 1,
            blockDimY: 1,
            blockDimZ: 1,
            sharedMemBytes: 0,
            kernelParams: parameters.as_mut_ptr(),
            extra: std::ptr::null_mut(),
            kern: std::ptr::null_mut(),
            ctx: std::ptr::null_mut(),
        };
        // SAFETY: places to fill, a live function with one parameter of 8 bytes, and handles that these calls gave.
        unsafe {
            sys::cuGraphCreate(&raw mut graph, 0).result().or_say("cannot make a graph")?;
            let mut last = std::ptr::null_mut();
            for number in 0..kernels {
                let before = last;
                let count = usize::from(number > 0);
                sys::cuGraphAddKernelNode_v2(&raw mut last, graph, &raw const before, count, &raw const node)
                    .result()
                    .or_say("cannot add a node")?;
            }
            sys::cuGraphInstantiateWithFlags(&raw mut exec, graph, 0)
                .result()
                .or_say("cannot instantiate")?;
            sys::cuGraphExecDestroy(exec).result().or_say("cannot destroy the executable graph")?;
            sys::cuGraphDestroy(graph).result().or_say("cannot destroy the graph")
        }
    }
}
