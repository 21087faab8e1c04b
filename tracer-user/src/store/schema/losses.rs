//! Table `losses`.

use crate::event::{MonoNs, Pid, Text};
use crate::store::table::table;

table! {
    /// One interval in which events were lost or refused. Nothing inside it is blamed on anybody.
    pub struct Loss in "losses", sorted by start_ns {
        /// `ring.off_cpu`, `ring.syscall`, `ring.block`, `threads`, `shim.ring`, `cupti.dropped`, `cupti.invalid` …
        source: Text,
        /// The record's kind and what was wrong: `kernel: start and end are 0`.
        reason: Text,
        /// The process, where one alone is concerned.
        pid: Option<Pid>,
        /// Lost after this moment.
        start_ns: MonoNs,
        /// Lost before this moment.
        end_ns: MonoNs,
        /// How many.
        count: i64,
    }
}
