//! Table `memory_stalls`.

use crate::event::{MonoNs, Pid, RowId, Text, Tid};
use crate::store::table::table;

table! {
    /// One stretch of a thread's time in which it had to free memory, or to have pages moved, before it got some. Page faults
    /// that wait for a disk are intervals of `off_cpu` outside a system call, ended by a block request.
    pub struct MemoryStall in "memory_stalls", sorted by start_ns {
        /// Unique within the table.
        id: RowId,
        /// Process.
        pid: Pid,
        /// Thread.
        tid: Tid,
        /// `reclaim` (the machine was short of memory), `group_reclaim` (its control group was at its limit),
        /// `node_reclaim` (its memory node was short), `compaction` (pages were moved to make a large one).
        kind: Text,
        /// Beginning.
        start_ns: MonoNs,
        /// End.
        end_ns: MonoNs,
        /// The system call that needed the memory. NULL: outside one (a page fault).
        syscall: Option<Text>,
        /// Pages that were freed. NULL for compaction.
        pages: Option<i64>,
    }
}
