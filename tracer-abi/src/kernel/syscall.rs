//! One system call that blocked or lasted, written at its exit.

use super::{ObjectId, RecordHeader};

/// The number of every 32-bit system call (i386, x32, arm): their tables differ, so the real one is not kept.
pub const COMPAT_CALL: i32 = -2;

/// Bits of [`SyscallRecord::flags`].
pub mod syscall_flags {
    /// A 32-bit call: it has numbers of its own, `nr` is [`super::COMPAT_CALL`].
    pub const COMPAT: u32 = 1;
    /// Began before recording did: `start_ns` is the beginning of the recording.
    pub const BEFORE_ATTACH: u32 = 2;
    /// Had not returned at the end of the recording: `end_ns` 0. Made by user space.
    pub const STILL_RUNNING: u32 = 4;
    /// `ready_fd` and `ready_object` hold the descriptor that ended a poll, select or epoll wait.
    pub const READY_FD: u32 = 8;
}

/// One system call. Calls that were fast and never blocked are counted instead (`SYSCALL_COUNTS`).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SyscallRecord {
    pub header: RecordHeader,
    pub tid: u32,
    pub tgid: u32,
    pub start_ns: u64,
    pub end_ns: u64,
    /// Time off the CPU and blocked within it.
    pub blocked_ns: u64,
    pub result: i64,
    pub args: [u64; 6],
    /// Its number, or [`COMPAT_CALL`].
    pub nr: i32,
    /// [`syscall_flags`].
    pub flags: u32,
    /// The descriptor argument, or the new descriptor of an open; −1 if the call has none.
    pub fd: i32,
    /// For poll, select and epoll: a ready descriptor, −1 if none or not read.
    pub ready_fd: i32,
    /// What `fd` (or, with `READY_FD`, `ready_fd`) was at that moment.
    pub object: ObjectId,
}
