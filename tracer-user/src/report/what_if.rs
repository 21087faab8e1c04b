//! What the recording would be like without a cause.

use serde::Serialize;

use super::steps::Steps;
use crate::store::schema;

/// The recording without one cause, played again on its recorded dependencies.
#[derive(Clone, Debug, Serialize)]
pub struct WhatIf {
    /// The cause.
    pub cause: String,
    /// On which threads. `null`: those without a known role, or the device's own time.
    pub role: Option<String>,
    /// Gap time that it has.
    pub gap_ns: i64,
    /// The part of the recording that was played.
    pub played_ns: i64,
    /// How long that would take without this cause.
    pub alone_ns: i64,
    /// How long without this cause and all those before it in the list.
    pub together_ns: i64,
    /// What a step takes on average, where there are steps.
    pub step_ns: Option<i64>,
    /// What it would take without this cause.
    pub step_alone_ns: Option<i64>,
    /// What would hold it up most then.
    pub next_cause: Option<String>,
    /// On threads of this role.
    pub next_role: Option<String>,
}

impl WhatIf {
    /// From a row and the steps of the GPU that has most of them.
    #[must_use]
    pub fn new(row: &schema::WhatIf, steps: &[Steps]) -> Self {
        let played_ns = row.end_ns.0 - row.start_ns.0;
        let text = |text: &Option<crate::event::Text>| text.as_ref().map(|text| text.as_str().to_owned());
        let step_ns = steps
            .iter()
            .max_by_key(|steps| steps.count)
            .filter(|steps| steps.count > 0)
            .map(|steps| steps.span_ns / steps.count as i64);
        let scaled = |step: i64| (step as f64 * row.alone_ns.0 as f64 / played_ns.max(1) as f64) as i64;
        Self {
            cause: row.cause.as_str().to_owned(),
            role: text(&row.role),
            gap_ns: row.gap_ns.0,
            played_ns,
            alone_ns: row.alone_ns.0,
            together_ns: row.together_ns.0,
            step_ns,
            step_alone_ns: step_ns.map(scaled),
            next_cause: text(&row.next_cause),
            next_role: text(&row.next_role),
        }
    }

    /// How many times as fast it would be.
    #[must_use]
    pub fn gain(&self) -> f64 {
        self.played_ns as f64 / self.alone_ns.max(1) as f64
    }
}
