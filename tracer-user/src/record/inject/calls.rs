//! The driver's calls that say what a device has to do, and when it has done it.

use std::path::PathBuf;

use tracer_abi::kernel::{call_argument, call_cookie};

use super::driver::Driver;

const NONE: u8 = call_argument::NONE;

/// What a call is, as far as the device is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Sends work to a stream. Seen by its entry.
    Submits,
    /// Copies or sets in the default stream, and returns when that is done.
    Blocks,
    /// Puts an event into a stream.
    Records,
    /// Waits for a stream.
    WaitsForStream,
    /// Waits for an event.
    WaitsForEvent,
    /// Waits for all streams of the context.
    WaitsForAll,
    /// Takes the host's time, and says nothing of the device.
    Host,
}

impl Role {
    /// Whether it is seen from entry to return.
    #[must_use]
    pub const fn has_return(self) -> bool {
        !matches!(self, Self::Submits | Self::Records)
    }
}

/// A function: its symbol, what it is, where its stream and its event or size are, and whether its default stream is the
/// calling thread's own.
#[derive(Clone, Copy, Debug)]
pub struct Function {
    /// The symbol in libcuda.
    pub symbol: &'static str,
    /// What it is.
    pub role: Role,
    /// Whether stream 0 is the calling thread's own.
    pub per_thread: bool,
    stream: u8,
    argument: u8,
}

const fn function(symbol: &'static str, role: Role, stream: u8, argument: u8) -> Function {
    Function { symbol, role, per_thread: false, stream, argument }
}

/// The same with a default stream a thread.
const fn own(symbol: &'static str, role: Role, stream: u8, argument: u8) -> Function {
    Function { symbol, role, per_thread: true, stream, argument }
}

/// The functions, by their numbers in the records.
pub const FUNCTIONS: [Function; 65] = [
    function("cuLaunchKernel", Role::Submits, 8, NONE),
    own("cuLaunchKernel_ptsz", Role::Submits, 8, NONE),
    function("cuLaunchKernelEx", Role::Submits, call_argument::CONFIG_STREAM, NONE),
    own("cuLaunchKernelEx_ptsz", Role::Submits, call_argument::CONFIG_STREAM, NONE),
    function("cuLaunchCooperativeKernel", Role::Submits, 8, NONE),
    own("cuLaunchCooperativeKernel_ptsz", Role::Submits, 8, NONE),
    function("cuGraphLaunch", Role::Submits, 1, NONE),
    own("cuGraphLaunch_ptsz", Role::Submits, 1, NONE),
    function("cuLaunchHostFunc", Role::Submits, 0, NONE),
    own("cuLaunchHostFunc_ptsz", Role::Submits, 0, NONE),
    function("cuMemcpyHtoDAsync_v2", Role::Submits, 3, 2),
    own("cuMemcpyHtoDAsync_v2_ptsz", Role::Submits, 3, 2),
    function("cuMemcpyDtoHAsync_v2", Role::Submits, 3, 2),
    own("cuMemcpyDtoHAsync_v2_ptsz", Role::Submits, 3, 2),
    function("cuMemcpyDtoDAsync_v2", Role::Submits, 3, 2),
    own("cuMemcpyDtoDAsync_v2_ptsz", Role::Submits, 3, 2),
    function("cuMemcpyAsync", Role::Submits, 3, 2),
    own("cuMemcpyAsync_ptsz", Role::Submits, 3, 2),
    function("cuMemcpyPeerAsync", Role::Submits, 5, 4),
    own("cuMemcpyPeerAsync_ptsz", Role::Submits, 5, 4),
    function("cuMemcpy2DAsync_v2", Role::Submits, 1, NONE),
    own("cuMemcpy2DAsync_v2_ptsz", Role::Submits, 1, NONE),
    function("cuMemcpy3DAsync_v2", Role::Submits, 1, NONE),
    own("cuMemcpy3DAsync_v2_ptsz", Role::Submits, 1, NONE),
    function("cuMemsetD8Async", Role::Submits, 3, 2),
    own("cuMemsetD8Async_ptsz", Role::Submits, 3, 2),
    function("cuMemsetD16Async", Role::Submits, 3, 2),
    own("cuMemsetD16Async_ptsz", Role::Submits, 3, 2),
    function("cuMemsetD32Async", Role::Submits, 3, 2),
    own("cuMemsetD32Async_ptsz", Role::Submits, 3, 2),
    function("cuMemcpyHtoD_v2", Role::Blocks, NONE, 2),
    own("cuMemcpyHtoD_v2_ptds", Role::Blocks, NONE, 2),
    function("cuMemcpyDtoH_v2", Role::Blocks, NONE, 2),
    own("cuMemcpyDtoH_v2_ptds", Role::Blocks, NONE, 2),
    function("cuMemcpyDtoD_v2", Role::Blocks, NONE, 2),
    own("cuMemcpyDtoD_v2_ptds", Role::Blocks, NONE, 2),
    function("cuMemcpy", Role::Blocks, NONE, 2),
    own("cuMemcpy_ptds", Role::Blocks, NONE, 2),
    function("cuEventRecord", Role::Records, 1, 0),
    own("cuEventRecord_ptsz", Role::Records, 1, 0),
    function("cuEventRecordWithFlags", Role::Records, 1, 0),
    own("cuEventRecordWithFlags_ptsz", Role::Records, 1, 0),
    function("cuStreamSynchronize", Role::WaitsForStream, 0, NONE),
    own("cuStreamSynchronize_ptsz", Role::WaitsForStream, 0, NONE),
    function("cuEventSynchronize", Role::WaitsForEvent, NONE, 0),
    function("cuCtxSynchronize", Role::WaitsForAll, NONE, NONE),
    function("cuMemAlloc_v2", Role::Host, NONE, 1),
    function("cuMemFree_v2", Role::Host, NONE, NONE),
    function("cuMemAllocAsync", Role::Host, NONE, 1),
    own("cuMemAllocAsync_ptsz", Role::Host, NONE, 1),
    function("cuMemFreeAsync", Role::Host, NONE, NONE),
    own("cuMemFreeAsync_ptsz", Role::Host, NONE, NONE),
    function("cuMemHostAlloc", Role::Host, NONE, 1),
    function("cuMemFreeHost", Role::Host, NONE, NONE),
    function("cuMemHostRegister_v2", Role::Host, NONE, 1),
    function("cuMemHostUnregister", Role::Host, NONE, NONE),
    function("cuMemCreate", Role::Host, NONE, 1),
    function("cuMemMap", Role::Host, NONE, 1),
    function("cuModuleLoadData", Role::Host, NONE, NONE),
    function("cuModuleLoadDataEx", Role::Host, NONE, NONE),
    function("cuLibraryLoadData", Role::Host, NONE, NONE),
    function("cuModuleGetFunction", Role::Host, NONE, NONE),
    function("cuGraphInstantiateWithFlags", Role::Host, NONE, NONE),
    function("cuGraphExecUpdate_v2", Role::Host, NONE, NONE),
    function("cuDevicePrimaryCtxRetain", Role::Host, NONE, NONE),
];

/// Where the functions lie in a driver's file.
#[derive(Clone, Debug)]
pub struct Calls {
    /// A path that leads to the very file that is mapped.
    pub path: PathBuf,
    /// Device and inode: processes may share it.
    pub file: (u64, u64),
    /// Offset, cookie and whether the return is wanted, each offset once: aliases share one.
    pub places: Vec<(u64, u64, bool)>,
}

impl Calls {
    /// Of a driver.
    #[must_use]
    pub fn of(driver: &Driver) -> Self {
        let mut places: Vec<(u64, u64, bool)> = Vec::new();
        for (number, function) in FUNCTIONS.iter().enumerate() {
            let offset = driver.functions.iter().find(|(symbol, _)| *symbol == function.symbol);
            if let Some(&(_, offset)) = offset
                && places.iter().all(|(known, ..)| *known != offset)
            {
                let cookie = call_cookie(number as u16, function.stream, function.argument);
                places.push((offset, cookie, function.role.has_return()));
            }
        }
        Self { path: driver.path.clone(), file: driver.file, places }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twins_say_the_same_but_for_the_default_stream() {
        for function in FUNCTIONS {
            let twin = [format!("{}_ptsz", function.symbol), format!("{}_ptds", function.symbol)];
            if let Some(twin) = FUNCTIONS.iter().find(|other| twin.iter().any(|name| name == other.symbol)) {
                assert_eq!(
                    (twin.role, twin.stream, twin.argument),
                    (function.role, function.stream, function.argument)
                );
                assert!(twin.per_thread && !function.per_thread);
            }
        }
    }
}
