//! What came of the demo: what its report found, and what recording cost.

use std::collections::HashMap;
use std::fmt::Write as _;

use super::training::Pace;
use crate::event::GapId;
use crate::report::escape::escape_line;
use crate::report::model::{Cause, Report};
use crate::report::text;
use crate::report::wording::is_prefix;
use crate::store::schema::GapSegment;
use crate::store::{Bundle, StoreError};

/// What was planted first.
const READING: &str = "storage.read";
/// The part of it in which the disk served the read itself.
const DISK: &str = "storage.read.device";
/// How many causes are shown.
const SHOWN: usize = 5;

/// The loop's speed without gtrace, recorded, and without it again.
#[derive(Clone, Copy, Debug)]
pub struct Paces {
    /// Before the recording.
    pub before: Pace,
    /// While it was recorded.
    pub recorded: Pace,
    /// After it.
    pub after: Pace,
}

impl Paces {
    /// Steps per second without gtrace.
    fn plain(&self) -> f64 {
        let (one, other) = (self.before, self.after);
        (one.steps + other.steps) as f64 / (one.seconds + other.seconds)
    }
}

/// The gap in which a disk was read longest.
pub fn typical_gap(bundle: &Bundle) -> Result<Option<GapId>, StoreError> {
    let mut reading: HashMap<GapId, i64> = HashMap::new();
    for segment in bundle.scan::<GapSegment>()? {
        let segment = segment?;
        if segment.cause.as_str() == DISK {
            *reading.entry(segment.gap_id).or_default() += (segment.end_ns - segment.start_ns).0;
        }
    }
    // Of equal ones the first: the same recording always shows the same gap.
    Ok(reading.into_iter().max_by_key(|&(gap, ns)| (ns, std::cmp::Reverse(gap))).map(|(gap, _)| gap))
}

/// The last lines of the demo.
pub fn render(report: &Report, paces: &Paces, gap: Option<GapId>) -> String {
    let mut text = String::from("\nWhat came of the demo\n");
    let total = report.totals.gap_ns.max(1) as f64;
    for cause in report.causes.iter().take(SHOWN) {
        let share = cause.ns as f64 / total * 100.0;
        let _ = writeln!(text, "  {share:5.1} %  {:<24} {}", cause.cause, who(cause));
    }
    let reading: i64 =
        report.causes.iter().filter(|cause| is_prefix(READING, &cause.cause)).map(|cause| cause.ns).sum();
    let window = report.totals.window_ns.max(1) as f64;
    let devices: Vec<&str> = report.objects.block_devices.iter().map(|share| share.name.as_str()).collect();
    let _ = writeln!(
        text,
        "  reading took {:.1} % of the waiting, {:.1} % of the GPU's time; block devices: {}",
        reading as f64 / total * 100.0,
        reading as f64 / window * 100.0,
        if devices.is_empty() { "none".to_owned() } else { escape_line(&devices.join(", ")) },
    );
    if let Some(gap) = gap {
        let _ = writeln!(text, "  the gap in which the disk was read longest is {gap}, explained above");
    }
    let lost: i64 = report.trust.losses.iter().map(|loss| loss.count).sum();
    let unknown = report.trust.unknown_ns as f64 / total * 100.0;
    let _ = writeln!(text, "  events lost: {lost}; of unknown cause: {unknown:.2} % of the waiting");
    let _ = writeln!(
        text,
        "  steps per second: {:.2} recorded; {:.2} before and {:.2} after without gtrace: {:.3} times their mean",
        paces.recorded.rate(),
        paces.before.rate(),
        paces.after.rate(),
        paces.recorded.rate() / paces.plain(),
    );
    text
}

/// The thread and the object that a cause has most.
fn who(cause: &Cause) -> String {
    let mut parts = Vec::new();
    if let Some(share) = cause.threads.first() {
        parts.push(text::thread(&share.thread));
    }
    if let Some(function) = cause.functions.first() {
        let share = function.samples as f64 / cause.samples.max(1) as f64 * 100.0;
        parts.push(format!("{}, {share:.0} % of {} samples", text::shown(&function.name), cause.samples));
    } else if let Some(share) = cause.objects.first() {
        let others = match cause.object_count {
            0 | 1 => String::new(),
            count => format!(" and {} more", count - 1),
        };
        parts.push(text::shown(&share.name) + &others);
    }
    parts.join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_speed_without_gtrace_is_that_of_both_stretches() {
        let pace = |steps, seconds| Pace { steps, seconds };
        let paces = Paces { before: pace(30, 1.0), recorded: pace(100, 4.0), after: pace(30, 3.0) };
        assert!((paces.plain() - 15.0).abs() < 1e-9);
        assert!((paces.recorded.rate() / paces.plain() - 25.0 / 15.0).abs() < 1e-9);
    }
}
