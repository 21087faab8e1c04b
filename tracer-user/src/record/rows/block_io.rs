//! Rows of `block_io`.

use tracer_abi::kernel::{BlockRecord, block_flags};

use super::{some_pid, some_tid};
use crate::event::{MonoNs, RequestId, Text};
use crate::record::objects::{FileKey, Objects};
use crate::record::tree::comm_text;
use crate::store::schema::BlockIo;

/// A row out of a request.
pub fn block_io_row(record: &BlockRecord, objects: &mut Objects) -> BlockIo {
    let file =
        FileKey { device: record.file_device, inode: record.file_inode, generation: record.file_generation };
    let tid = some_tid(record.submitter_tid);
    // Each time is kept at or after the one before: a missing earlier one (0: the tracepoint was missed) counts as the
    // later one, so that no queue or device time is made up.
    let completed = record.completed_ns;
    let issued = if record.issued_ns == 0 { completed } else { record.issued_ns.min(completed) };
    let queued = if record.queued_ns == 0 { issued } else { record.queued_ns.min(issued) };
    BlockIo {
        request_id: RequestId(record.request_id as i64),
        pid: some_pid(record.submitter_tgid),
        tid,
        comm: tid.map(|_| comm_text(&record.submitter_comm)),
        device: objects.block_device(record.device),
        op: operation(record.cmd_flags),
        sector: record.sector as i64,
        bytes: i64::from(record.bytes),
        queued_ns: MonoNs(queued as i64),
        issued_ns: MonoNs(issued as i64),
        completed_ns: MonoNs(completed as i64),
        in_flight: record.in_flight as i32,
        error: record.error,
        throttled: Some(record.flags & block_flags::THROTTLED != 0),
        swap: Some(record.flags & block_flags::SWAP != 0),
        file: if record.file_inode == 0 { None } else { objects.path(file) },
    }
}

/// `REQ_OP_*` of `include/linux/blk_types.h`.
fn operation(cmd_flags: u32) -> Text {
    Text::from(match cmd_flags & 0xff {
        0 => "read",
        1 => "write",
        2 => "flush",
        3 => "discard",
        _ => "other",
    })
}
