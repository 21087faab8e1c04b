//! What is exported: everything, what surrounds one gap, or as many of the longest gaps as fit.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::gaps::length;
use super::names::Names;
use super::select::Selection;
use super::{ExportError, Options, write};
use crate::event::{DurationNs, GapId, Interval, MonoNs, Pid, Tid};
use crate::store::schema::{Gap, GapSegment, GpuOp};
use crate::store::{Bundle, StoreError};

/// States are exported of all threads up to this many; of more, only of those that a chain runs through.
const MANY_THREADS: usize = 64;
/// Sizes tried at most in the search for what fits.
const TRIALS: u32 = 8;

/// What an export holds in memory: the gaps with their chains, and the names.
pub struct Story {
    pub gaps: Vec<Gap>,
    /// Each gap's segments, in order.
    pub segments: BTreeMap<GapId, Vec<GapSegment>>,
    pub names: Names,
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
        let mut end = MonoNs(bundle.meta().ended_ns.unwrap_or(bundle.meta().started_ns));
        if bundle.meta().ended_ns.is_none() {
            for op in bundle.scan::<GpuOp>()? {
                end = end.max(op?.end_ns);
            }
        }
        let all_threads = gaps.is_empty() || names.threads() <= MANY_THREADS;
        Ok(Self { gaps, segments, names, end, on_chains, all_threads })
    }

    /// Whether a thread's states are exported.
    pub fn shows_states(&self, selection: &Selection, pid: Pid, tid: Tid) -> bool {
        (self.all_threads && !selection.is_chains_only()) || self.on_chains.contains(&(pid, tid))
    }

    /// Whether a thread's calls are exported.
    pub fn shows_calls(&self, selection: &Selection, pid: Pid, tid: Tid) -> bool {
        !selection.is_chains_only() || self.on_chains.contains(&(pid, tid))
    }

    /// Which threads' states are exported.
    pub fn threads_in_words(&self, selection: &Selection) -> String {
        let all = self.names.threads();
        if self.all_threads && !selection.is_chains_only() {
            format!("states of all {all} threads")
        } else {
            format!("states of the {} threads on causal chains, of {all}", self.on_chains.len())
        }
    }
}

/// What to export, and that in words.
pub struct Plan {
    pub selection: Selection,
    pub choice: String,
}

/// Decides.
pub fn plan(bundle: &Bundle, story: &Story, options: &Options) -> Result<Plan, ExportError> {
    let limit = options.max_bytes.unwrap_or(u64::MAX);
    let size = |plan: &Plan| -> Result<u64, ExportError> {
        if limit == u64::MAX {
            return Ok(0);
        }
        Ok(write(bundle, story, &plan.selection, &plan.choice, std::io::sink())?.0)
    };
    let too_small = |plan: &Plan, needed| ExportError::TooSmall { what: plan.choice.clone(), needed, limit };

    if let Some(id) = options.around_gap {
        let gap = story.gaps.iter().find(|gap| gap.gap_id == id);
        let gap = gap.ok_or(ExportError::NoGap { gap: id.0, gaps: story.gaps.len() })?;
        let choice = format!("gap {id} and {} around it", margin(gap));
        let plan = Plan { selection: Selection::windows(vec![around(gap)]), choice };
        let needed = size(&plan)?;
        return if needed <= limit { Ok(plan) } else { Err(too_small(&plan, needed)) };
    }

    // Rather fewer gaps with all that surrounds them than all gaps with nothing; but rather something than nothing.
    let mut smallest = None;
    for detail in [Detail::All, Detail::Chains] {
        let everything = detail.plan(Selection::all(), "everything".into());
        let needed = size(&everything)?;
        if needed <= limit {
            return Ok(everything);
        }
        match longest(story, detail, limit, needed, &size)? {
            Ok(plan) => return Ok(plan),
            Err(too_large) => smallest = Some(too_large),
        }
    }
    let (plan, needed) =
        smallest.unwrap_or_else(|| (Detail::All.plan(Selection::all(), "everything".into()), 0));
    Err(too_small(&plan, needed))
}

/// How much is shown of a time.
#[derive(Clone, Copy)]
enum Detail {
    All,
    Chains,
}

impl Detail {
    fn plan(self, selection: Selection, choice: String) -> Plan {
        match self {
            Self::All => Plan { selection, choice },
            Self::Chains => Plan {
                selection: selection.chains_only(),
                choice: format!("{choice}, of threads and block requests only those on causal chains"),
            },
        }
    }
}

/// As many of the longest gaps as fit; where not even one does, that one and its size.
fn longest(
    story: &Story,
    detail: Detail,
    limit: u64,
    everything: u64,
    size: impl Fn(&Plan) -> Result<u64, ExportError>,
) -> Result<Result<Plan, (Plan, u64)>, ExportError> {
    let mut gaps: Vec<&Gap> = story.gaps.iter().collect();
    gaps.sort_by_key(|gap| (Reverse(length(gap.start_ns, gap.end_ns)), gap.gap_id));
    let plan = |count: usize| {
        let which = if count == 1 { "the longest gap".into() } else { format!("the {count} longest gaps") };
        let choice = format!("{which} of {} and a margin around each", gaps.len());
        detail.plan(Selection::windows(gaps.iter().take(count).map(|gap| around(gap)).collect()), choice)
    };
    if gaps.is_empty() {
        return Ok(Err((detail.plan(Selection::all(), "everything".into()), everything)));
    }
    // `fits` gaps are known to fit, `too_many` known not to, each with its size.
    let (mut fits, mut too_many) = ((0, 0), (gaps.len() + 1, everything));
    for _ in 0..TRIALS {
        if fits.0 + 1 >= too_many.0 || fits.1 > limit / 10 * 9 {
            break;
        }
        let share = (limit - fits.1) as f64 / (too_many.1 - fits.1).max(1) as f64;
        let step = ((too_many.0 - fits.0) as f64 * share * 0.95) as usize;
        let count = (fits.0 + step).clamp(fits.0 + 1, too_many.0 - 1);
        let needed = size(&plan(count))?;
        if needed <= limit {
            fits = (count, needed);
        } else {
            too_many = (count, needed);
        }
    }
    if fits.0 > 0 {
        return Ok(Ok(plan(fits.0)));
    }
    let one = plan(1);
    let needed = size(&one)?;
    Ok(if needed <= limit { Ok(one) } else { Err((one, needed)) })
}

/// What is shown on each side of a gap: as much as the gap is long, but something and not everything.
fn margin(gap: &Gap) -> DurationNs {
    DurationNs(length(gap.start_ns, gap.end_ns).0.clamp(100_000, 10_000_000))
}

fn around(gap: &Gap) -> Interval {
    let margin = margin(gap).0;
    Interval::new(MonoNs(gap.start_ns.0.saturating_sub(margin)), MonoNs(gap.end_ns.0.saturating_add(margin)))
}
