//! The arithmetic: gaps and segments of a bundle against what was planted, by time.
//!
//! - planted time P: gap time inside planted intervals;
//! - labelled time L: gap time with a planted cause (and object, where the truth names one), wherever it lies;
//! - right time: what of P has the cause and object planted there;
//! - recall = right / P, precision = right / L.
//!
//! Stalls that the workload marks as disturbed (the kernel took the CPU from it meanwhile) are left out of all three.

use std::collections::BTreeMap;

use crate::intervals::Intervals;
use crate::truth::{Causes, Plan, Planted};

/// A gap, as far as scoring needs it.
#[derive(Clone, Debug)]
pub struct Gap {
    /// Its number.
    pub id: i64,
    /// From here
    pub start: i64,
    /// to here.
    pub end: i64,
    /// What had emptied the queue before it.
    pub enabler: Option<String>,
    /// The GPU.
    pub device: i32,
}

/// A segment of a gap, as far as scoring needs it.
#[derive(Clone, Debug)]
pub struct Segment {
    /// The gap.
    pub gap: i64,
    /// Position in the gap.
    pub seq: i32,
    /// From here
    pub start: i64,
    /// to here.
    pub end: i64,
    /// Code of its cause.
    pub cause: String,
    /// File, peer, culprit …
    pub object: Option<String>,
    /// What the threads on its chain waited for or worked on: a request that queues behind a neighbour's has the
    /// neighbour as its object, and the file that was read in its chain.
    pub chain_objects: Vec<String>,
    /// The process at the end of its chain.
    pub pid: Option<i32>,
    /// The thread at the end of its chain.
    pub tid: Option<i32>,
    /// Whether it rests on recorded edges alone.
    pub exact: bool,
    /// It is part of a collective that ran alone.
    pub communication: bool,
}

/// How well a recording was attributed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Score {
    /// How much of the planted time has the planted cause.
    pub recall: f64,
    /// How much of the time with a planted cause was planted.
    pub precision: f64,
    /// How much of the gap time has no known cause.
    pub unknown: f64,
    /// How much of the gap time rests on recorded edges alone.
    pub exact: f64,
    /// How much of the right time that names a thread names the one that committed the act. 1 where none is named (what
    /// happens on a device has no thread).
    pub thread: f64,
    /// How much of the planted time, where the truth names an enabler, lies in gaps that name it. 1 where none is named.
    pub enabler: f64,
    /// Nanoseconds by which segments fail to cover their gap, or overlap, or lie outside.
    pub conservation_ns: i64,
    /// How many gaps.
    pub gaps: usize,
    /// P.
    pub planted_ns: i64,
    /// How much of all planted gap time was disturbed, and so left out.
    pub left_out: f64,
}

/// The bar for recall, precision, thread and enabler.
pub const ENOUGH: f64 = 0.95;
/// The bar for unknown time.
pub const UNKNOWN_AT_MOST: f64 = 0.01;
/// The bar for time left out: what remains must be most of it.
pub const LEFT_OUT_AT_MOST: f64 = 0.5;

impl Score {
    /// Whether it passes. A recording without planted gap time proves nothing and does not.
    pub fn passes(&self) -> bool {
        let good = [self.recall, self.precision, self.thread, self.enabler];
        self.planted_ns > 0
            && good.iter().all(|share| *share >= ENOUGH)
            && self.unknown <= UNKNOWN_AT_MOST
            && self.left_out <= LEFT_OUT_AT_MOST
            && self.conservation_ns == 0
    }
}

/// Scores the attribution of one recording.
pub fn score(gaps: &[Gap], segments: &[Segment], truth: &[Planted]) -> Score {
    let gap_set = Intervals::union(gaps.iter().map(|gap| (gap.start, gap.end)));
    let gap_ns: i64 = gaps.iter().map(|gap| gap.end - gap.start).sum();
    let (disturbed, clean): (Vec<Planted>, Vec<Planted>) =
        truth.iter().cloned().partition(|line| line.disturbed);
    let left_out = Intervals::union(disturbed.iter().map(|line| (line.start_ns, line.end_ns)));
    let pieces: Vec<Segment> = segments
        .iter()
        .flat_map(|segment| {
            let parts = left_out.gaps_in(segment.start, segment.end);
            parts.map(|(start, end)| Segment { start, end, ..segment.clone() })
        })
        .collect();
    let planted =
        Intervals::union(clean.iter().flat_map(|line| left_out.gaps_in(line.start_ns, line.end_ns)))
            .intersect(&gap_set);
    let left_out_ns = left_out.intersect(&gap_set).length();
    let plan = Plan::new(&clean);
    let right = right(&pieces, &plan, is_right);
    let primary = self::right(&pieces, &plan, is_planted_label);
    let labelled: i64 = pieces
        .iter()
        .filter(|segment| plan.labels().any(|line| is_planted_label(segment, line)))
        .map(|segment| segment.end - segment.start)
        .sum();
    let by_thread = self::right(&pieces, &plan, |segment, line| {
        is_right(segment, line) && segment.pid == Some(line.pid) && segment.tid == Some(line.tid)
    });
    let with_thread =
        self::right(&pieces, &plan, |segment, line| is_right(segment, line) && segment.tid.is_some());
    let part = |condition: &dyn Fn(&Segment) -> bool| -> i64 {
        segments.iter().filter(|segment| condition(segment)).map(|segment| segment.end - segment.start).sum()
    };
    Score {
        recall: share(right, planted.length(), 0.0),
        precision: share(primary, labelled, 0.0),
        unknown: share(part(&|segment| segment.cause.starts_with("unknown")), gap_ns, 0.0),
        exact: share(part(&|segment| segment.exact), gap_ns, 0.0),
        thread: share(by_thread, with_thread, 1.0),
        enabler: enabler(gaps, &clean),
        conservation_ns: conservation(gaps, segments),
        gaps: gaps.len(),
        planted_ns: planted.length(),
        left_out: share(left_out_ns, left_out_ns + planted.length(), 0.0),
    }
}

/// Whether a segment has the label that a line of the truth asks for.
fn is_planted_label(segment: &Segment, line: &Planted) -> bool {
    let named = || segment.object.iter().chain(&segment.chain_objects);
    let object = |wanted: &String| named().any(|object| object.contains(wanted.as_str()));
    let over_late = |rank: &String| !segment.communication || named().any(|object| object == rank);
    line.cause.cover(&segment.cause)
        && line.object.as_ref().is_none_or(object)
        && line.late.as_ref().is_none_or(over_late)
}

/// Whether a segment inside a planted interval is right: it has the label, or a cause that goes with it there.
fn is_right(segment: &Segment, line: &Planted) -> bool {
    is_planted_label(segment, line) || line.also.as_ref().is_some_and(|also| also.cover(&segment.cause))
}

/// The time inside planted intervals that passes a test.
fn right(segments: &[Segment], plan: &Plan<'_>, test: impl Fn(&Segment, &Planted) -> bool) -> i64 {
    let mut parts = Vec::new();
    for segment in segments {
        for line in plan.during(segment.start, segment.end).filter(|line| test(segment, line)) {
            parts.push((segment.start.max(line.start_ns), segment.end.min(line.end_ns)));
        }
    }
    Intervals::union(parts).length()
}

/// How much of the planted time with an enabler lies in gaps that name it.
fn enabler(gaps: &[Gap], truth: &[Planted]) -> f64 {
    let with_enabler: Vec<Planted> = truth.iter().filter(|line| line.enabler.is_some()).cloned().collect();
    let plan = Plan::new(&with_enabler);
    let (mut named, mut all) = (0, 0);
    for gap in gaps {
        for line in plan.during(gap.start, gap.end) {
            let time = gap.end.min(line.end_ns) - gap.start.max(line.start_ns);
            all += time;
            if names_enabler(gap, line) {
                named += time;
            }
        }
    }
    share(named, all, 1.0)
}

/// By how many nanoseconds the segments of each gap differ from a partition of it.
fn conservation(gaps: &[Gap], segments: &[Segment]) -> i64 {
    let mut of_gap: BTreeMap<i64, Vec<&Segment>> = BTreeMap::new();
    for segment in segments {
        of_gap.entry(segment.gap).or_default().push(segment);
    }
    let mut error = 0;
    for gap in gaps {
        let mut own = of_gap.remove(&gap.id).unwrap_or_default();
        own.sort_by_key(|segment| segment.seq);
        let mut cursor = gap.start;
        for segment in own {
            error += (segment.start - cursor).abs() + (segment.start - segment.end).max(0);
            cursor = segment.end;
        }
        error += (gap.end - cursor).abs();
    }
    // What is left belongs to no gap.
    let strays: i64 = of_gap.values().flatten().map(|segment| (segment.end - segment.start).abs()).sum();
    error + strays
}

fn share(part: i64, of: i64, without: f64) -> f64 {
    if of == 0 { without } else { part as f64 / of as f64 }
}

/// The causes that took planted time and were not planted, by time: what to look at when recall is low.
pub fn wrong_labels(segments: &[Segment], truth: &[Planted]) -> Vec<(String, i64)> {
    let clean: Vec<Planted> = truth.iter().filter(|line| !line.disturbed).cloned().collect();
    let planted = Intervals::union(clean.iter().map(|line| (line.start_ns, line.end_ns)));
    let mut by_label: BTreeMap<String, i64> = BTreeMap::new();
    let plan = Plan::new(&clean);
    for segment in segments {
        let right = plan.during(segment.start, segment.end).any(|line| is_right(segment, line));
        let time = planted.inside(segment.start, segment.end);
        if !right && time > 0 {
            *by_label.entry(label(segment)).or_default() += time;
        }
    }
    largest(by_label)
}

/// The segments outside planted intervals that bear a planted label, by time: what to look at when precision is low.
pub fn stray_labels(segments: &[Segment], truth: &[Planted]) -> Vec<(String, i64)> {
    let planted = Intervals::union(truth.iter().map(|line| (line.start_ns, line.end_ns)));
    let mut by_label: BTreeMap<String, i64> = BTreeMap::new();
    let plan = Plan::new(truth);
    for segment in segments.iter().filter(|segment| plan.labels().any(|line| is_planted_label(segment, line)))
    {
        let stray = segment.end - segment.start - planted.inside(segment.start, segment.end);
        if stray > 0 {
            *by_label.entry(label(segment)).or_default() += stray;
        }
    }
    largest(by_label)
}

/// The enablers of the gaps whose enabler is not the planted one, by planted time: what to look at when that share is low.
pub fn other_enablers(gaps: &[Gap], truth: &[Planted]) -> Vec<(String, i64)> {
    let with_enabler: Vec<Planted> = truth.iter().filter(|line| line.enabler.is_some()).cloned().collect();
    let plan = Plan::new(&with_enabler);
    let mut by_label: BTreeMap<String, i64> = BTreeMap::new();
    for gap in gaps {
        for line in plan.during(gap.start, gap.end).filter(|line| !names_enabler(gap, line)) {
            let label = gap.enabler.clone().unwrap_or_else(|| "none".into());
            *by_label.entry(label).or_default() += gap.end.min(line.end_ns) - gap.start.max(line.start_ns);
        }
    }
    largest(by_label)
}

fn names_enabler(gap: &Gap, line: &Planted) -> bool {
    gap.enabler.as_deref().zip(line.enabler.as_deref()).is_some_and(|(is, wanted)| is.contains(wanted))
}

fn label(segment: &Segment) -> String {
    match &segment.object {
        Some(object) => format!("{} ({object})", segment.cause),
        None => segment.cause.clone(),
    }
}

fn largest(by_label: BTreeMap<String, i64>) -> Vec<(String, i64)> {
    let mut labels: Vec<_> = by_label.into_iter().collect();
    labels.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
    labels
}

/// The distinct causes that a truth plants: for messages.
pub fn causes(truth: &[Planted]) -> String {
    let mut names: Vec<String> = truth
        .iter()
        .map(|line| match &line.cause {
            Causes::One(code) => code.clone(),
            Causes::Several(codes) => codes.join(" / "),
        })
        .collect();
    names.sort();
    names.dedup();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gap(id: i64, start: i64, end: i64) -> Gap {
        Gap { id, start, end, enabler: None, device: 0 }
    }

    fn segment(gap: i64, seq: i32, start: i64, end: i64, cause: &str) -> Segment {
        Segment {
            gap,
            seq,
            start,
            end,
            cause: cause.into(),
            object: None,
            chain_objects: Vec::new(),
            pid: Some(1),
            tid: Some(2),
            exact: true,
            communication: false,
        }
    }

    fn planted(start_ns: i64, end_ns: i64, cause: &str) -> Planted {
        let cause = Causes::One(cause.into());
        Planted {
            start_ns,
            end_ns,
            cause,
            also: None,
            object: None,
            enabler: None,
            deed: None,
            disturbed: false,
            gpu_pid: None,
            late: None,
            pid: 1,
            tid: 2,
        }
    }

    fn close(left: f64, right: f64) -> bool {
        (left - right).abs() < 1e-12
    }

    #[test]
    fn a_perfect_attribution_scores_one() {
        let gaps = [gap(1, 0, 100)];
        let segments = [
            segment(1, 0, 0, 10, "cuda.sync"),
            segment(1, 1, 10, 90, "host.sleep"),
            segment(1, 2, 90, 100, "gpu.submit_latency"),
        ];
        let score = score(&gaps, &segments, &[planted(10, 90, "host.sleep")]);
        assert!(score.passes(), "{score:?}");
        assert!(close(score.recall, 1.0) && close(score.precision, 1.0) && close(score.thread, 1.0));
        assert_eq!((score.planted_ns, score.conservation_ns, score.gaps), (80, 0, 1));
    }

    #[test]
    fn only_gap_time_is_planted_time() {
        // The device worked until 50, although the sleep began at 10.
        let gaps = [gap(1, 50, 100)];
        let segments = [segment(1, 0, 50, 90, "host.sleep"), segment(1, 1, 90, 100, "cuda.launch")];
        let score = score(&gaps, &segments, &[planted(10, 90, "host.sleep")]);
        assert_eq!(score.planted_ns, 40);
        assert!(close(score.recall, 1.0));
    }

    #[test]
    fn recall_counts_planted_time_under_other_names() {
        let gaps = [gap(1, 0, 100)];
        let segments = [segment(1, 0, 0, 40, "host.cpu.user"), segment(1, 1, 40, 100, "host.sleep")];
        let score = score(&gaps, &segments, &[planted(0, 100, "host.sleep")]);
        assert!(close(score.recall, 0.6) && close(score.precision, 1.0) && !score.passes());
    }

    #[test]
    fn what_was_disturbed_counts_nowhere() {
        let gaps = [gap(1, 0, 100), gap(2, 200, 220)];
        let segments = [
            segment(1, 0, 0, 100, "cuda.sync"),
            segment(2, 0, 200, 205, "cuda.sync"),
            segment(2, 1, 205, 220, "host.runq.preempted"),
        ];
        let mut second = planted(200, 220, "cuda.sync");
        second.disturbed = true;
        let score = score(&gaps, &segments, &[planted(0, 100, "cuda.sync"), second]);
        assert!(close(score.recall, 1.0) && close(score.precision, 1.0) && score.passes(), "{score:?}");
        assert!(close(score.left_out, 20.0 / 120.0) && score.planted_ns == 100, "{score:?}");
    }

    #[test]
    fn a_recording_mostly_disturbed_does_not_pass() {
        let gaps = [gap(1, 0, 100), gap(2, 200, 310)];
        let segments = [segment(1, 0, 0, 100, "cuda.sync"), segment(2, 0, 200, 310, "cuda.sync")];
        let mut second = planted(200, 310, "cuda.sync");
        second.disturbed = true;
        let score = score(&gaps, &segments, &[planted(0, 100, "cuda.sync"), second]);
        assert!(close(score.recall, 1.0) && !score.passes(), "{score:?}");
    }

    #[test]
    fn precision_counts_the_label_where_nothing_was_planted() {
        let gaps = [gap(1, 0, 100), gap(2, 200, 300)];
        let segments = [segment(1, 0, 0, 100, "host.sleep"), segment(2, 0, 200, 300, "host.sleep")];
        let score = score(&gaps, &segments, &[planted(0, 100, "host.sleep")]);
        assert!(close(score.recall, 1.0) && close(score.precision, 0.5) && !score.passes());
    }

    #[test]
    fn the_right_cause_with_the_wrong_file_is_wrong() {
        let gaps = [gap(1, 0, 100)];
        let mut line = planted(0, 100, "storage.read");
        line.object = Some("/data/a".into());
        let mut label = segment(1, 0, 0, 100, "storage.read.device");
        label.object = Some("/data/b on vda".into());
        assert!(close(score(&gaps, &[label.clone()], &[line.clone()]).recall, 0.0));
        label.object = Some("/data/a on vda".into());
        assert!(close(score(&gaps, &[label], &[line]).recall, 1.0));
    }

    #[test]
    fn a_file_named_in_the_chain_is_named() {
        let gaps = [gap(1, 0, 100)];
        let mut line = planted(0, 100, "storage.read");
        line.object = Some("/data/a".into());
        let mut label = segment(1, 0, 0, 100, "storage.read.queue");
        label.object = Some("neighbour".into());
        label.chain_objects = vec!["pipe:[7]".into(), "/data/a".into()];
        assert!(close(score(&gaps, &[label], &[line]).recall, 1.0));
    }

    #[test]
    fn a_segment_without_a_thread_names_no_wrong_one() {
        let gaps = [gap(1, 0, 100)];
        let mut label = segment(1, 0, 0, 100, "gpu.submit_latency");
        label.tid = None;
        assert!(close(score(&gaps, &[label], &[planted(0, 100, "gpu.submit_latency")]).thread, 1.0));
    }

    #[test]
    fn the_right_cause_in_the_wrong_thread_does_not_pass() {
        let gaps = [gap(1, 0, 100)];
        let mut label = segment(1, 0, 0, 100, "host.cpu.user");
        label.tid = Some(3);
        let score = score(&gaps, &[label], &[planted(0, 100, "host.cpu.user")]);
        assert!(close(score.recall, 1.0) && close(score.thread, 0.0) && !score.passes());
    }

    #[test]
    fn unknown_time_and_inferred_time_are_shares_of_all_gap_time() {
        let gaps = [gap(1, 0, 100)];
        let mut inferred = segment(1, 1, 50, 100, "host.sleep");
        inferred.exact = false;
        let segments = [segment(1, 0, 0, 50, "unknown.no_waker"), inferred];
        let score = score(&gaps, &segments, &[planted(50, 100, "host.sleep")]);
        assert!(close(score.unknown, 0.5) && close(score.exact, 0.5) && !score.passes());
    }

    #[test]
    fn holes_overlaps_and_strays_break_conservation() {
        let gaps = [gap(1, 0, 100)];
        let hole = [segment(1, 0, 0, 40, "a"), segment(1, 1, 50, 100, "a")];
        assert_eq!(conservation(&gaps, &hole), 10);
        let overlap = [segment(1, 0, 0, 60, "a"), segment(1, 1, 50, 100, "a")];
        assert_eq!(conservation(&gaps, &overlap), 10);
        let short = [segment(1, 0, 0, 99, "a")];
        assert_eq!(conservation(&gaps, &short), 1);
        let stray = [segment(1, 0, 0, 100, "a"), segment(7, 0, 0, 5, "a")];
        assert_eq!(conservation(&gaps, &stray), 5);
        assert_eq!(conservation(&gaps, &[]), 100);
        assert_eq!(conservation(&gaps, &[segment(1, 0, 0, 100, "a")]), 0);
    }

    #[test]
    fn a_hole_and_an_overlap_do_not_cancel() {
        let gaps = [gap(1, 0, 100)];
        let segments = [segment(1, 0, 0, 30, "a"), segment(1, 1, 40, 70, "a"), segment(1, 2, 60, 100, "a")];
        assert_eq!(conservation(&gaps, &segments), 20);
    }

    #[test]
    fn an_enabler_is_asked_of_gaps_with_planted_time_only() {
        let mut first = gap(1, 0, 100);
        first.enabler = Some("cuStreamSynchronize".into());
        let gaps = [first, gap(2, 200, 300)];
        let mut line = planted(0, 100, "cuda.sync");
        line.enabler = Some("cuStreamSynchronize".into());
        assert!(close(enabler(&gaps, &[line.clone()]), 1.0));
        line.end_ns = 300;
        assert!(close(enabler(&gaps, &[line]), 0.5));
        assert!(close(enabler(&gaps, &[planted(0, 300, "cuda.sync")]), 1.0));
    }

    #[test]
    fn what_goes_with_a_cause_is_right_there_and_not_counted_elsewhere() {
        let gaps = [gap(1, 0, 100), gap(2, 200, 300)];
        let segments = [
            segment(1, 0, 0, 60, "cuda.sync"),
            segment(1, 1, 60, 100, "host.cpu.user"),
            segment(2, 0, 200, 300, "host.cpu.user"),
        ];
        let mut line = planted(0, 100, "cuda.sync");
        line.also = Some(Causes::One("host.cpu.user".into()));
        let score = score(&gaps, &segments, &[line]);
        assert!(close(score.recall, 1.0) && close(score.precision, 1.0), "{score:?}");
    }

    #[test]
    fn nothing_planted_proves_nothing() {
        let gaps = [gap(1, 0, 100)];
        assert!(!score(&gaps, &[segment(1, 0, 0, 100, "a")], &[]).passes());
    }

    #[test]
    fn what_went_wrong_is_named_by_time() {
        let segments = [
            segment(1, 0, 0, 40, "host.cpu.user"),
            segment(1, 1, 40, 100, "host.sleep"),
            segment(2, 0, 200, 230, "host.sleep"),
        ];
        let truth = [planted(0, 100, "host.sleep")];
        assert_eq!(wrong_labels(&segments, &truth), [("host.cpu.user".to_owned(), 40)]);
        assert_eq!(stray_labels(&segments, &truth), [("host.sleep".to_owned(), 30)]);
    }
}
