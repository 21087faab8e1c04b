//! Another tool's recording: where a thread was, by its marked ranges and the library calls that were traced. Whether it ran
//! or waited there is not recorded, and not guessed.

use crate::attribute::cause::Cause;
use crate::attribute::path::{EvidenceTable, HopState};
use crate::attribute::segment::Leaf;
use crate::attribute::timeline::{MarkerKind, NO_INDEX, ThreadIndex, Timeline};
use crate::attribute::walk::{Chain, Walker};
use crate::event::Interval;

/// The object of a call that reads from the program's own input stream, as its stack shows.
pub const STANDARD_INPUT: &str = "standard input";

/// `time` of a thread outside its CUDA calls.
pub fn between_calls(walker: &mut Walker, thread: ThreadIndex, time: Interval, chain: Chain) {
    let timeline = walker.timeline;
    let mut rest = time;
    while !rest.is_empty() {
        let (call, call_boundary) = timeline.system_call_before(thread, rest.end);
        let (marker, marker_boundary) = timeline.marker_before(thread, rest.end);
        let piece = Interval::new(call_boundary.max(marker_boundary).max(rest.start), rest.end);
        let leaf = match (call, marker) {
            (Some(call), _) => in_call(timeline, thread, call),
            (None, Some(marker)) => in_marker(timeline, thread, marker),
            (None, None) => {
                let name = timeline.thread(thread).name;
                Leaf::thread(timeline, thread, HopState::Unknown, Cause::UnknownNotTraced).on(name)
            }
        };
        walker.emit(piece, chain, leaf);
        rest.end = piece.start;
    }
}

fn in_call(timeline: &Timeline, thread: ThreadIndex, call: usize) -> Leaf {
    let call = timeline.syscalls[call];
    let cause = match timeline.names.get(call.object) {
        STANDARD_INPUT => Cause::HostUser,
        _ => Cause::HostOsCall,
    };
    Leaf::thread(timeline, thread, HopState::Unknown, cause)
        .in_call(call.name)
        .on(call.object.or(call.name))
        .resting_on(Some((EvidenceTable::Syscalls, call.id.0)))
}

fn in_marker(timeline: &Timeline, thread: ThreadIndex, index: usize) -> Leaf {
    let marker = timeline.markers[index];
    let around = |index: usize| {
        Some(timeline.markers[index].parent).filter(|&outer| outer != NO_INDEX).map(|outer| outer as usize)
    };
    // What runs inside the loader's iterator is the loader's work.
    let loader = std::iter::successors(Some(index), |&index| around(index))
        .map(|index| &timeline.markers[index])
        .find(|marker| marker.kind == MarkerKind::DataLoader);
    let (cause, object) = match (loader, marker.kind) {
        (Some(loader), _) => (Cause::HostDataLoader, loader.name),
        (None, MarkerKind::Operator) => (Cause::HostOperator, marker.name),
        (None, MarkerKind::Python) => (Cause::HostPython, marker.name),
        (None, MarkerKind::Step) => (Cause::UnknownNotTraced, marker.name),
        (None, MarkerKind::CommInit) => (Cause::CommInit, marker.name),
        (None, MarkerKind::Marked | MarkerKind::DataLoader) => (Cause::HostMarked, marker.name),
    };
    let leaf = Leaf::thread(timeline, thread, HopState::Unknown, cause)
        .on(marker.name)
        .resting_on(Some((EvidenceTable::Markers, marker.id.0)));
    Leaf { object, ..leaf }
}
