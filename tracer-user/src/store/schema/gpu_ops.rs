//! Table `gpu_ops`.

use crate::event::{ContextId, CorrelationId, DeviceId, MonoNs, OpId, Pid, StreamId, Text};
use crate::store::table::table;

table! {
    /// One piece of device work with device timestamps: kernel, memcpy, memset, or a whole CUDA graph in graph mode.
    /// Only valid ones: `end_ns >= start_ns > 0`; the others are counted in `losses`.
    pub struct GpuOp in "gpu_ops", sorted by start_ns {
        /// Unique within the bundle.
        op_id: OpId,
        /// The process that launched it.
        pid: Pid,
        /// The GPU.
        device: DeviceId,
        /// CUDA context.
        context: ContextId,
        /// CUDA stream.
        stream: StreamId,
        /// `kernel`, `memcpy`, `memset` or `graph`; `queued`: without CUPTI, a stretch in which work was queued, as the
        /// driver's calls tell. The gaps between such stretches are bounds: the device idled at least so long.
        kind: Text,
        /// Kernel's name (demangled where possible), or what the copy is (`HtoD`).
        name: Text,
        /// Start on the device, converted to CLOCK_MONOTONIC.
        start_ns: MonoNs,
        /// End on the device, converted to CLOCK_MONOTONIC.
        end_ns: MonoNs,
        /// Joins with `cuda_api.correlation_id` of the same process. The ops of one graph launch share it.
        correlation_id: CorrelationId,
        /// Executable graph that it belongs to.
        graph_id: Option<i64>,
        /// Node of that graph.
        graph_node_id: Option<i64>,
        /// Bytes copied or set.
        bytes: Option<i64>,
        /// Copies: `HtoD`, `DtoH`, `DtoD`, `HtoH`, `PtoP`, …
        copy_kind: Option<Text>,
        /// Copies: kind of the source memory: `pageable`, `pinned`, `device`, `array`, `managed`, …
        src_kind: Option<Text>,
        /// Copies: kind of the destination memory.
        dst_kind: Option<Text>,
        /// Copies: whether the call was an asynchronous one.
        is_async: Option<bool>,
        /// Kernels: grid, x.
        grid_x: Option<i32>,
        /// Kernels: grid, y.
        grid_y: Option<i32>,
        /// Kernels: grid, z.
        grid_z: Option<i32>,
        /// Kernels: block, x.
        block_x: Option<i32>,
        /// Kernels: block, y.
        block_y: Option<i32>,
        /// Kernels: block, z.
        block_z: Option<i32>,
    }
}
