//! One gap, explained: its segments, the chain behind each, the rows that they rest on, and what speaks against the
//! popular other explanations.

mod evidence;
mod text;
mod why_not;

use std::collections::HashMap;

use super::model::ThreadName;
use super::names::Names;
use crate::event::{GapId, Interval, MonoNs, OpId};
use crate::store::schema::{CudaApi, Gap, GapSegment, GpuOp, Process, Thread};
use crate::store::{Bundle, StoreError};

pub use evidence::{EvidenceRow, Found};
pub(super) use text::{doing, hop_name};

pub use text::render;
pub use why_not::Observation;

/// Which gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The longest.
    Longest,
    /// The one with this number.
    Gap(GapId),
    /// The one at this moment; of several devices' the longest.
    At(MonoNs),
}

/// Why there is nothing to explain.
#[derive(Debug, thiserror::Error)]
pub enum ExplainError {
    /// The bundle cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The recording has no gap at all.
    #[error("the recording has no gap")]
    NoGaps,
    /// There is no gap with that number.
    #[error("there is no gap {0}; they are numbered from {1} to {2}")]
    NoSuchGap(GapId, GapId, GapId),
    /// The GPUs worked at that moment.
    #[error("no GPU had a gap at that time; the nearest gap is {nearest}, {away_ms} ms away")]
    NoGapThere {
        /// The nearest gap.
        nearest: GapId,
        /// How far from it.
        away_ms: i64,
    },
}

/// A gap with all that is known of it.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// The bundle.
    pub path: String,
    /// Beginning of the recording.
    pub started: MonoNs,
    /// The gap.
    pub gap: Gap,
    /// Its segments in order of time.
    pub segments: Vec<GapSegment>,
    /// The op before it.
    pub previous: Option<GpuOp>,
    /// The op that ended it.
    pub next: Option<GpuOp>,
    /// The call that launched that op.
    pub launch: Option<CudaApi>,
    /// The rows that segments rest on, by table and row.
    pub evidence: HashMap<(String, i64), EvidenceRow>,
    /// What speaks for or against other explanations.
    pub observations: Vec<Observation>,
    /// Names of threads.
    names: Names,
}

impl Explanation {
    /// The gap's time.
    #[must_use]
    pub fn interval(&self) -> Interval {
        Interval { start: self.gap.start_ns, end: self.gap.end_ns }
    }

    /// Sum of the segments' lengths less the gap's; anything but 0 is an error of gtrace.
    #[must_use]
    pub fn imbalance_ns(&self) -> i64 {
        let covered: i64 = self.segments.iter().map(|segment| (segment.end_ns - segment.start_ns).0).sum();
        covered - self.interval().length().0
    }

    /// What a thread is called.
    #[must_use]
    pub fn thread(&self, pid: i32, tid: i32) -> ThreadName {
        self.names.thread(pid, tid)
    }
}

/// Explains a gap of a bundle that was analysed.
///
/// # Errors
/// There is no such gap, or a table cannot be read.
pub fn explain(bundle: &Bundle, choice: Choice) -> Result<Explanation, ExplainError> {
    let gap = find(bundle, choice)?;
    let window = Interval { start: gap.start_ns, end: gap.end_ns };
    let mut segments: Vec<GapSegment> = bundle.read_window(window)?;
    segments.retain(|segment| segment.gap_id == gap.gap_id);
    segments.sort_by_key(|segment| segment.seq);
    let names = Names::new(&bundle.read::<Process>()?, &bundle.read::<Thread>()?);
    let (previous, next) = ops(bundle, &gap)?;
    let launch = match &next {
        Some(op) => launch(bundle, op)?,
        None => None,
    };
    let evidence = evidence::look_up(bundle, &segments, window)?;
    let observations = why_not::observe(bundle, &gap, &segments, launch.as_ref())?;
    Ok(Explanation {
        path: bundle.path().display().to_string(),
        started: MonoNs(bundle.meta().started_ns),
        gap,
        segments,
        previous,
        next,
        launch,
        evidence,
        observations,
        names,
    })
}

fn find(bundle: &Bundle, choice: Choice) -> Result<Gap, ExplainError> {
    let mut best: Option<Gap> = None;
    let mut numbers: Option<(GapId, GapId)> = None;
    let mut nearest: Option<(i64, GapId)> = None;
    for gap in bundle.scan::<Gap>()? {
        let gap = gap?;
        numbers = Some(
            numbers
                .map_or((gap.gap_id, gap.gap_id), |(low, high)| (low.min(gap.gap_id), high.max(gap.gap_id))),
        );
        let wanted = match choice {
            Choice::Longest => true,
            Choice::Gap(id) => gap.gap_id == id,
            Choice::At(moment) => {
                let away = (gap.start_ns - moment).0.max((moment - gap.end_ns).0 + 1).max(0);
                if nearest.is_none_or(|(nearest, _)| away < nearest) {
                    nearest = Some((away, gap.gap_id));
                }
                away == 0
            }
        };
        let length = |gap: &Gap| gap.end_ns - gap.start_ns;
        if wanted && best.as_ref().is_none_or(|best| length(&gap) > length(best)) {
            best = Some(gap);
        }
    }
    if let Some(gap) = best {
        return Ok(gap);
    }
    Err(match (choice, numbers, nearest) {
        (Choice::Gap(id), Some((low, high)), _) => ExplainError::NoSuchGap(id, low, high),
        (Choice::At(_), _, Some((away, nearest))) => {
            ExplainError::NoGapThere { nearest, away_ms: away / 1_000_000 }
        }
        _ => ExplainError::NoGaps,
    })
}

/// The ops before and after a gap.
fn ops(bundle: &Bundle, gap: &Gap) -> Result<(Option<GpuOp>, Option<GpuOp>), StoreError> {
    let (mut previous, mut next) = (None, None);
    let same = |wanted: Option<OpId>, op: &GpuOp| wanted == Some(op.op_id);
    for op in bundle.scan::<GpuOp>()? {
        let op = op?;
        if op.start_ns > gap.end_ns {
            break;
        }
        if same(gap.prev_op, &op) {
            previous = Some(op);
        } else if same(gap.next_op, &op) {
            next = Some(op);
        }
    }
    Ok((previous, next))
}

/// The call that launched an op: of a process's calls with its correlation id the first (the runtime's, where the
/// driver's is nested in it).
fn launch(bundle: &Bundle, op: &GpuOp) -> Result<Option<CudaApi>, StoreError> {
    for call in bundle.scan::<CudaApi>()? {
        let call = call?;
        if call.start_ns > op.end_ns {
            break;
        }
        if call.pid == op.pid && call.correlation_id == op.correlation_id {
            return Ok(Some(call));
        }
    }
    Ok(None)
}
