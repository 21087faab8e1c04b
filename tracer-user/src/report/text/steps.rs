//! Steps, and what they would take without a cause.

use std::fmt::Write as _;

use super::style::{Look, plural, time};
use super::{Page, shown};
use crate::report::findings::{percent, share};
use crate::report::model::Report;
use crate::report::steps::Steps;
use crate::report::table::{Align, TextTable};
use crate::report::wording;

/// One line a GPU for the first screen: how long a step takes, and what of it is waiting.
pub fn summary(page: &mut Page, steps: &Steps) {
    let mean = steps.span_ns / (steps.count as i64).max(1);
    let mut line = format!(
        "Steps: {} a second, {} each ({} computing, {} waiting",
        per_second(steps.per_second),
        time(mean),
        time(steps.compute_ns),
        time(steps.gap_ns),
    );
    if let Some(data) = steps.stages.iter().find(|stage| stage.name == "data_loading") {
        let _ = write!(line, ", {} of it for data", time(data.ns));
    }
    line.push(')');
    page.line(&line);
}

fn per_second(rate: f64) -> String {
    match rate {
        rate if rate >= 100.0 => format!("{rate:.0}"),
        rate if rate >= 10.0 => format!("{rate:.1}"),
        rate => format!("{rate:.2}"),
    }
}

/// The section about steps.
pub fn details(page: &mut Page, report: &Report) {
    for steps in &report.steps {
        let note = match steps.found_by.as_str() {
            "range" => "as the program marked them",
            _ => "where the GPU's work repeats",
        };
        page.heading(&format!("Steps of GPU {}: {}", steps.device, steps.count), note);
        page.line(&format!(
            "  {} each; half of them take {} or less, 19 of 20 {} or less, the longest {}",
            plural(steps.ops.max(0) as u64, "op"),
            time(steps.median_ns),
            time(steps.p95_ns),
            time(steps.longest_ns),
        ));
        let mean = steps.compute_ns + steps.gap_ns;
        let stages = steps.stages.iter().map(|stage| {
            format!("{} {} ({})", shown(wording::stage(&stage.name)), time(stage.ns), percent(stage.ns, mean))
        });
        let computing = format!("computing {} ({})", time(steps.compute_ns), percent(steps.compute_ns, mean));
        let parts: Vec<String> = std::iter::once(computing).chain(stages).collect();
        page.paragraph("  on average: ", &parts.join(", "));
        for line in unlike(steps) {
            page.paragraph("  ", &line);
        }
    }
}

/// The steps that are unlike the others, and the trend.
#[must_use]
pub fn unlike(steps: &Steps) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(first) = steps.first_ns {
        lines.push(format!("the first one took {}", time(first)));
    }
    if let Some(periodic) = &steps.periodic {
        let stage = periodic.stage.as_deref().map(wording::stage).filter(|stage| *stage != "other");
        let stage = stage.map(|stage| format!(", most of what they take longer while {}", shown(stage)));
        lines.push(format!(
            "one in {} is slow: {} of {}{}",
            periodic.every,
            plural(periodic.count, "step"),
            time(periodic.median_ns),
            stage.unwrap_or_default()
        ));
    }
    if steps.slow > 0 {
        lines.push(format!("{} slower than the others without a pattern", plural(steps.slow, "step was")));
    }
    if let Some(drift) = steps.drift {
        let (direction, ratio) = if drift > 1.0 { ("slower", drift) } else { ("faster", 1.0 / drift) };
        lines.push(format!(
            "they got {direction}: the last third {ratio:.2} times as {} as the first",
            if drift > 1.0 { "long" } else { "fast" }
        ));
    }
    lines
}

/// The section about what would be without a cause.
pub fn what_if(page: &mut Page, report: &Report) {
    let worth: Vec<_> = report
        .what_if
        .iter()
        .filter(|what| share(what.played_ns - what.alone_ns, what.played_ns) >= 0.01)
        .collect();
    let Some(first) = worth.first() else {
        if !report.what_if.is_empty() {
            page.heading("If a cause were gone", "");
            page.line("  none of them alone would make it faster by 1 %: what is behind each takes as long");
        }
        return;
    };
    let played =
        format!("{} played again on its recorded dependencies, without the cause", time(first.played_ns));
    page.heading("If a cause were gone", &played);
    let mut table = TextTable::new(&[
        ("without", Align::Left),
        ("a step takes", Align::Right),
        ("faster", Align::Right),
        ("with those above", Align::Right),
        ("then it waits most", Align::List),
    ]);
    for what in worth {
        let step = match (what.step_ns, what.step_alone_ns) {
            (Some(now), Some(then)) => format!("{} not {}", time(then), time(now)),
            _ => "-".to_owned(),
        };
        let together = what.played_ns as f64 / what.together_ns.max(1) as f64;
        table.row(vec![
            with_role(&what.cause, what.role.as_deref()),
            step,
            format!("{:.2}x", what.gain()),
            format!("{together:.2}x"),
            what.next_cause.as_deref().map_or_else(
                || "for nothing".to_owned(),
                |cause| with_role(cause, what.next_role.as_deref()),
            ),
        ]);
    }
    page.table(&table);
    page.line(&page.style.paint(
        Look::Faint,
        "  (a prediction, not checked by doing it: the cause taken out on all those threads at all times; who waits for a\n   CPU is taken as recorded)",
    ));
}

/// A cause and what its threads are for.
#[must_use]
pub fn with_role(cause: &str, role: Option<&str>) -> String {
    match role {
        Some(role) => format!("{} ({})", shown(cause), shown(wording::role(role))),
        None => shown(cause),
    }
}
