//! A comparison for a person.

use super::{Change, Comparison, Per, Side, Verdict};
use crate::event::DurationNs;
use crate::report::findings::percent;
use crate::report::table::{Align, TextTable};
use crate::report::text::style::{Look, Style, plural, time};
use crate::report::text::{Page, command_words, shown};

/// A change of less of all waiting is not listed.
const LISTED_FROM: f64 = 0.001;

/// The comparison as text, ending with a line break.
#[must_use]
pub fn render(comparison: &Comparison, style: Style) -> String {
    let mut page = Page { style, text: String::new() };
    let unit = unit(comparison.per);
    sides(&mut page, comparison);
    page.line("");
    let look = match comparison.waiting.verdict {
        Verdict::Better => Look::Good,
        Verdict::Worse => Look::Bad,
        Verdict::Same | Verdict::Unclear => Look::Strong,
    };
    let answer = crate::report::text::style::wrap(&answer(comparison), page.style.columns, "");
    for line in answer.lines() {
        page.line(&page.style.paint(look, line));
    }
    let more = more(comparison);
    if !more.is_empty() {
        page.paragraph("", &more);
    }
    for doubt in &comparison.doubts {
        let line = format!("! {}", crate::report::escape::escape_line(doubt));
        page.line(&page.style.paint(Look::Careful, &line));
    }
    for (title, verdict) in [
        ("Less waiting", Verdict::Better),
        ("More waiting", Verdict::Worse),
        ("No more than noise", Verdict::Same),
        ("Too short to say", Verdict::Unclear),
    ] {
        list(&mut page, title, &format!("by cause, a {unit}"), of(comparison, verdict));
    }
    list(&mut page, "By what the program was at", &format!("a {unit}"), comparison.stages.iter().collect());
    page.line("");
    page.paragraph("", &how(comparison.per));
    page.text
}

/// What values are per, in a word.
#[must_use]
pub fn unit(per: Per) -> &'static str {
    match per {
        Per::Step => "step",
        Per::Second => "second",
    }
}

/// How to read the numbers.
#[must_use]
pub fn how(per: Per) -> String {
    let values = match per {
        Per::Step => "Values are waiting in each step of the loop.",
        Per::Second => "Values are waiting in each second of the GPUs' windows.",
    };
    format!("{values} {HOW}")
}

const HOW: &str = "± is the noise: both recordings are cut into 24 parts, and 99 of 100 pairs of recordings that do not differ are \
     nearer to each other than that. A recording much shorter than its program's slow changes (warm-up, a cold cache, a \
     checkpoint now and then) does not show them as noise.";

/// The changes with a verdict, without those that nobody would see.
#[must_use]
pub fn of(comparison: &Comparison, verdict: Verdict) -> Vec<&Change> {
    let least = comparison.waiting.before.max(comparison.waiting.after) * LISTED_FROM;
    comparison
        .causes
        .iter()
        .filter(|change| change.verdict == verdict)
        .filter(|change| change.change.abs() >= least || change.before.max(change.after) >= 10.0 * least)
        .collect()
}

/// The answer in a sentence.
#[must_use]
pub fn answer(comparison: &Comparison) -> String {
    let waiting = &comparison.waiting;
    if comparison.before.window_ns == 0 || comparison.after.window_ns == 0 {
        return "There is nothing to compare: a recording has no GPU work.".into();
    }
    let values = format!("{} → {} in each {}", ns(waiting.before), ns(waiting.after), unit(comparison.per));
    let by = noise(waiting);
    match waiting.verdict {
        Verdict::Better => format!("The GPUs wait less: {values} ({by})."),
        Verdict::Worse => format!("The GPUs wait more: {values} ({by})."),
        Verdict::Same => format!("The waiting did not change by more than noise: {values} ({by})."),
        Verdict::Unclear => format!("The recordings are too short to say: {values}."),
    }
}

/// Where most was won, where most was lost, and how much work was done. May be empty.
#[must_use]
pub fn more(comparison: &Comparison) -> String {
    let largest = |verdict| of(comparison, verdict).into_iter().next();
    let mut words = Vec::new();
    if let Some(change) = largest(Verdict::Better) {
        words.push(format!("Most was won where {}: {}.", change.says, signed(change.change)));
    }
    if let Some(change) = largest(Verdict::Worse) {
        words.push(format!("Most was lost where {}: {}.", change.says, signed(change.change)));
    }
    let kernels = &comparison.kernels;
    if comparison.waiting.verdict != Verdict::Unclear {
        let by = kernels.noise.map(|noise| format!(" ±{noise:.1}")).unwrap_or_default();
        words.push(format!(
            "Kernels that ran in each {}: {:.1} → {:.1} ({:+.1}{by}).",
            unit(comparison.per),
            kernels.before,
            kernels.after,
            kernels.change
        ));
    }
    words.join(" ")
}

/// A length that is a mean.
#[must_use]
pub fn ns(value: f64) -> String {
    time(value.round() as i64)
}

/// A change with its sign.
#[must_use]
pub fn signed(value: f64) -> String {
    let sign = if value < 0.0 { '−' } else { '+' };
    format!("{sign}{}", DurationNs(value.abs().round() as i64))
}

/// A change with its noise.
#[must_use]
pub fn noise(change: &Change) -> String {
    match change.noise {
        Some(noise) => format!("{} ±{}", signed(change.change), ns(noise)),
        None => signed(change.change),
    }
}

fn sides(page: &mut Page, comparison: &Comparison) {
    let mut table =
        TextTable::new(&[("", Align::Left), ("", Align::Flexible), ("", Align::Left), ("", Align::List)]);
    for (name, side) in [("before", &comparison.before), ("after", &comparison.after)] {
        table.row(vec![
            name.into(),
            shown(&side.path),
            size(side),
            shown(&command_words(&side.command).join(" ")),
        ]);
    }
    page.table(&table);
}

/// How much there is of a recording, and how much of it was waited.
#[must_use]
pub fn size(side: &Side) -> String {
    format!(
        "waiting {} of {}, {}",
        percent(side.gap_ns, side.window_ns),
        time(side.window_ns),
        plural(side.gaps, "gap")
    )
}

fn list(page: &mut Page, title: &str, note: &str, changes: Vec<&Change>) {
    if changes.is_empty() {
        return;
    }
    let mut table = TextTable::new(&[
        ("change", Align::Right),
        ("noise", Align::Right),
        ("before", Align::Right),
        ("after", Align::Right),
        ("", Align::Left),
        ("", Align::Left),
    ]);
    for change in changes {
        table.row(vec![
            signed(change.change),
            change.noise.map(|noise| format!("±{}", ns(noise))).unwrap_or_default(),
            ns(change.before),
            ns(change.after),
            shown(&change.name),
            if change.says == change.name { String::new() } else { change.says.clone() },
        ]);
    }
    page.heading(title, note);
    page.table(&table);
}
