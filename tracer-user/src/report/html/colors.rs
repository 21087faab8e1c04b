//! Which colour a cause has, everywhere on the page.

use crate::report::model::Report;
use crate::report::wording::is_prefix;

/// Colours that single causes get; the others share one.
const COLORS: usize = 8;

/// The causes of a report, each with its colour: a class of the style sheet.
#[derive(Debug)]
pub struct Colors {
    codes: Vec<String>,
}

impl Colors {
    /// Colours go by time; what is unknown keeps its own.
    #[must_use]
    pub fn new(report: &Report) -> Self {
        let known = report.causes.iter().filter(|cause| !is_prefix("unknown", &cause.cause));
        Self { codes: known.take(COLORS).map(|cause| cause.cause.clone()).collect() }
    }

    /// `c1` … `c8`, `cu` for unknown time, `c0` for all others.
    #[must_use]
    pub fn of(&self, code: &str) -> &'static str {
        if is_prefix("unknown", code) {
            return "cu";
        }
        let classes = ["c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8"];
        let rank = self.codes.iter().position(|known| known == code);
        rank.and_then(|rank| classes.get(rank)).copied().unwrap_or("c0")
    }
}
