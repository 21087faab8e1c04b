//! Memory that had to be freed first: a thread that asks for a page works, or waits, until there is one.

use super::RecordHeader;

/// What a [`MemoryStallRecord`] is.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryStallKind {
    /// The machine was short of memory, and the thread freed some itself (direct reclaim).
    Reclaim = 1,
    /// Its control group was at its limit, and the thread freed some of the group's.
    GroupReclaim = 2,
    /// Its memory node was short of memory (`vm.zone_reclaim_mode`).
    NodeReclaim = 3,
    /// Pages were moved so that a large one could be had.
    Compaction = 4,
}

/// One stretch of a thread's time that went into freeing memory.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MemoryStallRecord {
    pub header: RecordHeader,
    pub start_ns: u64,
    pub end_ns: u64,
    /// Pages that it freed; 0 for compaction.
    pub pages: u64,
    pub tid: u32,
    pub tgid: u32,
    /// [`MemoryStallKind`] as its number.
    pub kind: u32,
    /// The thread's system call, −1 outside one (a page fault).
    pub syscall_nr: i32,
}
