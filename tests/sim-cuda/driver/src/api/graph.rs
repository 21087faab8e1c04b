//! Graphs: from captures, or made of kernel nodes one by one. Executable ones are changed as a whole.

use std::ffi::c_void;
use std::sync::Arc;

use sim_abi::{OpInfo, OpKind};

use super::call::{api, put, put_if};
use crate::capture::{EXECS, GRAPHS, Graph, GraphExec};
use crate::clock;
use crate::config;
use crate::context;
use crate::device::channel::Work;
use crate::error::{self, Result};
use crate::module::FUNCTIONS;
use crate::stream;
use crate::submit;

/// `CUDA_KERNEL_NODE_PARAMS`, the part that both its versions have.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct KernelNodeParams {
    function: *mut c_void,
    grid: [u32; 3],
    block: [u32; 3],
    shared: u32,
    params: *mut *mut c_void,
    extra: *mut *mut c_void,
}

/// `CUgraphExecUpdateResultInfo`.
#[repr(C)]
pub struct UpdateResult {
    result: i32,
    error_node: *mut c_void,
    error_from_node: *mut c_void,
}

/// `CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED`.
const TOPOLOGY_CHANGED: i32 = 2;

fn add_kernel(
    node: *mut *mut c_void,
    handle: *mut c_void,
    after: *const *mut c_void,
    count: usize,
    params: *const KernelNodeParams,
) -> Result {
    let graph = graph(handle)?;
    if node.is_null() || params.is_null() || (after.is_null() && count > 0) || count > 1 << 20 {
        return Err(error::INVALID_VALUE);
    }
    // SAFETY: not null; as many nodes and one structure by the function's contract.
    let (after, params) = unsafe {
        let after = (0..count).map(|at| after.add(at).read_unaligned() as u64).collect::<Vec<u64>>();
        (after, params.read_unaligned())
    };
    let function = FUNCTIONS.get(params.function).ok_or(error::INVALID_HANDLE)?;
    let duration = function.duration(params.params, params.extra)?;
    let context = context::current()?;
    let info = OpInfo {
        name: function.name.as_ptr(),
        grid: params.grid,
        block: params.block,
        shared: params.shared,
        ..submit::describe(OpKind::Kernel, &context.null_stream)
    };
    put(node, graph.add(Work::Kernel { duration, data: None }, Some(info), &after)? as *mut c_void)
}

fn graph(handle: *mut c_void) -> Result<Arc<Graph>> {
    GRAPHS.get(handle).ok_or(error::INVALID_HANDLE)
}

api! {
    /// Makes a graph without nodes.
    fn cuGraphCreate[](graph: *mut *mut c_void, flags: u32) {
        if flags != 0 || graph.is_null() {
            return Err(error::INVALID_VALUE);
        }
        put(graph, Graph::empty().handle)
    }

    /// Makes another one of the same nodes.
    fn cuGraphClone[](clone: *mut *mut c_void, handle: *mut c_void) {
        let copy = graph(handle)?.copy();
        put(clone, copy.handle)
    }

    /// Adds a kernel after other nodes.
    fn cuGraphAddKernelNode[](
        node: *mut *mut c_void, handle: *mut c_void, after: *const *mut c_void, count: usize,
        params: *const KernelNodeParams,
    ) {
        add_kernel(node, handle, after, count, params)
    }

    /// Adds a kernel after other nodes.
    fn cuGraphAddKernelNode_v2[](
        node: *mut *mut c_void, handle: *mut c_void, after: *const *mut c_void, count: usize,
        params: *const KernelNodeParams,
    ) {
        add_kernel(node, handle, after, count, params)
    }

    /// Has an executable graph do what another graph's nodes do, if it has the same ones.
    fn cuGraphExecUpdate_v2[](exec: *mut c_void, handle: *mut c_void, info: *mut UpdateResult) {
        let start = clock::now();
        let (exec, graph) = (EXECS.get(exec).ok_or(error::INVALID_HANDLE)?, graph(handle)?);
        let updated = exec.update(&graph);
        let result = if updated { 0 } else { TOPOLOGY_CHANGED };
        put_if(info, UpdateResult { result, error_node: std::ptr::null_mut(), error_from_node: std::ptr::null_mut() });
        clock::spin_until(start + config::get().instantiate_ns * graph.nodes().len() as u64 / 4);
        if updated { Ok(()) } else { Err(error::GRAPH_EXEC_UPDATE_FAILURE) }
    }

    /// Makes a graph executable.
    fn cuGraphInstantiateWithFlags[](exec: *mut *mut c_void, handle: *mut c_void, flags: u64) {
        let _ = flags;
        let start = clock::now();
        let graph = graph(handle)?;
        if exec.is_null() {
            return Err(error::INVALID_VALUE);
        }
        let made = GraphExec::instantiate(&graph);
        clock::spin_until(start + config::get().instantiate_ns * (graph.nodes().len() as u64 + 1));
        put(exec, made)
    }

    /// Runs it in the order of a stream.
    fn cuGraphLaunch[twin cuGraphLaunch_ptsz](exec: *mut c_void, handle: *mut c_void) {
        let start = clock::now();
        let exec = EXECS.get(exec).ok_or(error::INVALID_HANDLE)?;
        exec.launch(&stream::resolve(handle)?)?;
        clock::spin_until(start + config::get().launch_ns);
        Ok(())
    }

    /// Brings it to the device before its first launch; nothing to do.
    fn cuGraphUpload[twin cuGraphUpload_ptsz](exec: *mut c_void, handle: *mut c_void) {
        stream::resolve(handle)?;
        EXECS.get(exec).map(drop).ok_or(error::INVALID_HANDLE)
    }

    /// Takes it away; launches in flight go on.
    fn cuGraphExecDestroy[](exec: *mut c_void) {
        EXECS.remove(exec).map(drop).ok_or(error::INVALID_HANDLE)
    }

    /// Takes it away.
    fn cuGraphDestroy[](handle: *mut c_void) {
        GRAPHS.remove(handle).map(drop).ok_or(error::INVALID_HANDLE)
    }

    /// How many nodes it has; the nodes themselves have no handles.
    fn cuGraphGetNodes[](handle: *mut c_void, nodes: *mut *mut c_void, count: *mut usize) {
        let graph = graph(handle)?;
        if !nodes.is_null() {
            return Err(error::NOT_SUPPORTED);
        }
        put(count, graph.nodes().len())
    }
}
