//! Table `interrupts`.

use crate::event::{MonoNs, Pid, RowId, Text, Tid};
use crate::store::table::table;

table! {
    /// One interrupt that took a CPU from a recorded thread in user code for 20 µs or longer, those that interrupted it
    /// included. Shorter ones, and those in system calls, are not told.
    pub struct Interrupt in "interrupts", sorted by start_ns {
        /// Unique within the table.
        id: RowId,
        /// Process of the thread.
        pid: Pid,
        /// The thread that was interrupted.
        tid: Tid,
        /// The CPU.
        cpu: i32,
        /// `irq 45 nvidia`, `NET_RX` (a softirq), `local_timer`.
        name: Text,
        /// Beginning.
        start_ns: MonoNs,
        /// End.
        end_ns: MonoNs,
    }
}
