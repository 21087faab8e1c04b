//! Table `threads`.

use crate::event::{MonoNs, Pid, Text, Tid};
use crate::store::table::table;

table! {
    /// One thread seen.
    pub struct Thread in "threads", sorted by start_ns {
        /// Process.
        pid: Pid,
        /// Thread.
        tid: Tid,
        /// Its name as the kernel has it (the last one seen).
        comm: Text,
        /// When it began, or when the recording did.
        start_ns: MonoNs,
        /// When it ended; of one outside the tree, when that was noticed. NULL: it lived on.
        end_ns: Option<MonoNs>,
        /// It lived before the recording began.
        before_attach: bool,
        /// `main`, `dataloader_worker`, `pin_memory`, `checkpoint`, `nccl_proxy`, `server`, `kernel` …, set by the
        /// analysis. NULL: not known.
        role: Option<Text>,
    }
}
