//! The longest gaps, and what had drained the launch queue before gaps.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

use super::model::{Enabler, WorstGap};
use super::names::Names;
use crate::event::Text;
use crate::store::schema::{Gap, GapSegment};

/// How many of the longest gaps the report lists.
pub const LISTED: usize = 10;

/// Collects gaps, then the segments of the longest.
#[derive(Debug, Default)]
pub struct GapTally {
    longest: BinaryHeap<Reverse<(i64, Reverse<i64>)>>,
    kept: HashMap<i64, Kept>,
    enablers: BTreeMap<Text, (i64, u64)>,
}

#[derive(Debug)]
struct Kept {
    gap: Gap,
    cause_ns: i64,
    longest: Option<GapSegment>,
}

impl GapTally {
    /// Counts a gap.
    pub fn gap(&mut self, gap: &Gap) {
        let length = (gap.end_ns - gap.start_ns).0;
        if let Some(call) = &gap.enabler {
            let (ns, gaps) = self.enablers.entry(call.clone()).or_default();
            *ns += length;
            *gaps += 1;
        }
        // Of equal ones the first is listed.
        self.longest.push(Reverse((length, Reverse(gap.gap_id.0))));
        self.kept.insert(gap.gap_id.0, Kept { gap: gap.clone(), cause_ns: 0, longest: None });
        if self.longest.len() > LISTED
            && let Some(Reverse((_, Reverse(shortest)))) = self.longest.pop()
        {
            self.kept.remove(&shortest);
        }
    }

    /// Looks at a segment, once all gaps were counted.
    pub fn segment(&mut self, segment: &GapSegment) {
        let Some(kept) = self.kept.get_mut(&segment.gap_id.0) else { return };
        if segment.cause != kept.gap.cause {
            return;
        }
        let length = segment.end_ns - segment.start_ns;
        kept.cause_ns += length.0;
        if kept.longest.as_ref().is_none_or(|longest| length > longest.end_ns - longest.start_ns) {
            kept.longest = Some(segment.clone());
        }
    }

    /// Both lists, the longest first.
    #[must_use]
    pub fn finish(self, names: &Names) -> (Vec<WorstGap>, Vec<Enabler>) {
        let mut worst: Vec<WorstGap> = self.kept.into_values().map(|kept| kept.worded(names)).collect();
        worst.sort_by(|a, b| b.ns.cmp(&a.ns).then_with(|| a.gap_id.cmp(&b.gap_id)));
        let mut enablers: Vec<Enabler> = self
            .enablers
            .into_iter()
            .map(|(call, (ns, gaps))| Enabler { call: call.to_string(), ns, gaps })
            .collect();
        enablers.sort_by_key(|enabler| Reverse(enabler.ns));
        (worst, enablers)
    }
}

impl Kept {
    fn worded(self, names: &Names) -> WorstGap {
        let Self { gap, cause_ns, longest } = self;
        let leaf = longest.as_ref().and_then(|segment| segment.pid.zip(segment.tid));
        WorstGap {
            gap_id: gap.gap_id.0,
            device: gap.device.0,
            kind: gap.kind.to_string(),
            start_ns: gap.start_ns.0,
            ns: (gap.end_ns - gap.start_ns).0,
            cause: gap.cause.to_string(),
            cause_ns,
            object: longest.as_ref().and_then(|segment| segment.object.as_ref()).map(ToString::to_string),
            thread: leaf.map(|(pid, tid)| names.thread(pid.0, tid.0)),
            stage: gap.stage.to_string(),
        }
    }
}
