//! Table `syscall_counts`.

use crate::event::{DurationNs, MonoNs, Pid, Text, Tid};
use crate::store::table::table;

table! {
    /// The calls of one kind by one thread that neither blocked nor lasted, summed up by the kernel.
    pub struct SyscallCount in "syscall_counts", sorted by first_ns {
        /// Process.
        pid: Pid,
        /// Thread.
        tid: Tid,
        /// The call.
        name: Text,
        /// How many.
        calls: i64,
        /// Time in them.
        total_ns: DurationNs,
        /// The longest.
        max_ns: DurationNs,
        /// Sum of the results above zero: bytes for the read and write families.
        result_sum: i64,
        /// How many returned an error.
        errors: i64,
        /// Start of the first.
        first_ns: MonoNs,
        /// End of the last.
        last_ns: MonoNs,
    }
}
