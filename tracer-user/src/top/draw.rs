//! A frame as lines for a terminal.

use std::fmt::Write as _;

use super::Frame;
use crate::attribute::gaps::DeviceTime;
use crate::event::{DurationNs, MonoNs};
use crate::report::escape::name;
use crate::report::findings::{percent, share};
use crate::report::model::Cause;
use crate::report::table::{Align, TextTable};
use crate::report::text::style::{Look, Style, count, plural, time};
use crate::report::text::{Page, shown, thread};
use crate::report::wording::{self, is_prefix};

/// Width of a device's bar.
const BAR: usize = 40;
/// A GPU that did nothing for so long is said to stand still.
const STANDS_STILL_NS: i64 = 1_000_000_000;

/// The frame in at most `lines` lines.
#[must_use]
pub fn lines(frame: &Frame, what: &str, style: Style, lines: usize) -> Vec<String> {
    let mut page = Page { style, text: String::new() };
    head(&mut page, frame, what);
    for device in &frame.devices {
        one(&mut page, frame, device);
    }
    if frame.devices.is_empty() {
        let why = frame.gpu_missing.as_deref().map(crate::report::escape::escape_line);
        page.line("");
        page.line(&why.unwrap_or_else(|| "no GPU work was seen in these seconds".into()));
    }
    let mut drawn: Vec<String> = page.text.lines().map(ToOwned::to_owned).collect();
    drawn.extend(causes(frame, style, lines.saturating_sub(drawn.len() + 1)));
    drawn.truncate(lines);
    drawn
}

fn head(page: &mut Page, frame: &Frame, what: &str) {
    let mut line = page.style.paint(Look::Strong, what);
    let _ = write!(
        line,
        "  the last seconds in {}, made in {:.0} ms",
        plural(frame.rows, "event"),
        frame.took.as_secs_f64() * 1e3
    );
    if frame.lost > 0 {
        let lost = format!("  {} lost", plural(frame.lost, "event"));
        line.push_str(&page.style.paint(Look::Careful, &lost));
    }
    page.line(&line);
}

fn one(page: &mut Page, frame: &Frame, device: &DeviceTime) {
    let window = device.window.length().0;
    let known = frame.names.iter().find(|(number, _)| *number == device.device.0);
    let model = known.map(|(_, model)| shown(model)).unwrap_or_default();
    let mut line = format!(
        "GPU {} {model}  computing {}",
        device.device,
        page.style.paint(Look::Good, &percent(device.busy.0, window))
    );
    let kinds = [
        ("idle", device.idle),
        ("only copying", device.exposed_copy),
        ("only communicating", device.exposed_comm),
    ];
    for (words, ns) in kinds.into_iter().filter(|(_, ns)| ns.0 > 0) {
        let _ = write!(line, ", {words} {}", percent(ns.0, window));
    }
    let _ = write!(line, " of {}", time(window));
    page.line("");
    page.line(&line);
    page.line(&bar(page.style, device));
    if let Some(still) = stands_still(device, frame.until) {
        let line = format!("has done nothing for {still}: why is known when it goes on");
        page.line(&page.style.paint(Look::Careful, &line));
    }
}

fn stands_still(device: &DeviceTime, until: MonoNs) -> Option<DurationNs> {
    let still = until - device.window.end;
    (still.0 >= STANDS_STILL_NS).then_some(still)
}

fn bar(style: Style, device: &DeviceTime) -> String {
    let columns = |ns: DurationNs| (share(ns.0, device.window.length().0) * BAR as f64).round() as usize;
    let compute = columns(device.busy).min(BAR);
    let alone = columns(device.exposed_copy + device.exposed_comm).min(BAR - compute);
    format!(
        "{}{}{}",
        style.paint(Look::Good, &"█".repeat(compute)),
        style.paint(Look::Careful, &"▒".repeat(alone)),
        style.paint(Look::Faint, &"░".repeat(BAR - compute - alone)),
    )
}

fn causes(frame: &Frame, style: Style, room: usize) -> Vec<String> {
    if frame.causes.is_empty() || room < 4 {
        return Vec::new();
    }
    let (gap, window) = (frame.gap_ns(), frame.window_ns());
    let mut table = TextTable::new(&[
        ("a second", Align::Right),
        ("of waiting", Align::Right),
        ("cause", Align::Left),
        ("", Align::Left),
        ("in", Align::Flexible),
    ]);
    // One line for the heading, one for the columns, one for the rest.
    let most = room - 3;
    for cause in frame.causes.iter().take(most) {
        let per_second = share(cause.ns, window) * 1e9;
        let says = if style.columns >= 150 { wording::cause(&cause.cause) } else { "" };
        table.row(vec![
            time(per_second as i64),
            percent(cause.ns, gap),
            shown(&cause.cause),
            says.to_owned(),
            place(cause),
        ]);
    }
    let mut drawn = vec![String::new()];
    let title = format!("Why they waited: {} in {} gaps", time(gap), count(frame.gaps));
    drawn.push(style.paint(Look::Heading, &title));
    drawn.extend(table.lines(style.columns.saturating_sub(2)).into_iter().map(|line| format!("  {line}")));
    if frame.causes.len() > most {
        let rest: i64 = frame.causes.iter().skip(most).map(|cause| cause.ns).sum();
        drawn.push(format!(
            "  and {} in {}",
            time(rest),
            plural((frame.causes.len() - most) as u64, "smaller cause")
        ));
    }
    drawn
}

/// The thread and the object that most of it has.
fn place(cause: &Cause) -> String {
    let first = cause.threads.first().filter(|_| !is_prefix("gpu", &cause.cause));
    let mut words = first.map(|first| thread(&first.thread)).unwrap_or_default();
    if let Some(object) = cause.objects.first() {
        if !words.is_empty() {
            words.push_str(": ");
        }
        words.push_str(&name(&object.name, 80));
    }
    words
}
