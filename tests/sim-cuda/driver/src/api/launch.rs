//! Launches of kernels.

use std::ffi::c_void;

use sim_abi::{OpInfo, OpKind};

use super::call::api;
use crate::clock;
use crate::config;
use crate::device::channel::Work;
use crate::device::rendezvous::Rendezvous;
use crate::error::{self, Result};
use crate::module::FUNCTIONS;
use crate::stream;
use crate::submit;

/// `CUlaunchConfig`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct LaunchConfig {
    grid: [u32; 3],
    block: [u32; 3],
    shared: u32,
    stream: *mut c_void,
    attributes: *const c_void,
    attribute_count: u32,
}

struct Shape {
    grid: [u32; 3],
    block: [u32; 3],
    shared: u32,
}

fn launch(
    handle: *mut c_void,
    shape: &Shape,
    stream: *mut c_void,
    params: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> Result {
    let start = clock::now();
    let stream = stream::resolve(stream)?;
    let function = FUNCTIONS.get(handle).ok_or(error::INVALID_HANDLE)?;
    let threads = shape.block.iter().try_fold(1u32, |product, side| product.checked_mul(*side));
    let empty = shape.grid.contains(&0) || shape.block.contains(&0);
    if empty || threads.is_none_or(|threads| threads > 1024) {
        return Err(error::INVALID_VALUE);
    }
    let work = if function.is_collective() {
        Work::Collective(Rendezvous::read(function.first_argument(params, extra)?)?)
    } else {
        Work::Kernel { duration: function.duration(params, extra)?, data: None }
    };
    function.ensure_loaded();
    let info = OpInfo {
        name: function.name.as_ptr(),
        grid: shape.grid,
        block: shape.block,
        shared: shape.shared,
        ..submit::describe(OpKind::Kernel, &stream)
    };
    submit::submit(&stream, work, Some(info));
    clock::spin_until(start + config::get().launch_ns);
    Ok(())
}

api! {
    /// Launches a kernel.
    fn cuLaunchKernel[launches function, twin cuLaunchKernel_ptsz](
        function: *mut c_void, grid_x: u32, grid_y: u32, grid_z: u32, block_x: u32, block_y: u32, block_z: u32,
        shared: u32, handle: *mut c_void, params: *mut *mut c_void, extra: *mut *mut c_void,
    ) {
        let shape = Shape { grid: [grid_x, grid_y, grid_z], block: [block_x, block_y, block_z], shared };
        launch(function, &shape, handle, params, extra)
    }

    /// Launches a kernel; attributes are accepted without effect.
    fn cuLaunchKernelEx[launches function, twin cuLaunchKernelEx_ptsz](
        config: *const LaunchConfig, function: *mut c_void, params: *mut *mut c_void, extra: *mut *mut c_void,
    ) {
        if config.is_null() {
            return Err(error::INVALID_VALUE);
        }
        // SAFETY: not null; a configuration by the function's contract.
        let config = unsafe { config.read_unaligned() };
        let shape = Shape { grid: config.grid, block: config.block, shared: config.shared };
        launch(function, &shape, config.stream, params, extra)
    }

    /// Launches a kernel whose blocks can wait for each other.
    fn cuLaunchCooperativeKernel[launches function, twin cuLaunchCooperativeKernel_ptsz](
        function: *mut c_void, grid_x: u32, grid_y: u32, grid_z: u32, block_x: u32, block_y: u32, block_z: u32,
        shared: u32, handle: *mut c_void, params: *mut *mut c_void,
    ) {
        let shape = Shape { grid: [grid_x, grid_y, grid_z], block: [block_x, block_y, block_z], shared };
        launch(function, &shape, handle, params, std::ptr::null_mut())
    }
}
