//! The ledger: why the GPUs waited, as a chart whose rows open.

use super::colors::Colors;
use super::markup::Markup;
use super::parts::{self, Part};
use crate::report::escape::name;
use crate::report::findings::{percent, share};
use crate::report::model::{Cause, Report};
use crate::report::text::style::{count, plural, time};
use crate::report::text::{shown, thread};
use crate::report::wording::{self, is_prefix};

/// Rows of the lists inside of a cause.
const LISTED: usize = 12;
/// Causes that are listed one by one.
const CAUSES: usize = 40;
/// Causes that are seen at once if others are folded away.
const SEEN: usize = 4;
/// A cause with less of the waiting is folded away with the others of that kind.
const SEEN_FROM: f64 = 0.005;

pub fn write(page: &mut Markup, report: &Report, colors: &Colors) {
    let totals = &report.totals;
    if totals.gap_ns == 0 {
        return;
    }
    let note =
        format!("{} in {}; the causes add up to it exactly", time(totals.gap_ns), plural(totals.gaps, "gap"));
    parts::section(page, "causes", "Why they waited", &note, |page| {
        let whole: Vec<Part> =
            report.causes.iter().map(|cause| Part { color: colors.of(&cause.cause), ns: cause.ns }).collect();
        parts::bar(page, &whole, totals.gap_ns, "tall");
        let listed = &report.causes[..report.causes.len().min(CAUSES)];
        let large = listed.iter().take_while(|cause| share(cause.ns, totals.gap_ns) >= SEEN_FROM).count();
        let seen = large.max(SEEN).min(listed.len());
        // One row alone would be hidden behind one row.
        let seen = if listed.len() - seen <= 1 { listed.len() } else { seen };
        page.with("ol", &[("class", "ledger")], |page| {
            rows(page, report, &listed[..seen], colors);
            if seen < listed.len() {
                page.with("li", &[], |page| small(page, report, &listed[seen..], colors));
            }
        });
        if report.causes.len() > CAUSES {
            let rest: i64 = report.causes.iter().skip(CAUSES).map(|cause| cause.ns).sum();
            let more = plural((report.causes.len() - CAUSES) as u64, "smaller cause");
            page.leaf("p", &[("class", "faint")], &format!("{more} with {} not listed", time(rest)));
        }
    });
}

fn rows(page: &mut Markup, report: &Report, causes: &[Cause], colors: &Colors) {
    let longest = report.causes.first().map_or(1, |cause| cause.ns);
    for cause in causes {
        page.with("li", &[], |page| row(page, report, cause, longest, colors));
    }
}

fn small(page: &mut Markup, report: &Report, causes: &[Cause], colors: &Colors) {
    let sum: i64 = causes.iter().map(|cause| cause.ns).sum();
    page.with("details", &[("class", "small")], |page| {
        page.with("summary", &[], |page| {
            page.leaf("span", &[("class", "faint")], &plural(causes.len() as u64, "smaller cause"));
            page.leaf("span", &[("class", "n")], &time(sum));
            page.leaf("span", &[("class", "n share")], &percent(sum, report.totals.gap_ns));
        });
        page.with("ol", &[("class", "ledger")], |page| rows(page, report, causes, colors));
    });
}

fn row(page: &mut Markup, report: &Report, cause: &Cause, longest: i64, colors: &Colors) {
    let color = colors.of(&cause.cause);
    page.with("details", &[], |page| {
        page.with("summary", &[], |page| {
            page.with("span", &[("class", "what")], |page| {
                parts::swatch(page, color);
                page.leaf("span", &[], &wording::because(&cause.cause));
            });
            page.leaf("code", &[], &shown(&cause.cause));
            parts::bar(page, &[Part { color, ns: cause.ns }], longest, "");
            page.leaf("span", &[("class", "n")], &time(cause.ns));
            page.leaf("span", &[("class", "n share")], &percent(cause.ns, report.totals.gap_ns));
            let place = place(cause);
            if !place.is_empty() {
                page.leaf("span", &[("class", "place faint")], &place);
            }
        });
        page.with("div", &[("class", "inside")], |page| inside(page, report, cause));
    });
}

/// The thread and the object that most of it has.
fn place(cause: &Cause) -> String {
    let mut words = Vec::new();
    if let Some(first) = cause.threads.first().filter(|_| !is_prefix("gpu", &cause.cause)) {
        words.push(format!("in {}", thread(&first.thread)));
    }
    if let Some(object) = cause.objects.first() {
        let lead = if is_prefix("host.runq", &cause.cause) { "the CPU was held by " } else { "" };
        let more = if cause.object_count > 1 {
            format!(" and {} more", count(cause.object_count - 1))
        } else {
            String::new()
        };
        words.push(format!("{lead}{}{more}", name(&object.name, 80)));
    }
    words.join(": ")
}

fn inside(page: &mut Markup, report: &Report, cause: &Cause) {
    page.leaf(
        "p",
        &[],
        &format!(
            "{} in {}, {} each on average: {} of the GPUs' time. {} of it rests on edges recorded as they happened.",
            time(cause.ns),
            plural(cause.segments, "piece"),
            time(cause.ns / cause.segments.max(1) as i64),
            percent(cause.ns, report.totals.window_ns),
            percent(cause.exact_ns, cause.ns),
        ),
    );
    page.with("div", &[("class", "columns")], |page| {
        let stages = cause.stages.iter().map(|stage| (wording::stage(&stage.name).to_owned(), stage.ns));
        list(page, "While", &stages.collect::<Vec<_>>(), cause.ns, 0);
        let threads = cause.threads.iter().map(|share| (thread(&share.thread), share.ns));
        list(page, "In", &threads.collect::<Vec<_>>(), cause.ns, 0);
        let objects: Vec<(String, i64)> =
            cause.objects.iter().map(|share| (shown(&share.name), share.ns)).collect();
        let unlisted = cause.object_count.saturating_sub(objects.len() as u64);
        list(page, "On", &objects, cause.ns, unlisted);
    });
}

fn list(page: &mut Markup, title: &str, rows: &[(String, i64)], whole: i64, unlisted: u64) {
    if rows.is_empty() {
        return;
    }
    page.with("div", &[], |page| {
        page.leaf("h3", &[], title);
        page.with("ul", &[("class", "shares")], |page| {
            for (words, ns) in rows.iter().take(LISTED) {
                page.with("li", &[], |page| {
                    page.leaf("span", &[("class", "name")], words);
                    page.leaf("span", &[("class", "n")], &time(*ns));
                    page.leaf("span", &[("class", "n share")], &percent(*ns, whole));
                });
            }
        });
        let more = rows.len().saturating_sub(LISTED) as u64 + unlisted;
        if more > 0 {
            page.leaf("p", &[("class", "faint")], &format!("{} more", count(more)));
        }
    });
}
