//! One request to a block device, written when it completes.

use super::{RecordHeader, THREAD_NAME_BYTES};

/// Bits of [`BlockRecord::flags`].
pub mod block_flags {
    /// A control group's limit held it back before it was queued; its submitter is the kernel thread that let it go.
    pub const THROTTLED: u32 = 1;
    /// It moves memory of programs from or to swap space.
    pub const SWAP: u32 = 2;
}

/// One block request. Queue time is `[queued_ns, issued_ns)`, device time `[issued_ns, completed_ns)`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BlockRecord {
    pub header: RecordHeader,
    /// Unique within a recording, never 0 (`cpu << 48 | counter`). A wake edge names it.
    pub request_id: u64,
    pub sector: u64,
    pub queued_ns: u64,
    /// 0: it never reached the driver as such, or did so before recording began.
    pub issued_ns: u64,
    pub completed_ns: u64,
    /// The task that submitted its first bio, 0 if unknown.
    pub submitter_tid: u32,
    pub submitter_tgid: u32,
    pub submitter_comm: [u8; THREAD_NAME_BYTES],
    pub bytes: u32,
    /// Kernel encoding `major << 20 | minor`.
    pub device: u32,
    /// `cmd_flags`: operation in the low 8 bits (0 read, 1 write, 2 flush, 3 discard), then `REQ_*`.
    pub cmd_flags: u32,
    /// errno of the completion, 0 if well.
    pub error: i32,
    /// The submitter's system call at that moment, −1 if none or not recorded.
    pub syscall_nr: i32,
    /// Requests in flight on this device when this one was issued, itself included.
    pub in_flight: u32,
    /// The file that direct I/O was asked of, or whose pages its first bio carries (page cache), or which the submitter's
    /// system call named; 0 if none.
    pub file_inode: u64,
    pub file_device: u32,
    pub file_generation: u32,
    /// [`block_flags`].
    pub flags: u32,
    pub reserved: u32,
}
