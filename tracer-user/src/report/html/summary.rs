//! The head of the page: what was recorded, the answer, and how much of the time was waited.

use super::markup::Markup;
use crate::report::advice;
use crate::report::findings::{percent, share};
use crate::report::model::Report;
use crate::report::text::style::{count, plural, time};
use crate::report::text::{command_words, shown, what_was_recorded};

/// The command that was recorded, as one line.
pub fn command(report: &Report) -> String {
    command_words(&report.recording.command).join(" ")
}

pub fn header(page: &mut Markup, report: &Report) {
    page.with("header", &[("class", "top")], |page| {
        page.with("div", &[("class", "wide bar")], |page| {
            page.with("p", &[("class", "brand")], |page| {
                page.leaf("b", &[], "gtrace");
                page.text(" report");
            });
            page.with("nav", &[("aria-label", "Sections")], |page| {
                let mut sections = Vec::new();
                if report.totals.window_ns > 0 {
                    sections.extend([("#gpus", "GPUs"), ("#causes", "Causes"), ("#timeline", "Timeline")]);
                    if !report.steps.is_empty() {
                        sections.push(("#steps", "Steps"));
                    }
                    sections.extend([("#change", "What to change"), ("#details", "Details")]);
                }
                sections.push(("#trust", "Trust"));
                for (target, words) in sections {
                    page.leaf("a", &[("href", target)], words);
                }
            });
            page.leaf(
                "button",
                &[("type", "button"), ("id", "theme"), ("class", "quiet"), ("hidden", "")],
                "Dark",
            );
        });
    });
}

pub fn verdict(page: &mut Markup, report: &Report) {
    let recording = &report.recording;
    page.with("section", &[("class", "verdict"), ("aria-labelledby", "answer")], |page| {
        page.leaf("p", &[("class", "command")], &shown(&command(report)));
        page.leaf("p", &[("class", "faint")], &what_was_recorded(&report.recording));
        if recording.simulated_gpu {
            page.leaf(
                "p",
                &[("class", "careful")],
                "The GPU was a simulated one: its kernels took the time they were told to. The host side is real.",
            );
        }
        let says = crate::report::escape::escape_line(&report.verdict.says);
        page.leaf("h1", &[("id", "answer"), ("class", report.verdict.state)], &says);
        if report.totals.window_ns > 0 {
            page.with("dl", &[("class", "numbers")], |page| numbers(page, report));
        }
        first_step(page, report);
    });
}

fn numbers(page: &mut Markup, report: &Report) {
    let totals = &report.totals;
    let data = report.stages.iter().find(|stage| stage.stage == "data_loading").map_or(0, |stage| stage.ns);
    number(page, "computing", &percent(totals.compute_ns, totals.window_ns), &time(totals.compute_ns));
    number(page, "waiting", &percent(totals.gap_ns, totals.window_ns), &time(totals.gap_ns));
    number(
        page,
        "gaps",
        &count(totals.gaps),
        &format!("{} on average", time(totals.gap_ns / totals.gaps.max(1) as i64)),
    );
    if share(data, totals.window_ns) >= 0.05 {
        let ratio = data as f64 / totals.compute_ns.max(1) as f64;
        number(page, "waited for data", &format!("{ratio:.2} s"), "for each second of computing");
    }
    let unknown = percent(report.trust.unknown_ns, totals.gap_ns);
    let lost: i64 = report.trust.losses.iter().map(|loss| loss.count).sum();
    let losses = if lost == 0 {
        "no event was lost".to_owned()
    } else {
        format!("{} lost", plural(lost.max(0) as u64, "event"))
    };
    number(page, "of the waiting unknown", &unknown, &losses);
}

fn number(page: &mut Markup, what: &str, value: &str, note: &str) {
    page.with("div", &[], |page| {
        page.leaf("dt", &[], what);
        page.leaf("dd", &[("class", "value")], value);
        page.leaf("dd", &[("class", "faint")], note);
    });
}

fn first_step(page: &mut Markup, report: &Report) {
    let unknown = report.trust.unknown.first().filter(|_| report.verdict.state == "unknown");
    let (change, check) = match (unknown, report.advice.first()) {
        (Some(largest), _) => (advice::for_unknown(&largest.name), None),
        (None, Some(first)) => {
            (first.change.first().map_or("", String::as_str), Some(first.disproof.as_str()))
        }
        (None, None) => return,
    };
    page.with("dl", &[("class", "first")], |page| {
        page.leaf("dt", &[], "Try first");
        page.leaf("dd", &[], change);
        if let Some(check) = check {
            page.leaf("dt", &[], "Check it");
            page.leaf("dd", &[], check);
        }
    });
}

pub fn footer(page: &mut Markup, report: &Report) {
    let path = shown(&report.recording.path);
    page.with("footer", &[("class", "wide")], |page| {
        page.with("p", &[], |page| {
            page.text(concat!("Made by gtrace ", env!("CARGO_PKG_VERSION"), " from "));
            page.leaf("code", &[], &path);
            page.text(&format!(
                ", recorded by gtrace {}. The tables in it can be asked with any tool that reads Parquet.",
                shown(&report.recording.gtrace_version)
            ));
        });
    });
}
