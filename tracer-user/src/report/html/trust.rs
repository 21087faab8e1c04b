//! How far to trust the report: the lines of the terminal's, as a list.

use super::markup::Markup;
use super::parts::section;
use crate::report::model::Report;
use crate::report::text::style::Style;
use crate::report::text::trust_lines;

pub fn write(page: &mut Markup, report: &Report) {
    section(page, "trust", "How far to trust this", "", |page| {
        page.with("ul", &[("class", "trust")], |page| {
            // One line each, however long.
            for line in trust_lines(report, Style { colors: false, columns: usize::MAX }) {
                let class = if line.trim_start().starts_with('!') { "bad" } else { "" };
                let inner = if line.starts_with("      ") { "inner" } else { class };
                page.leaf("li", &[("class", inner)], line.trim_start_matches([' ', '-', '!']));
            }
        });
    });
}
