//! Lost time: what lies inside an interval in which events were lost is blamed on nobody.

use super::cause::Cause;
use super::path::PathId;
use super::segment::Segment;
use super::stage::Stage;
use super::timeline::{LossKind, Lost, Timeline};
use crate::event::{DeviceId, Interval};

/// The losses that concern one device, disjoint and in order of time.
#[derive(Clone, Debug, Default)]
pub struct LostTime(Vec<Lost>);

impl LostTime {
    /// Of the losses of GPU records, only those of processes that use the device concern it; any other loss concerns all.
    #[must_use]
    pub fn of_device(timeline: &Timeline, device: DeviceId) -> Self {
        let uses =
            |pid| timeline.devices.iter().any(|(&(process, _), &used)| process == pid && used == device);
        let concerns = |loss: &&Lost| {
            let source = timeline.names.get(loss.source);
            let gpu = ["shim", "cupti", "gpu"].iter().any(|prefix| source.starts_with(prefix));
            !loss.time.is_empty() && loss.pid.is_none_or(|pid| !gpu || uses(pid))
        };
        let mut disjoint: Vec<Lost> = Vec::new();
        for loss in timeline.losses.iter().filter(concerns) {
            let covered = disjoint.last().map_or(loss.time.start, |last| last.time.end);
            let time = Interval::new(loss.time.start.max(covered), loss.time.end);
            if loss.time.end > covered || disjoint.is_empty() {
                disjoint.push(Lost { time, ..*loss });
            }
        }
        Self(disjoint)
    }

    /// `segments`, in order of time, with the lost time cut out of them and named.
    #[must_use]
    pub fn cut_out_of(&self, segments: Vec<Segment>) -> Vec<Segment> {
        let (Some(head), Some(tail)) = (segments.first(), segments.last()) else { return segments };
        let gap = Interval::new(head.time.start, tail.time.end);
        let from = self.0.partition_point(|loss| loss.time.end <= gap.start);
        let losses: Vec<&Lost> = self.0[from..].iter().take_while(|loss| loss.time.start < gap.end).collect();
        if losses.is_empty() {
            return segments;
        }
        let mut cut = Vec::with_capacity(segments.len() + losses.len());
        for segment in segments {
            let mut rest = segment.time;
            for loss in &losses {
                let hole = loss.time.intersect(rest);
                if hole.is_empty() {
                    continue;
                }
                push(&mut cut, Segment { time: Interval::new(rest.start, hole.start), ..segment });
                push(&mut cut, unknown(segment.gap, hole, loss));
                rest.start = hole.end;
            }
            push(&mut cut, Segment { time: rest, ..segment });
        }
        cut
    }
}

fn unknown(gap: u32, time: Interval, loss: &Lost) -> Segment {
    let cause = match loss.kind {
        LossKind::Lost => Cause::UnknownLostEvents,
        LossKind::Invalid => Cause::UnknownInvalidRecord,
    };
    Segment {
        gap,
        time,
        cause,
        stage: Stage::Other,
        object: loss.source,
        path: PathId::ROOT,
        inferred: false,
    }
}

/// Adds a segment, to the one before it if both say the same.
fn push(segments: &mut Vec<Segment>, segment: Segment) {
    if segment.time.is_empty() {
        return;
    }
    if let Some(last) = segments.last_mut()
        && (Segment { time: segment.time, ..*last }) == segment
        && last.time.end == segment.time.start
    {
        last.time.end = segment.time.end;
        return;
    }
    segments.push(segment);
}
