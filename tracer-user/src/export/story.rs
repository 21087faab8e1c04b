//! What an export holds in memory: the gaps with their chains, and the names.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::names::Names;
use super::select::{Detail, Selection};
use crate::event::{DurationNs, GapId, MonoNs, Pid, Tid};
use crate::store::schema::{Gap, GapSegment, GpuOp};
use crate::store::{Bundle, StoreError, Table};

/// States are exported of all threads up to this many; of more, only of those that a chain runs through.
const MANY_THREADS: usize = 64;

/// It.
pub struct Story {
    /// All gaps.
    pub gaps: Vec<Gap>,
    /// Each gap's segments, in order.
    pub segments: BTreeMap<GapId, Vec<GapSegment>>,
    /// What things are called.
    pub names: Names,
    /// The beginning of the recording.
    pub started: MonoNs,
    /// The end of the recording, or of the last op if the recorder was killed.
    pub end: MonoNs,
    on_chains: BTreeSet<(Pid, Tid)>,
    all_threads: bool,
}

impl Story {
    /// Reads it.
    pub fn load(bundle: &Bundle) -> Result<Self, StoreError> {
        let gaps = bundle.read::<Gap>()?;
        let names = Names::load(bundle)?;
        let mut segments: BTreeMap<GapId, Vec<GapSegment>> = BTreeMap::new();
        let mut on_chains: BTreeSet<(Pid, Tid)> =
            gaps.iter().filter_map(|gap| gap.pid.zip(gap.tid)).collect();
        for segment in bundle.scan::<GapSegment>()? {
            let segment = segment?;
            on_chains.extend(
                segment.path.iter().filter(|hop| &*hop.state != "device").map(|hop| (hop.pid, hop.tid)),
            );
            segments.entry(segment.gap_id).or_default().push(segment);
        }
        let started = MonoNs(bundle.meta().started_ns);
        let mut end = MonoNs(bundle.meta().ended_ns.unwrap_or(started.0));
        if bundle.meta().ended_ns.is_none() {
            for op in bundle.scan::<GpuOp>()? {
                end = end.max(op?.end_ns);
            }
        }
        let all_threads = gaps.is_empty() || names.threads() <= MANY_THREADS;
        Ok(Self { gaps, segments, names, started, end, on_chains, all_threads })
    }

    /// Whether a chain runs through a thread.
    pub fn is_on_chain(&self, pid: Pid, tid: Tid) -> bool {
        self.on_chains.contains(&(pid, tid))
    }

    /// Whether a thread's states are exported where all threads are wanted.
    pub fn shows_states(&self, pid: Pid, tid: Tid) -> bool {
        self.all_threads || self.is_on_chain(pid, tid)
    }

    /// A gap's segments.
    pub fn segments(&self, gap: GapId) -> &[GapSegment] {
        self.segments.get(&gap).map_or(&[], Vec::as_slice)
    }

    /// The rows that the causes of the selected gaps rest on.
    pub fn evidence(&self, selection: &Selection) -> Evidence {
        let mut evidence = Evidence::default();
        if selection.detail() != Detail::Evidence {
            return evidence;
        }
        for gap in self.gaps.iter().filter(|gap| selection.touches(gap.start_ns, gap.end_ns)) {
            for op in [gap.prev_op, gap.next_op].into_iter().flatten() {
                evidence.0.entry(GpuOp::NAME.into()).or_default().insert(op.0);
            }
            for row in self.segments(gap.gap_id).iter().flat_map(|segment| &segment.evidence) {
                if let Some(rows) = evidence.0.get_mut(&*row.table) {
                    rows.insert(row.row.0);
                } else {
                    evidence.0.insert((&*row.table).into(), HashSet::from([row.row.0]));
                }
            }
        }
        evidence
    }

    /// Which threads' states are exported.
    pub fn threads_in_words(&self, detail: Detail) -> String {
        let (all, on_chains) = (self.names.threads(), self.on_chains.len());
        match detail {
            Detail::All if self.all_threads => format!("states of all {all} threads"),
            Detail::All | Detail::Chains => {
                format!("states of the {on_chains} threads on causal chains, of {all}")
            }
            Detail::Evidence => "states that causes rest on".into(),
            Detail::Gaps => "no states".into(),
        }
    }
}

/// Rows by table.
#[derive(Default)]
pub struct Evidence(BTreeMap<Box<str>, HashSet<i64>>);

impl Evidence {
    /// Whether a row is among them.
    pub fn has<T: Table>(&self, row: i64) -> bool {
        self.0.get(T::NAME).is_some_and(|rows| rows.contains(&row))
    }
}

/// Times in a file may be anything.
pub fn length(start: MonoNs, end: MonoNs) -> DurationNs {
    DurationNs(end.0.saturating_sub(start.0))
}
