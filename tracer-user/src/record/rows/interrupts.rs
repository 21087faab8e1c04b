//! Rows of `interrupts`.

use tracer_abi::kernel::{InterruptKind, InterruptRecord};

use super::off_cpu::{interrupt_name, softirq_name};
use crate::event::{MonoNs, Pid, RowId, Tid};
use crate::record::tree::comm_text;
use crate::store::schema::Interrupt;

/// A row out of an interrupt that took long.
#[must_use]
pub fn interrupt_row(record: &InterruptRecord, id: RowId, started: MonoNs) -> Interrupt {
    let end = MonoNs(record.end_ns as i64);
    let name = match record.kind {
        kind if kind == InterruptKind::Soft as u32 => softirq_name(record.vector),
        kind if kind == InterruptKind::Device as u32 => interrupt_name(record.vector, &record.comm),
        _ => comm_text(&record.comm),
    };
    Interrupt {
        id,
        pid: Pid(record.tgid as i32),
        tid: Tid(record.tid as i32),
        cpu: record.header.cpu as i32,
        name,
        start_ns: MonoNs(record.start_ns as i64).max(started).min(end),
        end_ns: end,
    }
}
