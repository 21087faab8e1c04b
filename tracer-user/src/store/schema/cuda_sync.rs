//! Table `cuda_sync`.

use crate::event::{ContextId, CorrelationId, MonoNs, Pid, RowId, StreamId, Text};
use crate::store::table::table;

table! {
    /// One synchronisation of host and device, or of two streams.
    pub struct CudaSync in "cuda_sync", sorted by start_ns {
        /// Unique within the table.
        id: RowId,
        /// Process.
        pid: Pid,
        /// `event`, `stream_wait_event`, `stream` or `context`.
        kind: Text,
        /// CUDA context.
        context: ContextId,
        /// The stream that was waited for, or that waits (`stream_wait_event`).
        stream: Option<StreamId>,
        /// The event.
        event_id: Option<i64>,
        /// Start of the call.
        start_ns: MonoNs,
        /// Return of the call.
        end_ns: MonoNs,
        /// Joins with `cuda_api.correlation_id`: the thread is there.
        correlation_id: CorrelationId,
    }
}
