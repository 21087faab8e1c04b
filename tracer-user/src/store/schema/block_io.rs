//! Table `block_io`.

use crate::event::{MonoNs, Pid, RequestId, Text, Tid};
use crate::store::table::table;

table! {
    /// One request to a block device. Queue time is `[queued_ns, issued_ns)`, device time `[issued_ns, completed_ns)`.
    pub struct BlockIo in "block_io", sorted by queued_ns {
        /// Unique within the bundle; wake edges name it.
        request_id: RequestId,
        /// The submitter's process. NULL: unknown.
        pid: Option<Pid>,
        /// The submitter.
        tid: Option<Tid>,
        /// The submitter's name (a kernel thread's for write-back).
        comm: Option<Text>,
        /// `vda`, `nvme0n1`.
        device: Text,
        /// `read`, `write`, `flush`, `discard`, `other`.
        op: Text,
        /// First sector (512 bytes) on the device.
        sector: i64,
        /// Bytes.
        bytes: i64,
        /// When it was made.
        queued_ns: MonoNs,
        /// When the driver got it.
        issued_ns: MonoNs,
        /// When it completed.
        completed_ns: MonoNs,
        /// Requests in flight on that device when it was issued, itself included.
        in_flight: i32,
        /// errno, 0 if well.
        error: i32,
        /// A control group's limit held it back before it was made. Its submitter is then the kernel thread that let it go.
        throttled: Option<bool>,
        /// It moved memory of programs from or to swap space.
        swap: Option<bool>,
        /// The file that the submitter's system call named. NULL: unknown.
        file: Option<Text>,
    }
}
