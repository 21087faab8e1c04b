//! Table `samples`.

use crate::event::{MonoNs, Pid, RowId, Text, Tid};
use crate::store::table::{element, table};

element! {
    /// One frame of a stack.
    pub struct Frame {
        /// `python`; `native`; `interpreter`: native code of the Python interpreter itself.
        kind: Text,
        /// The function. NULL: no symbol covers the address.
        function: Option<Text>,
        /// Python: the file, as the interpreter knows it.
        file: Option<Text>,
        /// Its line. NULL: unknown.
        line: Option<i32>,
        /// Native: the program's or library's file name. NULL: code that is in no file.
        module: Option<Text>,
        /// Native, where the function is not known: the address by the file's own counting, as `addr2line` takes it.
        address: Option<i64>,
    }
}

table! {
    /// One sample of a thread that ran on a CPU. A clock on each CPU takes it (`--stack-rate`), so that their number is a
    /// measure of CPU time.
    pub struct Sample in "samples", sorted by time_ns {
        /// Unique within the table.
        id: RowId,
        /// Process.
        pid: Pid,
        /// Thread.
        tid: Tid,
        /// When.
        time_ns: MonoNs,
        /// The CPU.
        cpu: i32,
        /// `user`: in its own code; `kernel`: in a system call, page fault or interrupt, to which the frames led.
        mode: Text,
        /// The stack, innermost first. From the interpreter's loop outwards, Python's frames stand for the native ones.
        frames: Vec<Frame>,
        /// Frames are missing: the stack is deeper than was kept, or could not be read.
        incomplete: bool,
    }
}
