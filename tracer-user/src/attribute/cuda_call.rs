//! What a CUDA call does, by its name.

use super::cause::Cause;

/// What kind of work a call of the runtime or driver API is, or an overhead record within one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CudaCall {
    /// Hands work to the device and returns: kernels, graphs, asynchronous copies, events, host functions.
    Submit,
    /// Waits for the device: stream, event, context or device.
    Synchronize,
    /// A copy that returns when it is done, or staged.
    Copy,
    /// Allocates device memory.
    Malloc,
    /// Frees device memory; implies a synchronisation.
    Free,
    /// Pins, unpins or registers host memory.
    Pin,
    /// Loads code.
    ModuleLoad,
    /// Compiles code.
    Jit,
    /// Captures, builds or instantiates a graph.
    GraphBuild,
    /// Sets up the driver or a context.
    Init,
    /// Host function or callback: the stream waits for the host.
    HostFunction,
    /// Something else.
    Other,
    /// CUPTI's or gtrace's own time (an overhead record).
    Tool,
}

/// The name without `cuda`, `cu` or `hip` before it and without the suffixes of API versions and stream modes.
fn base_name(name: &str) -> &str {
    let prefixes = ["cuda", "cu", "hip"];
    let name = prefixes.iter().find_map(|prefix| name.strip_prefix(prefix)).unwrap_or(name);
    let name = name.strip_suffix("_ptsz").or_else(|| name.strip_suffix("_ptds")).unwrap_or(name);
    match name.rsplit_once("_v") {
        Some((base, version)) if !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_digit()) => {
            base
        }
        _ => name,
    }
}

impl CudaCall {
    /// The kind of the function `name`: `cudaMemcpyAsync`, `cuMemcpyHtoD_v2` …
    #[must_use]
    pub fn of_function(name: &str) -> Self {
        let base = base_name(name);
        let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| base.starts_with(prefix));
        if base.ends_with("Synchronize") {
            return Self::Synchronize;
        }
        if starts(&["LaunchHostFunc", "StreamAddCallback"]) {
            return Self::HostFunction;
        }
        if starts(&["Memcpy", "Memset"]) {
            return if base.contains("Async") || base.starts_with("Memset") {
                Self::Submit
            } else {
                Self::Copy
            };
        }
        if starts(&[
            "MemHost",
            "MemAllocHost",
            "MemFreeHost",
            "HostAlloc",
            "HostRegister",
            "HostUnregister",
            "MallocHost",
            "FreeHost",
            "HostFree",
            "HostMalloc",
        ]) {
            return Self::Pin;
        }
        if starts(&[
            "MemAlloc",
            "Malloc",
            "MemCreate",
            "MemMap",
            "MemAddressReserve",
            "MemSetAccess",
            "ArrayCreate",
            "MipmappedArrayCreate",
        ]) {
            return Self::Malloc;
        }
        if starts(&[
            "MemFree",
            "Free",
            "MemRelease",
            "MemUnmap",
            "MemAddressFree",
            "MemPoolTrimTo",
            "ArrayDestroy",
        ]) {
            return Self::Free;
        }
        if starts(&["LinkCreate", "LinkAdd", "LinkComplete"]) || name.starts_with("nvrtcCompile") {
            return Self::Jit;
        }
        if base.contains("LaunchKernel") || base.contains("LaunchCooperativeKernel") {
            return Self::Submit;
        }
        if starts(&[
            "ModuleLoad",
            "ModuleGetFunction",
            "ModuleUnload",
            "LibraryLoad",
            "LibraryGet",
            "LibraryUnload",
            "KernelGetFunction",
            "FuncLoad",
        ]) {
            return Self::ModuleLoad;
        }
        if starts(&["GraphLaunch"]) {
            return Self::Submit;
        }
        if starts(&["Graph", "StreamBeginCapture", "StreamEndCapture"]) {
            return Self::GraphBuild;
        }
        if starts(&[
            "Launch",
            "EventRecord",
            "StreamWaitEvent",
            "StreamWriteValue",
            "StreamWaitValue",
            "StreamBatchMemOp",
        ]) {
            return Self::Submit;
        }
        if base == "Init"
            || starts(&[
                "CtxCreate",
                "CtxDestroy",
                "DevicePrimaryCtx",
                "DeviceReset",
                "SetDevice",
                "InitDevice",
            ])
        {
            return Self::Init;
        }
        Self::Other
    }

    /// The kind of an overhead record.
    #[must_use]
    pub fn of_overhead(kind: &str) -> Self {
        match kind {
            "module_loading" | "lazy_function_loading" => Self::ModuleLoad,
            "compiler" | "driver_compiler" => Self::Jit,
            "command_buffer_full" => Self::Submit,
            "uvm_init" => Self::Init,
            _ => Self::Tool,
        }
    }

    /// The cause of time that a thread spends in such a call, whether on the CPU or blocked within it.
    #[must_use]
    pub const fn cause(self) -> Cause {
        match self {
            Self::Submit | Self::HostFunction => Cause::CudaLaunch,
            Self::Synchronize | Self::Copy => Cause::CudaSync,
            Self::Malloc => Cause::CudaMalloc,
            Self::Free => Cause::CudaFree,
            Self::Pin => Cause::CudaPin,
            Self::ModuleLoad => Cause::CudaModuleLoad,
            Self::Jit => Cause::CudaJit,
            Self::GraphBuild => Cause::CudaGraphBuild,
            Self::Init => Cause::CudaInit,
            Self::Other => Cause::CudaApi,
            Self::Tool => Cause::ToolOverhead,
        }
    }

    /// Whether the host waits in it for the device to finish what was queued.
    #[must_use]
    pub const fn drains_queue(self) -> bool {
        matches!(self, Self::Synchronize | Self::Copy | Self::Free)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_by_name() {
        use CudaCall as C;
        for (name, kind) in [
            ("cuLaunchKernel", C::Submit),
            ("cudaLaunchKernelExC_v11060_ptsz", C::Submit),
            ("cuStreamSynchronize", C::Synchronize),
            ("cudaDeviceSynchronize_v3020", C::Synchronize),
            ("cudaMemcpyAsync", C::Submit),
            ("cuMemcpyHtoD_v2", C::Copy),
            ("cuMemcpyHtoDAsync_v2", C::Submit),
            ("cudaMemcpy", C::Copy),
            ("cuMemsetD8_v2", C::Submit),
            ("cuMemAlloc_v2", C::Malloc),
            ("cudaMallocHost", C::Pin),
            ("cudaMalloc", C::Malloc),
            ("cuMemAllocHost_v2", C::Pin),
            ("cuMemHostAlloc", C::Pin),
            ("cuMemFree_v2", C::Free),
            ("cuMemFreeHost", C::Pin),
            ("cudaFreeHost", C::Pin),
            ("cudaFree", C::Free),
            ("cuModuleLoadData", C::ModuleLoad),
            ("cuLinkComplete", C::Jit),
            ("cuGraphInstantiateWithFlags", C::GraphBuild),
            ("cuGraphLaunch", C::Submit),
            ("cuInit", C::Init),
            ("cuLaunchHostFunc", C::HostFunction),
            ("cuEventRecord", C::Submit),
            ("hipMalloc", C::Malloc),
            ("hipFree", C::Free),
            ("hipHostFree", C::Pin),
            ("hipExtModuleLaunchKernel", C::Submit),
            ("hipModuleLaunchKernel", C::Submit),
            ("hipModuleLoadData", C::ModuleLoad),
            ("hipMemcpyWithStream", C::Copy),
            ("hipGraphLaunch", C::Submit),
            ("cuDeviceGetAttribute", C::Other),
            ("", C::Other),
        ] {
            assert_eq!(CudaCall::of_function(name), kind, "{name}");
        }
    }
}
