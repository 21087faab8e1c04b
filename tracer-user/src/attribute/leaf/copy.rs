//! Exposed copies and collectives: the op that runs is itself the cause.

use crate::attribute::cause::Cause;
use crate::attribute::gaps::RawGap;
use crate::attribute::path::EvidenceTable;
use crate::attribute::segment::Leaf;
use crate::attribute::timeline::{CopyKind, DeviceMoment, Op};
use crate::attribute::walk::{Chain, Walker};
use crate::event::Interval;

/// Only copies and memsets run: each moment belongs to the one that began last.
pub fn exposed_copy(walker: &mut Walker, gap: &RawGap) {
    by_running_op(walker, gap, |walker, op| {
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
        Leaf::device(crate::attribute::names::Name::NONE, cause).on(walker.names.str(&object))
    });
}

/// Only collectives run.
pub fn exposed_communication(walker: &mut Walker, gap: &RawGap) {
    by_running_op(walker, gap, |_, op| {
        Leaf::device(crate::attribute::names::Name::NONE, Cause::CommWaitOrTransfer).on(op.name)
    });
}

/// Gives out the pieces of a gap by the op that runs, with the launching thread as first hop.
fn by_running_op(walker: &mut Walker, gap: &RawGap, leaf: impl Fn(&mut Walker, &Op) -> Leaf) {
    let device = walker.device_name(gap.device);
    let mut rest = gap.time;
    while !rest.is_empty() {
        let DeviceMoment::Running(index) = walker.timeline.op_before(gap.device, rest.end) else {
            // Cannot be: the gap is made of ops that run. Named all the same, so that nothing is lost.
            let leaf = Leaf::device(device, Cause::UnknownInvalidRecord);
            walker.emit(rest, Chain::START, leaf);
            return;
        };
        let op = walker.timeline.ops[index];
        let piece = Interval::new(op.start().max(rest.start), rest.end);
        let leaf = leaf(walker, &op).resting_on(Some((EvidenceTable::GpuOps, op.id.0)));
        let chain = walker.launch_hop(index, Chain::START);
        walker.emit(piece, chain, Leaf { thread: device, ..leaf });
        rest.end = piece.start;
    }
}
