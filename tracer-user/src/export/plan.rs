//! What is exported: everything, what surrounds one gap, or as much around the longest gaps as fits.
//!
//! Where not everything fits, what goes first is what lies apart from the longest gaps. Rather fewer gaps with all that
//! surrounds them than all gaps with nothing; but rather something than nothing. So where not even the longest gap fits with all
//! that surrounds it, what no chain runs through goes, then what no cause rests on, then all but the gaps themselves, and at last
//! the shorter segments of the longest gap.

use std::cmp::Reverse;

use super::select::{Detail, Selection};
use super::story::{Story, length};
use super::{ExportError, Options, write};
use crate::event::{DurationNs, Interval, MonoNs};
use crate::store::Bundle;
use crate::store::schema::Gap;

/// Sizes tried at most in the search for what fits.
const TRIALS: u32 = 8;
/// Steps in which the time of a recording without gaps is cut.
const STEPS: usize = 1000;

/// What to export, and that in words.
pub struct Plan {
    pub selection: Selection,
    pub choice: String,
}

/// Decides.
pub fn plan(bundle: &Bundle, story: &Story, options: &Options) -> Result<Plan, ExportError> {
    let mut gaps: Vec<&Gap> = story.gaps.iter().collect();
    gaps.sort_by_key(|gap| (Reverse(length(gap.start_ns, gap.end_ns)), gap.gap_id));
    let mut which = String::from("the longest gap");
    if let Some(id) = options.around_gap {
        let gap = gaps.iter().copied().find(|gap| gap.gap_id == id);
        gaps = vec![gap.ok_or(ExportError::NoGap { gap: id.0, gaps: story.gaps.len() })?];
        which = format!("gap {id}");
    }
    let choices = Choices { story, gaps, which, only: options.around_gap.is_some() };
    let Some(limit) = options.max_bytes else { return Ok(choices.whole(Detail::All)) };
    let size = |plan: &Plan| -> Result<u64, ExportError> {
        let Plan { selection, choice } = plan;
        Ok(write(bundle, story, selection, choice, options.format, std::io::sink())?.0)
    };

    for detail in [Detail::All, Detail::Chains, Detail::Evidence, Detail::Gaps] {
        let whole = choices.whole(detail);
        let needed = size(&whole)?;
        if needed <= limit {
            return Ok(whole);
        }
        let part = |count| choices.part(detail, count);
        if let Some(plan) = most(choices.parts(), needed, limit, part, size)? {
            return Ok(plan);
        }
    }
    let segments = choices.most_segments();
    let needed = size(&choices.segments(segments))?;
    if let Some(plan) = most(segments, needed, limit, |count| choices.segments(count), size)? {
        return Ok(plan);
    }
    let least = choices.segments(0);
    let needed = size(&least)?;
    if needed <= limit { Ok(least) } else { Err(ExportError::TooSmall { what: least.choice, needed, limit }) }
}

/// What can be chosen.
struct Choices<'a> {
    story: &'a Story,
    /// The gaps wanted, the longest first.
    gaps: Vec<&'a Gap>,
    /// The first of them in words.
    which: String,
    /// Whether only that one is wanted.
    only: bool,
}

impl Choices<'_> {
    /// All that is wanted.
    fn whole(&self, detail: Detail) -> Plan {
        match self.gaps.first() {
            Some(gap) if self.only => detailed(
                detail,
                Selection::windows(vec![around(gap, detail)]),
                &format!("{} and {} around it", self.which, margin(gap, detail)),
            ),
            _ => {
                let all = if detail == Detail::Gaps { "all gaps" } else { "everything" };
                detailed(detail, Selection::all(), all)
            }
        }
    }

    /// In how many parts that can be cut.
    fn parts(&self) -> usize {
        match self.gaps.len() {
            _ if self.only => 0,
            0 => STEPS,
            gaps => gaps,
        }
    }

    /// So many of the longest gaps; without gaps, so much of the recording's beginning.
    fn part(&self, detail: Detail, count: usize) -> Plan {
        if self.gaps.is_empty() {
            let all = i128::from(self.story.end.0) - i128::from(self.story.started.0);
            let part = all.max(0) * count as i128 / STEPS as i128;
            let end = MonoNs(self.story.started.0.saturating_add(i64::try_from(part).unwrap_or(i64::MAX)));
            let choice = format!("the first {}: there are no gaps", length(self.story.started, end));
            return detailed(
                detail,
                Selection::windows(vec![Interval::new(self.story.started, end)]),
                &choice,
            );
        }
        let which = if count == 1 { self.which.clone() } else { format!("the {count} longest gaps") };
        let margins = if detail == Detail::Gaps { "" } else { " and a margin around each" };
        let choice = format!("{which} of {}{margins}", self.gaps.len());
        let windows = self.gaps.iter().take(count).map(|gap| around(gap, detail)).collect();
        detailed(detail, Selection::windows(windows), &choice)
    }

    fn most_segments(&self) -> usize {
        self.gaps.first().map_or(0, |gap| self.story.segments(gap.gap_id).len())
    }

    /// Only the first gap, with so many of its segments.
    fn segments(&self, count: usize) -> Plan {
        let windows = self.gaps.first().map(|gap| around(gap, Detail::Gaps)).into_iter().collect();
        let selection = Selection::windows(windows).in_detail(Detail::Gaps).longest_segments(count);
        let all = self.most_segments();
        let choice = if self.gaps.is_empty() {
            "nothing: there are no gaps".into()
        } else {
            match count {
                0 => format!("{} alone, without its {all} segments", self.which),
                _ => format!("{} alone, with the longest of its segments: {count} of {all}", self.which),
            }
        };
        Plan { selection, choice }
    }
}

fn detailed(detail: Detail, selection: Selection, choice: &str) -> Plan {
    let but = match detail {
        Detail::All => "",
        Detail::Chains => ", of threads and block requests only those on causal chains",
        Detail::Evidence => ", of rows only those that causes rest on",
        Detail::Gaps => ", nothing but gaps, their causes, and losses",
    };
    Plan { selection: selection.in_detail(detail), choice: format!("{choice}{but}") }
}

/// As many of `all` parts as fit; where not even one does, nothing.
///
/// All of them need `needed` bytes, more than the limit.
fn most(
    all: usize,
    needed: u64,
    limit: u64,
    plan: impl Fn(usize) -> Plan,
    size: impl Fn(&Plan) -> Result<u64, ExportError>,
) -> Result<Option<Plan>, ExportError> {
    // `fits` parts are known to fit, `too_many` known not to, each with its size.
    let (mut fits, mut too_many) = ((0, 0), (all + 1, needed));
    for trial in 0.. {
        if fits.0 + 1 >= too_many.0 || fits.1 > limit / 10 * 9 {
            break;
        }
        let share = (limit - fits.1) as f64 / too_many.1.saturating_sub(fits.1).max(1) as f64;
        let step = ((too_many.0 - fits.0) as f64 * share * 0.95) as usize;
        let mut count = (fits.0 + step).clamp(fits.0 + 1, too_many.0 - 1);
        if trial >= TRIALS {
            // Enough; but one part is tried before none is.
            if fits.0 > 0 {
                break;
            }
            count = 1;
        }
        let needed = size(&plan(count))?;
        if needed <= limit {
            fits = (count, needed);
        } else {
            too_many = (count, needed);
        }
    }
    Ok((fits.0 > 0).then(|| plan(fits.0)))
}

/// What is shown on each side of a gap: as much as the gap is long, but something and not everything.
fn margin(gap: &Gap, detail: Detail) -> DurationNs {
    if detail == Detail::Gaps {
        return DurationNs(0);
    }
    DurationNs(length(gap.start_ns, gap.end_ns).0.clamp(100_000, 10_000_000))
}

fn around(gap: &Gap, detail: Detail) -> Interval {
    let margin = margin(gap, detail).0;
    Interval::new(MonoNs(gap.start_ns.0.saturating_sub(margin)), MonoNs(gap.end_ns.0.saturating_add(margin)))
}
