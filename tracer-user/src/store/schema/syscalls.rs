//! Table `syscalls`.

use crate::event::{DurationNs, MonoNs, Pid, RowId, Text, Tid};
use crate::store::table::table;

table! {
    /// One system call that blocked or lasted. Fast ones are summed up in `syscall_counts`.
    pub struct Syscall in "syscalls", sorted by start_ns {
        /// Unique within the table.
        id: RowId,
        /// Process.
        pid: Pid,
        /// Thread.
        tid: Tid,
        /// `pread64`, `futex`, `epoll_wait` …
        name: Text,
        /// Entry; the beginning of the recording if it was entered before.
        start_ns: MonoNs,
        /// Return. NULL: it had not returned at the end of the recording.
        end_ns: Option<MonoNs>,
        /// Result, or minus errno. NULL: it had not returned.
        result: Option<i64>,
        /// Time off the CPU and blocked within it.
        blocked_ns: DurationNs,
        /// The descriptor it was called with; for poll, select and epoll the one that was ready.
        fd: Option<i32>,
        /// `file`, `pipe`, `tcp`, `udp`, `unix`, `socket`, `eventfd`, `epoll`, `anon`, `char_device`, `block_device`,
        /// `futex`, `gil` (a futex word of CPython's interpreter lock), `sleep`, `process`. NULL: the call has no object.
        object_kind: Option<Text>,
        /// The path, `local -> peer` of a connection, `pipe:[inode]`, the address of a futex word, `GIL of CPython 3.11`.
        object: Option<Text>,
        /// Files: the device that holds it (`vda1`, `loop0`) or the file system's type where there is none.
        device: Option<Text>,
        /// Who holds the other end of a pipe, unix socket or loopback connection: `pid/name`, several by comma.
        peer: Option<Text>,
        /// Offset of a positioned read or write.
        offset: Option<i64>,
        /// Bytes asked for.
        bytes: Option<i64>,
    }
}
