//! How far to trust the report, said plainly.

use std::fmt::Write as _;

use super::style::{Look, count, plural, time};
use super::{Page, shown};
use crate::report::advice;
use crate::report::findings::percent;
use crate::report::model::{Report, Trust};
use crate::report::wording;

/// Losses that are listed; the JSON has all.
const LOSSES: usize = 8;
/// Changes of what is collected that are listed of a process.
const MODES: usize = 6;

pub fn write(page: &mut Page, report: &Report) {
    let trust = &report.trust;
    page.heading("How far to trust this", "");
    errors(page, report);
    if report.totals.gap_ns > 0 {
        certainty(page, report, trust);
    }
    losses(page, trust);
    gpu_side(page, report, trust);
    for probe in &trust.missing_probes {
        let why = probe.reason.as_deref().map_or_else(|| "no reason given".into(), shown);
        let unknowable = probe.unknowable.iter().map(|code| shown(code)).collect::<Vec<_>>().join(", ");
        let without = if unknowable.is_empty() {
            String::new()
        } else {
            format!("; unknowable without it: {unknowable}")
        };
        page.paragraph("  - ", &format!("probe {} is missing ({why}){without}", shown(&probe.name)));
    }
    cost(page, report, trust);
}

fn errors(page: &mut Page, report: &Report) {
    if report.trust.uncovered_gaps > 0 {
        let line = format!(
            "  ! {} not covered exactly by their causes: this is an error of gtrace, please report it",
            plural(report.trust.uncovered_gaps, "gap")
        );
        page.line(&page.style.paint(Look::Bad, &line));
    } else if report.totals.gaps > 0 {
        page.line("  - every gap is covered exactly by its causes, to the nanosecond");
    }
    if let Some(how) = &report.trust.unclean_end {
        page.line(&page.style.paint(Look::Careful, &format!("  - the recording has no clean end: {how}")));
    }
}

fn certainty(page: &mut Page, report: &Report, trust: &Trust) {
    let whole = report.totals.gap_ns;
    page.line(&format!(
        "  - of the waiting, {} rests on edges recorded as they happened, {} is inferred, {} is unknown",
        percent(trust.exact_ns, whole),
        percent(trust.inferred_ns, whole),
        percent(trust.unknown_ns, whole)
    ));
    for share in &trust.unknown {
        let words = wording::cause(&share.name);
        let remedy = advice::for_unknown(&share.name);
        page.paragraph("      ", &format!("{} {words} ({}): {remedy}", time(share.ns), shown(&share.name)));
    }
}

fn losses(page: &mut Page, trust: &Trust) {
    let lost: i64 = trust.losses.iter().map(|loss| loss.count).sum();
    if lost == 0 {
        page.line(&format!("  - no event was lost of {}", count(trust.events)));
        return;
    }
    let all = trust.events as i64 + lost;
    let line = format!(
        "  - {} of {} events were lost ({})",
        count(lost as u64),
        count(all as u64),
        percent(lost, all)
    );
    page.line(&page.style.paint(Look::Careful, &line));
    for loss in trust.losses.iter().take(LOSSES) {
        let during = if loss.ns > 0 { format!(", within {}", time(loss.ns)) } else { String::new() };
        page.line(&format!(
            "      {} {}: {}{during}",
            count(loss.count.max(0) as u64),
            shown(&loss.source),
            shown(&loss.reason)
        ));
    }
}

fn gpu_side(page: &mut Page, report: &Report, trust: &Trust) {
    if let Some(why) = &trust.gpu_missing {
        let line = format!("there is no GPU side: {}", crate::report::escape::escape_line(why));
        page.paragraph("  - ", &line);
    }
    for refused in &trust.gpu_refused {
        let reason = crate::report::escape::escape_line(&refused.reason);
        page.paragraph("  - ", &format!("nothing of the GPU work of process {}: {reason}", refused.pid));
    }
    for holder in &trust.idle_holders {
        let line = format!(
            "process {} ({}) holds a GPU ({}, {} MB of its memory) but sent it no work in this recording",
            holder.pid,
            shown(&holder.comm),
            shown(&holder.gpu),
            holder.memory_bytes >> 20
        );
        page.paragraph("  - ", &page.style.paint(Look::Careful, &line));
    }
    if !trust.gpu_bounds.is_empty() {
        let pids: Vec<String> = trust.gpu_bounds.iter().map(ToString::to_string).collect();
        let line = format!(
            "the GPU side of process {} is made of the driver's calls alone: gaps are bounds (the device idled at least so \
             long, and may have idled more), and all its devices are one",
            pids.join(", ")
        );
        page.paragraph("  - ", &page.style.paint(Look::Careful, &line));
    }
    for modes in &trust.gpu_modes {
        let told = modes.changes.iter().take(MODES).map(|change| {
            let why =
                if change.why.is_empty() { String::new() } else { format!(" ({})", shown(&change.why)) };
            format!("from {} {}{why}", time(change.since_ns), shown(&change.mode))
        });
        let more = modes.changes.len().saturating_sub(MODES);
        let more =
            if more > 0 { format!("; and {} more", plural(more as u64, "change")) } else { String::new() };
        let line = format!(
            "GPU work of process {} was recorded {}{more}",
            modes.pid,
            told.collect::<Vec<_>>().join("; ")
        );
        page.paragraph("  - ", &line);
    }
    if report.totals.window_ns > 0 {
        page.line(&match trust.clock_residual_ns {
            0 => "  - GPU times were taken on the host's clock: nothing was converted".to_owned(),
            residual => format!("  - GPU times are right to {} on the host's clock", time(residual)),
        });
    }
}

fn cost(page: &mut Page, report: &Report, trust: &Trust) {
    // Also of what was not kept.
    let length = report.recording.ended_ns - report.recording.began_ns;
    let mut line = format!(
        "  - the recorder used {} of CPU time, {} of one CPU",
        time(trust.recorder_cpu_ns),
        percent(trust.recorder_cpu_ns, length)
    );
    if report.totals.gap_ns > 0 {
        let share = percent(trust.tool_overhead_ns, report.totals.gap_ns);
        let _ = write!(line, "; recording itself caused {share} of the waiting");
    }
    page.line(&line);
    if trust.stolen_cpu_ns > 0 {
        let cpus = i64::from(report.recording.cpus.max(1));
        let words = format!(
            "the hypervisor took {} of the machine's CPU time ({}): who ran then reads as computing",
            percent(trust.stolen_cpu_ns, length.saturating_mul(cpus)),
            time(trust.stolen_cpu_ns)
        );
        page.paragraph("  - ", &words);
    }
}
