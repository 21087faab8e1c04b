//! Steps, and what they would take without a cause.

use super::markup::Markup;
use super::parts::{self, Part};
use super::step_chart::StepCharts;
use crate::report::findings::{percent, share};
use crate::report::model::Report;
use crate::report::steps::Steps;
use crate::report::text::shown;
use crate::report::text::steps::{unlike, with_role};
use crate::report::text::style::{plural, time};
use crate::report::what_if::WhatIf;
use crate::report::wording;

/// Writes both sections, each only if there is something to say.
pub fn write(page: &mut Markup, report: &Report, charts: &StepCharts) {
    if !report.steps.is_empty() {
        parts::section(
            page,
            "steps",
            "Steps",
            "from the end of the work of one to the end of the next",
            |page| {
                report.steps.iter().for_each(|steps| one(page, steps, charts));
            },
        );
    }
    let worth: Vec<&WhatIf> = report
        .what_if
        .iter()
        .filter(|what| share(what.played_ns - what.alone_ns, what.played_ns) >= 0.01)
        .collect();
    if let Some(first) = worth.first() {
        let note = format!(
            "{} played again on its recorded dependencies; not checked by doing it",
            time(first.played_ns)
        );
        parts::section(page, "what-if", "If a cause were gone", &note, |page| {
            page.with("ul", &[], |page| worth.iter().for_each(|what| page.leaf("li", &[], &without(what))));
        });
    }
}

fn one(page: &mut Markup, steps: &Steps, charts: &StepCharts) {
    let mean = steps.compute_ns + steps.gap_ns;
    page.with("div", &[("class", "gpu")], |page| {
        page.with("h3", &[], |page| {
            page.text(&format!("GPU {} ", steps.device));
            let words = format!("{}, {:.2} a second", plural(steps.count, "step"), steps.per_second);
            page.leaf("span", &[("class", "faint")], &words);
        });
        let bar = [Part { color: "busy", ns: steps.compute_ns }, Part { color: "idle", ns: steps.gap_ns }];
        parts::bar(page, &bar, mean, "tall");
        charts.draw(page, steps.device);
        let stages = steps.stages.iter().map(|stage| {
            format!("{} {} ({})", shown(wording::stage(&stage.name)), time(stage.ns), percent(stage.ns, mean))
        });
        let computing = format!("computing {} ({})", time(steps.compute_ns), percent(steps.compute_ns, mean));
        let words: Vec<String> = std::iter::once(computing).chain(stages).collect();
        page.leaf("p", &[], &format!("on average {}", words.join(", ")));
        let spread = format!(
            "half of them take {} or less, 19 of 20 {} or less, the longest {}",
            time(steps.median_ns),
            time(steps.p95_ns),
            time(steps.longest_ns)
        );
        page.leaf("p", &[("class", "faint")], &spread);
        for line in unlike(steps) {
            page.leaf("p", &[("class", "faint")], &line);
        }
    });
}

fn without(what: &WhatIf) -> String {
    let cause = with_role(&what.cause, what.role.as_deref());
    let step = match (what.step_ns, what.step_alone_ns) {
        (Some(now), Some(then)) => format!(": a step would take {} instead of {}", time(then), time(now)),
        _ => String::new(),
    };
    let next = match &what.next_cause {
        Some(next) => format!("; then it would wait most for {}", with_role(next, what.next_role.as_deref())),
        None => String::new(),
    };
    format!("without {cause} {:.2} times as fast{step}{next}", what.gain())
}
