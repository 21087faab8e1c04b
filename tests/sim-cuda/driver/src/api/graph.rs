//! Graphs. They come from captures only; their nodes cannot be edited.

use std::ffi::c_void;
use std::sync::Arc;

use super::call::{api, put};
use crate::capture::{EXECS, GRAPHS, Graph, GraphExec};
use crate::clock;
use crate::config;
use crate::error::{self, Result};
use crate::stream;

fn graph(handle: *mut c_void) -> Result<Arc<Graph>> {
    GRAPHS.get(handle).ok_or(error::INVALID_HANDLE)
}

api! {
    /// Makes a graph executable.
    fn cuGraphInstantiateWithFlags[](exec: *mut *mut c_void, handle: *mut c_void, flags: u64) {
        let _ = flags;
        let start = clock::now();
        let graph = graph(handle)?;
        if exec.is_null() {
            return Err(error::INVALID_VALUE);
        }
        let made = GraphExec::instantiate(&graph);
        clock::spin_until(start + config::get().instantiate_ns * (graph.nodes.len() as u64 + 1));
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
        put(count, graph.nodes.len())
    }
}
