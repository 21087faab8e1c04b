//! The first screen: is the GPU computing or waiting, for what, and what to change first.

use std::fmt::Write as _;

use super::style::{Look, count, plural, time};
use super::{Page, shown, thread};
use crate::report::advice;
use crate::report::findings::{percent, share};
use crate::report::model::{Cause, Device, Recording, Report};
use crate::report::table::{Align, TextTable};
use crate::report::wording::{self, is_prefix};

/// Causes on the first screen; the others are summed up in one line.
const CAUSES_SHOWN: usize = 6;
/// A cause with less of the gap time is summed up with the others.
const SHOWN_FROM: f64 = 0.005;
/// Width of the bar of a device.
const BAR: usize = 40;

pub fn write(page: &mut Page, report: &Report) {
    header(page, report);
    verdict(page, report);
    devices(page, report);
    if report.totals.gap_ns > 0 {
        causes(page, report);
        interpreter_lock(page, report);
        late_ranks(page, report);
        first_step(page, report);
    }
}

fn header(page: &mut Page, report: &Report) {
    let recording = &report.recording;
    let command = shown(&command_words(&recording.command).join(" "));
    page.line(&page.style.paint(Look::Strong, &command));
    let line = what_was_recorded(recording);
    page.line(&page.style.paint(Look::Faint, &line));
    if recording.simulated_gpu {
        let note = "The GPU was a simulated one: its kernels took the time they were told to. The host side is real.";
        page.line(&page.style.paint(Look::Careful, note));
    }
}

/// How long, of what and where was recorded, as one line.
#[must_use]
pub fn what_was_recorded(recording: &Recording) -> String {
    let length = kept(recording);
    match recording.mode.as_str() {
        "import" if recording.host.is_empty() => format!("{length} imported from another tool's trace"),
        "import" => {
            format!("{length} imported from another tool's trace, taken on {}", shown(&recording.host))
        }
        mode => {
            let what = if mode == "attach" { "recorded while it ran" } else { "recorded from its start" };
            let cpus = plural(u64::from(recording.cpus), "CPU");
            format!(
                "{length} {what} on {}, Linux {}, {cpus}",
                shown(&recording.host),
                shown(&recording.kernel)
            )
        }
    }
}

/// How long the recording is; with how much went before it and was not kept.
fn kept(recording: &Recording) -> String {
    let length = time(recording.ended_ns - recording.started_ns);
    if recording.began_ns >= recording.started_ns {
        return length;
    }
    format!("{length} (the last of {})", time(recording.ended_ns - recording.began_ns))
}

/// The command without an `env NAME=VALUE …` before it.
#[must_use]
pub fn command_words(command: &[String]) -> &[String] {
    let Some(("env", rest)) = command.split_first().map(|(first, rest)| (first.as_str(), rest)) else {
        return command;
    };
    let assignments = rest.iter().take_while(|word| word.contains('=') && !word.starts_with('-')).count();
    if assignments == 0 || assignments == rest.len() { command } else { &rest[assignments..] }
}

fn verdict(page: &mut Page, report: &Report) {
    let look = match report.verdict.state {
        "healthy" => Look::Good,
        "waiting" => Look::Strong,
        _ => Look::Careful,
    };
    page.line("");
    let text = super::style::wrap(&shown_long(&report.verdict.says), page.style.columns, "");
    for line in text.lines() {
        page.line(&page.style.paint(look, line));
    }
    let data = report.stages.iter().find(|stage| stage.stage == "data_loading").map_or(0, |stage| stage.ns);
    // Steps say the same per step.
    if report.steps.is_empty() && share(data, report.totals.window_ns) >= 0.05 {
        let ratio = data as f64 / report.totals.compute_ns.max(1) as f64;
        page.line(&format!("For each second of computing it waited {ratio:.2} s for data."));
    }
}

/// A verdict holds words of ours and at most one sentence from `meta.json`.
fn shown_long(text: &str) -> String {
    crate::report::escape::escape_line(text)
}

fn devices(page: &mut Page, report: &Report) {
    for device in &report.devices {
        let window = device.window_ns();
        page.line("");
        let mut line = format!(
            "GPU {} {}  computing {}",
            device.device,
            page.style.paint(Look::Strong, &shown(&device.name)),
            page.style.paint(Look::Good, &percent(device.compute_ns, window)),
        );
        let kinds = [
            ("idle", device.idle_ns),
            ("only copying", device.exposed_copy_ns),
            ("only communicating", device.exposed_comm_ns),
        ];
        for (words, ns) in kinds.into_iter().filter(|(_, ns)| *ns > 0) {
            let _ = write!(line, ", {words} {}", percent(ns, window));
        }
        let _ = write!(line, " of the {} from its first work to its last", time(window));
        page.line(&line);
        page.line(&bar(page, device));
        if let Some(steps) = report.steps.iter().find(|steps| steps.device == device.device) {
            super::steps::summary(page, steps);
        }
    }
}

/// Computing, copying or communicating, idle: as parts of a line.
fn bar(page: &Page, device: &Device) -> String {
    let columns = |ns: i64| (share(ns, device.window_ns()) * BAR as f64).round() as usize;
    let compute = columns(device.compute_ns).min(BAR);
    let alone = columns(device.exposed_copy_ns + device.exposed_comm_ns).min(BAR - compute);
    format!(
        "{}{}{}",
        page.style.paint(Look::Good, &"█".repeat(compute)),
        page.style.paint(Look::Careful, &"▒".repeat(alone)),
        page.style.paint(Look::Faint, &"░".repeat(BAR - compute - alone)),
    )
}

fn causes(page: &mut Page, report: &Report) {
    let gap_ns = report.totals.gap_ns;
    let title = format!("Why it waited: {} in {}", time(gap_ns), plural(report.totals.gaps, "gap"));
    page.heading(&title, "");
    let (shown_causes, rest): (Vec<_>, Vec<_>) = report
        .causes
        .iter()
        .enumerate()
        .partition(|(index, cause)| *index < CAUSES_SHOWN && share(cause.ns, gap_ns) >= SHOWN_FROM);
    let mut table =
        TextTable::new(&[("", Align::Right), ("", Align::Right), ("", Align::Left), ("", Align::Left)]);
    for (_, cause) in &shown_causes {
        table.row(vec![
            time(cause.ns),
            percent(cause.ns, gap_ns),
            wording::because(&cause.cause),
            shown(&cause.cause),
        ]);
    }
    if !rest.is_empty() {
        let ns = rest.iter().map(|(_, cause)| cause.ns).sum();
        let words = format!("for {} (below)", plural(rest.len() as u64, "smaller cause"));
        table.row(vec![time(ns), percent(ns, gap_ns), words, String::new()]);
    }
    let lines = table.lines(page.style.columns.saturating_sub(2));
    let indent = 2 + lines.first().map_or(0, |line| line.find(" %").map_or(0, |percent| percent + 4));
    for (index, line) in lines.iter().enumerate() {
        page.line(&format!("  {line}"));
        let place = shown_causes.get(index).map(|(_, cause)| where_most(cause)).unwrap_or_default();
        if !place.is_empty() {
            let line = format!("{}{place}", " ".repeat(indent));
            page.line(&page.style.paint(Look::Faint, &line));
        }
    }
}

/// The lock that the causes above may lie behind.
fn interpreter_lock(page: &mut Page, report: &Report) {
    let Some(gil) = &report.gil else { return };
    let mut line = format!(
        "{} of the waiting went through Python's interpreter lock (GIL)",
        percent(gil.ns, report.totals.gap_ns)
    );
    if let Some(first) = gil.holders.first() {
        let _ = write!(line, ", {} of that held by {}", percent(first.ns, gil.ns), thread(&first.thread));
    }
    page.line("");
    page.paragraph("", &line);
}

/// The ranks that the causes above may lie behind.
fn late_ranks(page: &mut Page, report: &Report) {
    for rank in report.late_ranks.iter().filter(|rank| share(rank.ns, report.totals.gap_ns) >= SHOWN_FROM) {
        let name = shown(&rank.rank);
        let mut line = format!(
            "{name} came last to {} of {}",
            percent(rank.last as i64, rank.collectives as i64),
            plural(rank.collectives as u64, "collective")
        );
        let _ = write!(
            line,
            ", {} after the first; other GPUs waited {} for it",
            time(rank.behind_ns),
            time(rank.ns)
        );
        if let Some(cause) = rank.causes.first() {
            let because = wording::because(&cause.name);
            let _ = write!(line, ", {} of that {because} there", percent(cause.ns, rank.ns));
        }
        page.line("");
        page.paragraph("", &line);
    }
}

/// The thread and the object that most of a cause's time has.
fn where_most(cause: &Cause) -> String {
    let mut place = String::new();
    if let Some(first) = cause.threads.first().filter(|_| !is_prefix("gpu", &cause.cause)) {
        let _ = write!(place, "in {}", thread(&first.thread));
    }
    if let Some(function) = cause.functions.first() {
        let separator = if place.is_empty() { "" } else { ": " };
        let name = crate::report::escape::name(&function.name, 64);
        let share = percent(function.samples as i64, cause.samples as i64);
        let _ = write!(place, "{separator}{name}, {share} of {}", plural(cause.samples, "sample"));
    } else if let Some(object) = cause.objects.first() {
        let separator = match place.as_str() {
            "" => "",
            _ if is_prefix("host.runq", &cause.cause) => ", the CPU was held by ",
            _ => ": ",
        };
        let _ = write!(place, "{separator}{}", crate::report::escape::name(&object.name, 64));
        if cause.object_count > 1 {
            let _ = write!(place, " and {} more", count(cause.object_count - 1));
        }
    }
    place
}

fn first_step(page: &mut Page, report: &Report) {
    page.line("");
    if report.verdict.state == "unknown"
        && let Some(largest) = report.trust.unknown.first()
    {
        page.paragraph("Try first:  ", advice::for_unknown(&largest.name));
    } else if let Some(first) = report.advice.first() {
        page.paragraph("Try first:  ", first.change.first().map_or("", String::as_str));
        page.paragraph("Check it:   ", &first.disproof);
    }
    if let Some(gap) = report.worst_gaps.first() {
        let command = format!("gtrace explain {} --gap {}", shown(&report.recording.path), gap.gap_id);
        page.line(&format!("Look at:    {command}  (the longest gap, {})", time(gap.ns)));
    }
    let trust = &report.trust;
    let lost: i64 = trust.losses.iter().map(|loss| loss.count).sum();
    let mut line = format!("{} of the waiting is unknown", percent(trust.unknown_ns, report.totals.gap_ns));
    if lost == 0 {
        line.push_str(", no event was lost");
    } else {
        let _ = write!(line, ", {} lost", plural(lost.max(0) as u64, "event"));
    }
    let look = if trust.unknown_ns == 0 && lost == 0 { Look::Faint } else { Look::Careful };
    page.line(&format!("Trust:      {}", page.style.paint(look, &line)));
}
