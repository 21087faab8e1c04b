//! The answer in a sentence, and which advice to give.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::advice;
use super::model::{Advice, Cause, Device, Enabler, Gil, Recording, Totals, Verdict};
use super::names::Names;
use super::text::style::plural;
use super::wording::{self, is_prefix};
use crate::event::DurationNs;

/// Below this share of waiting there is nothing to repair.
const HEALTHY_BELOW: f64 = 0.05;
/// Share of events lost or refused from which a recording without much waiting says nothing.
const TOO_MUCH_LOST: f64 = 0.05;
/// From this share of the gap time on, unknown time makes the rest doubtful.
const DOUBTFUL_FROM: f64 = 0.5;
/// A cause with less of the gap time gets no advice.
const WORTH_CHANGING: f64 = 0.05;
/// A cause with less of the window gets no advice either: little can be won.
const WORTH_WINNING: f64 = 0.005;
/// For how many causes a person reads advice.
const MOST_ADVICE: usize = 3;

/// A part of a whole, 0 of nothing.
#[must_use]
pub fn share(part: i64, whole: i64) -> f64 {
    if whole <= 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// A share in percent with as many digits as it needs: `0.04 %`, `3.1 %`, `62 %`, and never 0 or 100 for what is not.
#[must_use]
pub fn percent(part: i64, whole: i64) -> String {
    let value = share(part, whole) * 100.0;
    match value {
        _ if part == 0 || whole <= 0 => "0 %".into(),
        _ if part == whole => "100 %".into(),
        v if v < 0.1 => "<0.1 %".into(),
        v if v > 99.9 && v < 100.0 => ">99.9 %".into(),
        v => format!("{v:.1} %"),
    }
}

/// The answer. `lost`: events lost or refused, of how many in all.
#[must_use]
pub fn verdict(
    devices: &[Device],
    totals: &Totals,
    causes: &[Cause],
    gpu_missing: Option<&str>,
    (lost, all): (i64, i64),
) -> Verdict {
    let verdict = verdict_of_what_is_there(devices, totals, causes, gpu_missing);
    // What is not there cannot be well.
    let says_well = matches!(verdict.state, "healthy" | "no_gpu_work") && gpu_missing.is_none();
    if !says_well || share(lost, all) < TOO_MUCH_LOST {
        return verdict;
    }
    let lost = percent(lost, all);
    Verdict {
        state: "unknown",
        says: format!("Nothing can be said: {lost} of the events were lost or refused (see below)."),
    }
}

fn verdict_of_what_is_there(
    devices: &[Device],
    totals: &Totals,
    causes: &[Cause],
    gpu_missing: Option<&str>,
) -> Verdict {
    if totals.window_ns == 0 {
        let says = match gpu_missing {
            Some(why) => format!("Nothing is known of the GPU: {why}."),
            None if devices.is_empty() => "No GPU work was seen.".into(),
            None => "There was too little GPU work to say anything.".into(),
        };
        return Verdict { state: "no_gpu_work", says };
    }
    let subject =
        if devices.len() == 1 { "The GPU".to_owned() } else { format!("The {} GPUs", devices.len()) };
    let waiting = percent(totals.gap_ns, totals.window_ns);
    let computing = percent(totals.compute_ns, totals.window_ns);
    let unknown: i64 =
        causes.iter().filter(|cause| is_prefix("unknown", &cause.cause)).map(|cause| cause.ns).sum();
    let Some(largest) = causes.first().filter(|_| totals.gap_ns > 0) else {
        return Verdict {
            state: "healthy",
            says: format!("Nothing is wrong: {} computed all the time.", lower(&subject)),
        };
    };
    if share(totals.gap_ns, totals.window_ns) < HEALTHY_BELOW {
        let says = format!(
            "Nothing is wrong: {} computed {computing} of the time. The largest of the small waits: {}.",
            lower(&subject),
            largest.says
        );
        return Verdict { state: "healthy", says };
    }
    if share(unknown, totals.gap_ns) >= DOUBTFUL_FROM {
        let says = format!(
            "{subject} waited {waiting} of the time, and for {} of that the cause is unknown (see below why).",
            percent(unknown, totals.gap_ns)
        );
        return Verdict { state: "unknown", says };
    }
    if is_prefix("app", &largest.cause) {
        let says = format!("{subject} waited {waiting} of the time, mostly because {}.", largest.says);
        return Verdict { state: "waiting", says };
    }
    let known = causes.iter().find(|cause| !is_prefix("unknown", &cause.cause)).unwrap_or(largest);
    let mut says = format!(
        "{subject} waited {waiting} of the time, {} of that because {}",
        percent(known.ns, totals.gap_ns),
        known.says
    );
    if let Some(stage) = known.stages.first().filter(|stage| stage.name != "other") {
        let _ = write!(says, " ({})", wording::stage(&stage.name));
    }
    says.push('.');
    Verdict { state: "waiting", says }
}

fn lower(subject: &str) -> String {
    subject.replacen('T', "t", 1)
}

/// What to change, the most to win first.
#[must_use]
pub fn advice(
    causes: &[Cause],
    gil: Option<&Gil>,
    enablers: &[Enabler],
    totals: &Totals,
    names: &Names,
    recording: &Recording,
) -> Vec<Advice> {
    let worth =
        |ns: i64| share(ns, totals.gap_ns) >= WORTH_CHANGING && share(ns, totals.window_ns) >= WORTH_WINNING;
    let mut list: Vec<Advice> = Vec::new();
    for cause in causes.iter().filter(|cause| worth(cause.ns)) {
        let stage = cause.stages.first().map_or("other", |stage| stage.name.as_str());
        let Some(remedy) = advice::for_cause(&cause.cause, stage) else { continue };
        // Causes with one remedy share it.
        if let Some(same) = list.iter_mut().find(|advice| advice.disproof == remedy.disproof) {
            same.ns += cause.ns;
            let at = if stage == "other" { String::new() } else { format!(" ({})", wording::stage(stage)) };
            let _ = write!(same.found, "; {} more because {}{at}", DurationNs(cause.ns), cause.says);
            continue;
        }
        list.push(Advice {
            cause: cause.cause.clone(),
            stage: stage.to_owned(),
            ns: cause.ns,
            found: found(cause, stage, names, recording),
            change: remedy.change.iter().map(ToString::to_string).collect(),
            disproof: remedy.disproof.into(),
        });
    }
    list.truncate(MOST_ADVICE);
    // What the holder did is a cause of its own; that others had to wait for it is the lock's doing.
    if let Some(gil) =
        gil.filter(|gil| worth(gil.ns) && !list.iter().any(|advice| advice.cause == "host.gil"))
        && let Some(remedy) = advice::for_cause("host.gil", "other")
    {
        list.push(Advice {
            cause: "host.gil".into(),
            stage: "other".into(),
            ns: gil.ns,
            found: through_gil(gil),
            change: remedy.change.iter().map(ToString::to_string).collect(),
            disproof: remedy.disproof.into(),
        });
    }
    // A synchronisation is worth naming where the host's own work, which it uncovered, is most of the waiting.
    if let Some(enabler) = enablers.first().filter(|enabler| worth(enabler.ns)) {
        list.push(Advice {
            cause: "enabler".into(),
            stage: "other".into(),
            ns: enabler.ns,
            found: format!(
                "{} had drained the launch queue before {}; without it, what the host has ready by then could have \
                 been queued already",
                enabler.call,
                plural(enabler.gaps, "gap")
            ),
            change: advice::ENABLER.change.iter().map(ToString::to_string).collect(),
            disproof: advice::ENABLER.disproof.into(),
        });
    }
    list
}

/// Who held the interpreter lock while others on the way to the GPU wanted it.
fn through_gil(gil: &Gil) -> String {
    let mut found =
        "it waited for Python's interpreter lock (GIL), whatever its holder did meanwhile".to_owned();
    if let Some(first) = gil.holders.first() {
        let thread = &first.thread;
        let share = percent(first.ns, gil.ns);
        let _ =
            write!(found, "; {share} of that while {} {}/{} held it", thread.name, thread.pid, thread.tid);
    }
    found
}

fn found(cause: &Cause, stage: &str, names: &Names, recording: &Recording) -> String {
    let mut found = cause.says.clone();
    if stage != "other" {
        let _ = write!(found, ", {}", wording::stage(stage));
    }
    let workers = names.processes_with_role("dataloader_worker");
    if stage == "data_loading" && workers > 0 {
        let plural = if workers == 1 { "" } else { "s" };
        let _ = write!(found, "; {workers} loader worker{plural} seen on {} CPUs", recording.cpus);
    }
    if let Some(function) = cause.functions.first() {
        let share = percent(function.samples as i64, cause.samples as i64);
        let _ =
            write!(found, "; {share} of {} there were in {}", plural(cause.samples, "sample"), function.name);
        if function.mostly != function.name {
            let _ = write!(found, " (mostly {})", function.mostly);
        }
    }
    if is_prefix("host.runq", &cause.cause) {
        let holders = programs(cause);
        if !holders.is_empty() {
            let _ = write!(found, "; the CPU was held by {}", holders.join(", "));
        }
    } else if cause.object_count > 1 && (is_prefix("storage", &cause.cause) || is_prefix("net", &cause.cause))
    {
        let largest = cause.objects.first().map_or(0, |object| object.ns);
        let _ = write!(
            found,
            "; {} files or peers, the largest {} of {}",
            cause.object_count,
            DurationNs(largest),
            DurationNs(cause.ns)
        );
    }
    found
}

/// The programs that held the CPU, with their shares: objects are `pid/name`.
fn programs(cause: &Cause) -> Vec<String> {
    let mut by_name: BTreeMap<&str, i64> = BTreeMap::new();
    for object in &cause.objects {
        let name = object.name.split_once('/').map_or(object.name.as_str(), |(_, name)| name);
        *by_name.entry(name).or_default() += object.ns;
    }
    let mut by_name: Vec<(&str, i64)> = by_name.into_iter().collect();
    by_name.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    by_name.iter().take(3).map(|(name, ns)| format!("{name} ({})", percent(*ns, cause.ns))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_and_large_shares_are_not_rounded_away() {
        assert_eq!(percent(0, 100), "0 %");
        assert_eq!(percent(1, 1_000_000), "<0.1 %");
        assert_eq!(percent(999_999, 1_000_000), ">99.9 %");
        assert_eq!(percent(1, 3), "33.3 %");
        assert_eq!(percent(7, 7), "100 %");
        assert_eq!(percent(7, 0), "0 %");
    }
}
