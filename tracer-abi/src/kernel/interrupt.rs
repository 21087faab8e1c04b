//! An interrupt that took a CPU away from a recorded thread for long.

use super::{RecordHeader, THREAD_NAME_BYTES};

/// What a [`InterruptRecord`] was.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InterruptKind {
    /// A device's: `vector` is its number, `comm` its name.
    Device = 1,
    /// A softirq: `vector` is its number.
    Soft = 2,
    /// Another hardware interrupt (local timer, inter-processor): its name in `comm`.
    Other = 3,
}

/// One interrupt, those that interrupted it included, during which a recorded thread was in user code on that CPU.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct InterruptRecord {
    pub header: RecordHeader,
    pub start_ns: u64,
    pub end_ns: u64,
    pub tid: u32,
    pub tgid: u32,
    /// [`InterruptKind`] as its number.
    pub kind: u32,
    pub vector: u32,
    pub comm: [u8; THREAD_NAME_BYTES],
}
