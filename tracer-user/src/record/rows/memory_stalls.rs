//! Rows of `memory_stalls`.

use tracer_abi::kernel::{MemoryStallKind, MemoryStallRecord};

use crate::event::{MonoNs, Pid, RowId, Text, Tid};
use crate::record::syscall;
use crate::store::schema::MemoryStall;

/// A row out of a stretch of freeing memory.
#[must_use]
pub fn memory_stall_row(record: &MemoryStallRecord, id: RowId, started: MonoNs) -> MemoryStall {
    let end = MonoNs(record.end_ns as i64);
    MemoryStall {
        id,
        pid: Pid(record.tgid as i32),
        tid: Tid(record.tid as i32),
        kind: Text::from(kind(record.kind)),
        start_ns: MonoNs(record.start_ns as i64).max(started).min(end),
        end_ns: end,
        syscall: (record.syscall_nr >= 0).then(|| syscall::name(record.syscall_nr)),
        pages: (record.kind != MemoryStallKind::Compaction as u32).then_some(record.pages as i64),
    }
}

fn kind(code: u32) -> &'static str {
    match code {
        code if code == MemoryStallKind::Reclaim as u32 => "reclaim",
        code if code == MemoryStallKind::GroupReclaim as u32 => "group_reclaim",
        code if code == MemoryStallKind::NodeReclaim as u32 => "node_reclaim",
        code if code == MemoryStallKind::Compaction as u32 => "compaction",
        _ => "other",
    }
}
