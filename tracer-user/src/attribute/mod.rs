//! Every GPU gap to its cause: pure, without input or output of its own.
//!
//! ```text
//! rows ─> timeline ─> busy, gaps ─> walk (thread_time, wake_edge, launch) ─> leaf ─> lost ─> conserve ─> segments
//!                         roles ───────────────────────────────────────────┘ stage, enabler, ledger
//! ```
//!
//! The promise: every nanosecond in which a GPU did no compute is assigned to exactly one cause, the sum is exact, and
//! what cannot be known is named as unknown with its reason. See `docs/how-it-works.md`.

mod bundle;
pub mod busy;
pub mod cause;
pub mod conserve;
mod cuda_call;
mod enabler;
pub mod frame;
pub mod gaps;
mod launch;
mod leaf;
pub mod ledger;
mod lost;
pub mod names;
pub mod path;
pub mod role;
pub mod segment;
pub mod stage;
mod system_call;
mod thread_time;
pub mod timeline;
mod wait;
mod wake_edge;
mod walk;

#[cfg(test)]
mod tests;

pub use bundle::{BundleError, analyze_bundle, name_roles, read_timeline, read_timeline_until, rows_to_read};
pub use cause::Cause;
pub use conserve::Violation;
pub use leaf::traced::STANDARD_INPUT;
pub use ledger::Ledger;
pub use stage::Stage;
pub use timeline::{Timeline, TimelineBuilder};

use crate::event::{GapId, Text};
use crate::store::schema;
use gaps::{DeviceTime, RawGap};
use lost::LostTime;
use names::Names;
use path::{EvidenceTable, Paths};
use role::Roles;
use segment::Segment;
use walk::Walker;

/// A gap with its cause.
#[derive(Clone, Copy, Debug)]
pub struct AttributedGap {
    /// Where and when.
    pub gap: RawGap,
    /// Its segments, a range of [`Analysis::segments`].
    pub segments: (usize, usize),
    /// The synchronising call that had drained the launch queue, an index into [`Timeline::api`].
    pub enabler: Option<usize>,
}

/// What the attribution found.
#[derive(Debug, Default)]
pub struct Analysis {
    /// What each device did.
    pub devices: Vec<DeviceTime>,
    /// All gaps, by start.
    pub gaps: Vec<AttributedGap>,
    /// All segments, gap by gap, each gap's in order of time.
    pub segments: Vec<Segment>,
    /// The threads' roles.
    pub roles: Roles,
    /// The strings of segments and hops.
    pub names: Names,
    /// The chains.
    pub paths: Paths,
}

/// Attributes every gap of a timeline.
///
/// # Errors
/// Time does not add up: a defect of gtrace, not of the recording.
pub fn analyze(timeline: &Timeline) -> Result<Analysis, Violation> {
    let roles = role::find_roles(timeline);
    let mut devices = Vec::new();
    let mut found: Vec<RawGap> = Vec::new();
    let mut lost = Vec::new();
    for (device, range) in timeline.device_ops() {
        let (time, gaps) = gaps::find_gaps(timeline, device, range);
        conserve::check_device(&time)?;
        lost.push((device, LostTime::of_device(timeline, device)));
        devices.push(time);
        found.extend(gaps);
    }
    found.sort_by_key(|gap| (gap.time.start, gap.device));
    let mut walker = Walker::new(timeline, &roles);
    let mut segments = Vec::new();
    let mut attributed = Vec::with_capacity(found.len());
    for (index, gap) in found.iter().enumerate() {
        let mut pieces = walker.walk(index as u32, gap);
        if let Some((_, lost)) = lost.iter().find(|(device, _)| *device == gap.device) {
            pieces = lost.cut_out_of(pieces);
        }
        if timeline.bounded.contains(&gap.device) {
            // Where the gap begins and ends follows from calls, not from the device.
            for piece in &mut pieces {
                piece.inferred = true;
            }
        }
        conserve::check_gap(index, gap, &pieces)?;
        let first = segments.len();
        segments.extend(pieces);
        let enabler = enabler::of_gap(timeline, gap);
        attributed.push(AttributedGap { gap: *gap, segments: (first, segments.len()), enabler });
    }
    let Walker { names, paths, .. } = walker;
    Ok(Analysis { devices, gaps: attributed, segments, roles, names, paths })
}

impl Analysis {
    /// The segments of a gap.
    #[must_use]
    pub fn segments_of(&self, gap: &AttributedGap) -> &[Segment] {
        &self.segments[gap.segments.0..gap.segments.1]
    }

    /// The rows of the table `gaps`, in its order.
    pub fn gap_rows<'a>(&'a self, timeline: &'a Timeline) -> impl Iterator<Item = schema::Gap> + 'a {
        self.gaps.iter().enumerate().map(|(index, gap)| {
            let ledger = Ledger::of(self.segments_of(gap));
            let next = gap.gap.next.map(|next| &timeline.ops[next]);
            let launch = next.filter(|op| op.launch != timeline::NO_INDEX).map(|op| op.launch as usize);
            schema::Gap {
                gap_id: GapId(index as i64),
                device: gap.gap.device,
                kind: Text::from(gap.gap.activity.gap_kind().unwrap_or_default()),
                start_ns: gap.gap.time.start,
                end_ns: gap.gap.time.end,
                prev_op: gap.gap.previous.map(|previous| timeline.ops[previous].id),
                next_op: next.map(|op| op.id),
                cause: Text::from(ledger.dominant_cause().map_or("", Cause::code)),
                stage: Text::from(ledger.dominant_stage().unwrap_or(Stage::Other).as_str()),
                enabler: gap.enabler.and_then(|call| timeline.names.to_text(timeline.api[call].name)),
                pid: next.map(|op| op.pid),
                tid: launch.map(|call| timeline.thread(timeline.api[call].thread).tid),
            }
        })
    }

    /// The rows of the table `gap_segments`, gap by gap.
    pub fn segment_rows<'a>(
        &'a self,
        timeline: &'a Timeline,
    ) -> impl Iterator<Item = schema::GapSegment> + 'a {
        self.gaps.iter().enumerate().flat_map(move |(index, gap)| {
            self.segments_of(gap).iter().enumerate().map(move |(seq, segment)| {
                let thread = segment.thread(&self.paths);
                schema::GapSegment {
                    gap_id: GapId(index as i64),
                    seq: seq as i32,
                    start_ns: segment.time.start,
                    end_ns: segment.time.end,
                    cause: Text::from(segment.cause.code()),
                    stage: Text::from(segment.stage.as_str()),
                    object: self.names.to_text(segment.object),
                    pid: thread.map(|(pid, _)| pid),
                    tid: thread.map(|(_, tid)| tid),
                    path: self.paths.to_rows(segment.path, &self.names),
                    evidence: self.evidence(timeline, gap, segment),
                    confidence: Text::from(if segment.inferred { "inferred" } else { "exact" }),
                }
            })
        })
    }

    /// The op that ended the gap and its launch, then the rows of the chain. Lost time rests on nothing.
    fn evidence(&self, timeline: &Timeline, gap: &AttributedGap, segment: &Segment) -> Vec<schema::Evidence> {
        let chain = self.paths.evidence(segment.path);
        let Some(next) = gap.gap.next.filter(|_| segment.path != path::PathId::ROOT) else { return chain };
        let next = &timeline.ops[next];
        let launch = (next.launch != timeline::NO_INDEX).then(|| &timeline.api[next.launch as usize]);
        let row = |table: EvidenceTable, row| schema::Evidence {
            table: Text::from(table.as_str()),
            row: crate::event::RowId(row),
        };
        let mut rows = vec![row(EvidenceTable::GpuOps, next.id.0)];
        rows.extend(launch.map(|call| row(EvidenceTable::CudaApi, call.id.0)));
        for evidence in chain {
            if !rows.contains(&evidence) {
                rows.push(evidence);
            }
        }
        rows
    }
}
