//! Two recordings of the same program: what got better or worse, by cause, and what is no more than noise.
//!
//! Waiting is compared per unit of run: per step where both recordings have steps, per second of the GPUs' windows otherwise.
//! A recording is cut into equal parts, and what a cause takes in each of them is one measurement. How much these differ within each recording says how far apart two means
//! may be by chance ([`noise`]).

pub mod html;
mod noise;
mod parts;
pub mod text;

use std::collections::BTreeSet;

use serde::Serialize;

use super::load;
use super::model::Report;
use super::text::command_words;
use super::wording;
use crate::store::{Bundle, StoreError};
use noise::Samples;
use parts::{Cuts, Parts};

/// Version of the shape that `--format json` prints.
pub const VERSION: u32 = 1;

/// What two recordings say about each other.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// `gtrace.comparison`.
    pub format: &'static str,
    /// [`VERSION`].
    pub version: u32,
    /// The recording that is compared with: how it was.
    pub before: Side,
    /// The recording in question: how it is.
    pub after: Side,
    /// What values are per.
    pub per: Per,
    /// All waiting.
    pub waiting: Change,
    /// By cause, the largest change first. Their values add up to `waiting`'s.
    pub causes: Vec<Change>,
    /// By what the program was at, the largest change first.
    pub stages: Vec<Change>,
    /// Kernels per unit.
    pub kernels: Change,
    /// What speaks against comparing these two.
    pub doubts: Vec<String>,
}

/// One of the two.
#[derive(Clone, Debug, Serialize)]
pub struct Side {
    /// Its path.
    pub path: String,
    /// Its command.
    pub command: Vec<String>,
    /// Sum of the GPUs' windows.
    pub window_ns: i64,
    /// Waiting in them.
    pub gap_ns: i64,
    /// Gaps.
    pub gaps: u64,
    /// Waiting of unknown cause.
    pub unknown_ns: i64,
    /// Parts that it was cut into.
    pub parts: usize,
    /// Its answer.
    pub says: String,
}

/// One value in both recordings.
#[derive(Clone, Debug, Serialize)]
pub struct Change {
    /// Code of the cause or stage.
    pub name: String,
    /// In words.
    pub says: String,
    /// Before, per unit (ns; kernels: a count).
    pub before: f64,
    /// After.
    pub after: f64,
    /// `after - before`.
    pub change: f64,
    /// Half of the 99 % interval around `change`. `null`: a recording is too short to say.
    pub noise: Option<f64>,
    /// Which way.
    pub verdict: Verdict,
}

/// What values are per.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Per {
    /// A step of the training or serving loop.
    Step,
    /// A second of the GPUs' windows.
    Second,
}

/// Whether a change is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Less waiting, by more than the noise.
    Better,
    /// More waiting, by more than the noise.
    Worse,
    /// No more than noise.
    Same,
    /// Too few parts to know the noise.
    Unclear,
}

/// Compares `after` with `before`, both analysed. `progress` is told of the rows read.
///
/// # Errors
/// A table of either cannot be read.
pub fn compare(after: &Bundle, before: &Bundle, progress: &dyn Fn(u64)) -> Result<Comparison, StoreError> {
    let reports = (load::report(before, progress)?, load::report(after, progress)?);
    let cuts = (Cuts::of(before)?, Cuts::of(after)?);
    let steps = cuts.0.has_steps(&reports.0) && cuts.1.has_steps(&reports.1);
    let per = if steps { Per::Step } else { Per::Second };
    let parts = (
        Parts::collect(before, &reports.0, &cuts.0, per, progress)?,
        Parts::collect(after, &reports.1, &cuts.1, per, progress)?,
    );
    let waiting = change("waiting", "waiting of all causes", &parts.0.all(), &parts.1.all(), true);
    let causes = changes(&parts.0.causes(), &parts.1.causes(), |code| {
        let of = |parts: &Parts| parts.cause(code);
        change(code, wording::cause(code), &of(&parts.0), &of(&parts.1), true)
    });
    let stages = changes(&parts.0.stages(), &parts.1.stages(), |code| {
        let of = |parts: &Parts| parts.stage(code);
        change(code, wording::stage(code), &of(&parts.0), &of(&parts.1), true)
    });
    let kernels = change("kernels", "kernels that ran", &parts.0.kernels(), &parts.1.kernels(), false);
    Ok(Comparison {
        format: "gtrace.comparison",
        version: VERSION,
        doubts: doubts(&reports.0, &reports.1),
        before: side(&reports.0, &parts.0),
        after: side(&reports.1, &parts.1),
        per,
        waiting,
        causes,
        stages,
        kernels,
    })
}

fn changes(before: &BTreeSet<&str>, after: &BTreeSet<&str>, change: impl Fn(&str) -> Change) -> Vec<Change> {
    let mut changes: Vec<Change> = before.union(after).map(|code| change(code)).collect();
    changes.sort_by(|a, b| b.change.abs().total_cmp(&a.change.abs()).then_with(|| a.name.cmp(&b.name)));
    changes
}

fn change(name: &str, says: &str, before: &Samples, after: &Samples, less_is_better: bool) -> Change {
    let (from, to) = (before.mean(), after.mean());
    let change = to - from;
    let noise = noise::half_width(before, after);
    let verdict = match noise {
        None => Verdict::Unclear,
        Some(noise) if change.abs() <= noise || change == 0.0 => Verdict::Same,
        Some(_) if (change < 0.0) == less_is_better => Verdict::Better,
        Some(_) => Verdict::Worse,
    };
    Change { name: name.to_owned(), says: says.to_owned(), before: from, after: to, change, noise, verdict }
}

fn side(report: &Report, parts: &Parts) -> Side {
    Side {
        path: report.recording.path.clone(),
        command: report.recording.command.clone(),
        window_ns: report.totals.window_ns,
        gap_ns: report.totals.gap_ns,
        gaps: report.totals.gaps,
        unknown_ns: report.trust.unknown_ns,
        parts: parts.count(),
        says: report.verdict.says.clone(),
    }
}

/// Share of events lost from which a comparison is doubtful.
const LOST: f64 = 0.001;

fn doubts(before: &Report, after: &Report) -> Vec<String> {
    let mut doubts = Vec::new();
    for (which, report) in [("before", before), ("after", after)] {
        if report.totals.window_ns == 0 {
            doubts.push(format!("the recording {which} has no GPU work to compare"));
        }
        let lost: i64 = report.trust.losses.iter().map(|loss| loss.count).sum();
        if lost as f64 > LOST * (report.trust.events as f64 + lost as f64) {
            doubts.push(format!("of the recording {which}, {lost} events were lost"));
        }
    }
    let gpus = |report: &Report| {
        let mut names: Vec<String> = report.devices.iter().map(|device| device.name.clone()).collect();
        names.sort();
        names
    };
    if gpus(before) != gpus(after) {
        doubts.push(format!(
            "the GPUs differ: {} before, {} after",
            listed(&gpus(before)),
            listed(&gpus(after))
        ));
    }
    if before.recording.host != after.recording.host {
        doubts.push(format!(
            "the hosts differ: {} before, {} after",
            before.recording.host, after.recording.host
        ));
    }
    let program =
        |report: &Report| command_words(&report.recording.command).first().cloned().unwrap_or_default();
    if program(before) != program(after) {
        doubts.push(format!("the programs differ: {} before, {} after", program(before), program(after)));
    }
    if before.recording.simulated_gpu != after.recording.simulated_gpu {
        doubts.push("one of the two GPUs was simulated".into());
    }
    doubts
}

fn listed(names: &[String]) -> String {
    if names.is_empty() { "none".into() } else { names.join(", ") }
}
