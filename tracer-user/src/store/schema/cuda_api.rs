//! Table `cuda_api`.

use crate::event::{CorrelationId, MonoNs, Pid, RowId, Text, Tid};
use crate::store::table::table;

table! {
    /// One call of the CUDA runtime or driver API, in the thread that made it.
    pub struct CudaApi in "cuda_api", sorted by start_ns {
        /// Unique within the table.
        id: RowId,
        /// Process.
        pid: Pid,
        /// Thread, in the recorder's pid namespace.
        tid: Tid,
        /// `runtime` or `driver`.
        domain: Text,
        /// The function, without version suffix games: `cuLaunchKernel`, `cudaMemcpyAsync`.
        name: Text,
        /// Entry.
        start_ns: MonoNs,
        /// Return.
        end_ns: MonoNs,
        /// Joins with `gpu_ops.correlation_id` of the same process.
        correlation_id: CorrelationId,
        /// `CUresult` or `cudaError_t`.
        result: i32,
    }
}
