//! Conservation: checked on every analysis. Time that appears or vanishes is an error in gtrace, not in the recording.

use super::gaps::{DeviceTime, RawGap};
use super::segment::Segment;
use crate::event::{DurationNs, Interval};

/// Time does not add up: a defect of gtrace.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// A segment does not start where the one before it, or the gap, leaves off.
    #[error(
        "a segment of gap {gap} covers {found:?}, expected it to start at {expected} ns: please report this defect"
    )]
    Hole {
        /// The gap.
        gap: usize,
        /// The segment's time.
        found: Interval,
        /// Where it had to start.
        expected: i64,
    },
    /// The segments do not reach the gap's end.
    #[error(
        "the segments of gap {gap} end at {found} ns and the gap at {expected} ns: please report this defect"
    )]
    End {
        /// The gap.
        gap: usize,
        /// End of the last segment.
        found: i64,
        /// End of the gap.
        expected: i64,
    },
    /// A device's times do not sum up to the recording.
    #[error(
        "device {device}: busy, gaps and edges sum up to {found} and the recording is {expected} long: please report \
         this defect"
    )]
    Device {
        /// The GPU.
        device: i32,
        /// The sum.
        found: DurationNs,
        /// The length of the recording.
        expected: DurationNs,
    },
}

/// Checks that `segments` cover the gap: disjoint, in order, from its start to its end.
///
/// # Errors
/// They do not.
pub fn check_gap(index: usize, gap: &RawGap, segments: &[Segment]) -> Result<(), Violation> {
    let mut cursor = gap.time.start;
    for segment in segments {
        if segment.time.start != cursor || segment.time.is_empty() {
            return Err(Violation::Hole { gap: index, found: segment.time, expected: cursor.0 });
        }
        cursor = segment.time.end;
    }
    if cursor != gap.time.end {
        return Err(Violation::End { gap: index, found: cursor.0, expected: gap.time.end.0 });
    }
    Ok(())
}

/// Checks that busy time, gaps and edges of a device make up the recording.
///
/// # Errors
/// They do not.
pub fn check_device(time: &DeviceTime) -> Result<(), Violation> {
    let found = time.busy + time.gap_time() + time.leading_edge().length() + time.trailing_edge().length();
    let expected = time.recording.length();
    if found == expected { Ok(()) } else { Err(Violation::Device { device: time.device.0, found, expected }) }
}
