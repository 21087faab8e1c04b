//! Exposed copies: the op that runs is itself the cause.

use crate::attribute::cause::Cause;
use crate::attribute::gaps::RawGap;
use crate::attribute::path::EvidenceTable;
use crate::attribute::segment::Leaf;
use crate::attribute::timeline::{CopyKind, DeviceMoment};
use crate::attribute::walk::{Chain, Walker};
use crate::event::Interval;

/// Only copies and memsets run: each moment belongs to the one that began last.
pub fn exposed_copy(walker: &mut Walker, gap: &RawGap) {
    by_running_op(walker, gap, |walker, index, piece| {
        let leaf = copy_leaf(walker, index);
        let chain = walker.launch_hop(index, Chain::START);
        walker.emit(piece, chain, leaf);
    });
}

/// What a copy says that runs alone.
pub fn copy_leaf(walker: &mut Walker, index: usize) -> Leaf {
    let op = walker.timeline.ops[index];
    let cause = match op.copy {
        CopyKind::Pageable => Cause::CopyPageable,
        CopyKind::Migration => Cause::GpuMigration,
        CopyKind::Peer => Cause::CopyPeer,
        CopyKind::Device => Cause::CopyDevice,
        CopyKind::Memset => Cause::CopyMemset,
        CopyKind::Pinned | CopyKind::None => Cause::CopyPinned,
    };
    let length = op.time.length().0.max(1);
    let bandwidth = op.bytes as f64 / length as f64;
    let object = format!("{} {} bytes at {bandwidth:.2} GB/s", walker.names.get(op.name), op.bytes);
    let device = walker.device_name(op.device);
    Leaf::device(device, cause)
        .on(walker.names.str(&object))
        .resting_on(Some((EvidenceTable::GpuOps, op.id.0)))
}

/// Hands out the pieces of a gap by the op that runs, from the last to the first.
pub fn by_running_op(walker: &mut Walker, gap: &RawGap, mut each: impl FnMut(&mut Walker, usize, Interval)) {
    let mut rest = gap.time;
    while !rest.is_empty() {
        let DeviceMoment::Running(index) = walker.timeline.op_before(gap.device, rest.end) else {
            // Cannot be: the gap is made of ops that run. Named all the same, so that nothing is lost.
            let device = walker.device_name(gap.device);
            let leaf = Leaf::device(device, Cause::UnknownInvalidRecord);
            walker.emit(rest, Chain::START, leaf);
            return;
        };
        let piece = Interval::new(walker.timeline.ops[index].start().max(rest.start), rest.end);
        each(walker, index, piece);
        rest.end = piece.start;
    }
}
