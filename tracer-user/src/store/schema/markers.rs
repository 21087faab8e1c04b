//! Table `markers`.

use crate::event::{MonoNs, Pid, RowId, Text, Tid};
use crate::store::table::table;

table! {
    /// One range that the program or its framework marked on a thread: NVTX, operators and annotations of PyTorch, Python
    /// functions. It says where the thread was, not whether it ran or waited.
    pub struct Marker in "markers", sorted by start_ns {
        /// Unique within the table.
        id: RowId,
        /// Process.
        pid: Pid,
        /// Thread.
        tid: Tid,
        /// `nvtx` (its default domain), the name of another domain of NVTX (`NCCL`), `cpu_op` (an operator of the framework), `annotation` (`record_function`), `python` (a function).
        domain: Text,
        /// Its name.
        name: Text,
        /// Start.
        start_ns: MonoNs,
        /// End.
        end_ns: MonoNs,
    }
}
