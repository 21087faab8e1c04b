//! Table `cuda_overhead`.

use crate::event::{CorrelationId, MonoNs, Pid, RowId, Text, Tid};
use crate::store::table::table;

table! {
    /// One interval that CUPTI says it, or the driver, needed for itself: instrumentation, buffer flushes, lazy
    /// loading, a full launch queue.
    pub struct CudaOverhead in "cuda_overhead", sorted by start_ns {
        /// Unique within the table.
        id: RowId,
        /// Process.
        pid: Pid,
        /// Thread, where CUPTI names one.
        tid: Option<Tid>,
        /// `buffer_flush`, `instrumentation`, `resource`, `module_loading`, `lazy_function_loading`,
        /// `command_buffer_full`, `buffer_request`, `uvm_init`, `compiler`, or `kind_N` for one that is not known.
        kind: Text,
        /// Start.
        start_ns: MonoNs,
        /// End.
        end_ns: MonoNs,
        /// The call during which it happened (CUDA 12.3 and newer).
        correlation_id: Option<CorrelationId>,
    }
}
