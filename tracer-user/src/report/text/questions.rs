//! The answers to the usual questions.

use super::Page;
use super::style::time;
use crate::report::escape::escape_line;
use crate::report::findings::percent;
use crate::report::model::Report;

/// The section.
pub fn write(page: &mut Page, report: &Report) {
    if report.answers.is_empty() {
        return;
    }
    page.heading("The usual questions", "each with the tables and views that its answer rests on");
    for answer in &report.answers {
        page.paragraph(&format!("  {}? ", capital(answer.question)), &escape_line(&answer.says));
        // Time outside the windows is no part of them.
        let share = if answer.ns <= report.totals.window_ns {
            format!(", {}", percent(answer.ns, report.totals.window_ns))
        } else {
            String::new()
        };
        let mut rest = format!("{} of GPU time{share}; {}", time(answer.ns), answer.evidence);
        if answer.exact_ns > 0 && answer.exact_ns < answer.ns {
            rest = format!("{rest}; {} of it exact", percent(answer.exact_ns, answer.ns));
        }
        page.paragraph("     ", &rest);
    }
}

fn capital(question: &str) -> String {
    let mut characters = question.chars();
    characters
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().collect::<String>() + characters.as_str())
}
