//! The life of processes and threads of the tree.

use super::{RecordHeader, THREAD_NAME_BYTES};

/// A thread or process was created by a member of the tree.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ForkRecord {
    pub header: RecordHeader,
    pub parent_tid: u32,
    pub parent_tgid: u32,
    pub child_tid: u32,
    /// Equal to `parent_tgid` for a new thread.
    pub child_tgid: u32,
    pub comm: [u8; THREAD_NAME_BYTES],
}

/// A member of the tree executed another program (its threads but one are gone, its tid is its tgid).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ExecRecord {
    pub header: RecordHeader,
    pub tgid: u32,
    /// The tid before the exec.
    pub old_tid: u32,
    pub comm: [u8; THREAD_NAME_BYTES],
}

/// A thread of the tree ended.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ExitRecord {
    pub header: RecordHeader,
    pub tid: u32,
    pub tgid: u32,
    /// 1: it was the last thread of its process.
    pub process_ended: u32,
    pub reserved: u32,
    pub comm: [u8; THREAD_NAME_BYTES],
}

/// A member of the tree made a memfd whose name begins with `gtrace-`: a shim's ring may be there.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MemfdRecord {
    pub header: RecordHeader,
    pub tgid: u32,
    pub fd: i32,
}
