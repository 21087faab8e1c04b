//! The report for a person: the answer on one screen, the rest below it.

mod details;
mod questions;
pub mod steps;
pub mod style;
mod summary;
mod trust;

use std::fmt::Write as _;

use super::escape::{LONGEST_NAME, name};
use super::model::{Report, ThreadName};
use super::wording;
use style::{Look, Style};

pub use summary::{command_words, what_was_recorded};

/// The report as text, ending with a line break.
#[must_use]
pub fn render(report: &Report, style: Style) -> String {
    let mut page = Page { style, text: String::new() };
    summary::write(&mut page, report);
    if report.totals.window_ns > 0 {
        details::write(&mut page, report);
    }
    trust::write(&mut page, report);
    page.text
}

/// What the report says of how far to trust it, line by line, without its heading.
#[must_use]
pub fn trust_lines(report: &Report, style: Style) -> Vec<String> {
    let mut page = Page { style, text: String::new() };
    trust::write(&mut page, report);
    page.text.lines().skip(2).map(ToOwned::to_owned).collect()
}

/// Text that grows by lines.
pub struct Page {
    /// How it looks.
    pub style: Style,
    /// What is written so far.
    pub text: String,
}

impl Page {
    /// Adds a line.
    pub fn line(&mut self, line: &str) {
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    /// Adds an empty line and a heading.
    pub fn heading(&mut self, title: &str, note: &str) {
        let mut line = self.style.paint(Look::Heading, title);
        if !note.is_empty() {
            line.push_str("  ");
            line.push_str(&self.style.paint(Look::Faint, note));
        }
        self.line("");
        self.line(&line);
    }

    /// Adds a table, indented, the header faint.
    pub fn table(&mut self, table: &super::table::TextTable) {
        for (index, line) in table.lines(self.style.columns.saturating_sub(2)).into_iter().enumerate() {
            let look = index == 0 && table.has_header();
            let line = if look { self.style.paint(Look::Faint, &line) } else { line };
            self.line(&format!("  {line}"));
        }
    }

    /// Adds a paragraph that starts with `lead` and is broken to the width.
    pub fn paragraph(&mut self, lead: &str, text: &str) {
        let indent = " ".repeat(super::escape::width(lead));
        let room = self.style.columns.saturating_sub(indent.len());
        let text = style::wrap(text, room, "");
        for (index, line) in text.lines().enumerate() {
            let lead = if index == 0 { lead } else { &indent };
            self.line(&format!("{lead}{line}"));
        }
    }
}

/// A name from outside, escaped and bounded.
#[must_use]
pub fn shown(text: &str) -> String {
    name(text, LONGEST_NAME)
}

/// A thread with its role: `python3 4121 (loader worker)`, `pt_pin 4100/4127 (pinning thread)`.
#[must_use]
pub fn thread(thread: &ThreadName) -> String {
    let mut words = match thread.name.as_str() {
        "" => "thread".to_owned(),
        known => shown(known),
    };
    words.push(' ');
    words.push_str(&thread.pid.to_string());
    if thread.tid != thread.pid {
        words.push('/');
        words.push_str(&thread.tid.to_string());
    }
    if let Some(role) = &thread.role {
        let _ = write!(words, " ({})", shown(wording::role(role)));
    }
    words
}
