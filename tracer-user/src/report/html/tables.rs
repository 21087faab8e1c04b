//! The tables below the charts.

use super::data::Timeline;
use super::markup::Markup;
use super::parts::section;
use crate::event::DurationNs;
use crate::report::findings::percent;
use crate::report::model::{Report, Share};
use crate::report::text::style::{bytes, count, time};
use crate::report::text::{shown, thread};
use crate::report::wording;

/// Rows of a table; the JSON has more.
const ROWS: usize = 25;

/// A column: its title, and whether it holds numbers.
type Column = (&'static str, bool);

/// A cell.
enum Cell {
    Text(String),
    Code(String),
    /// The number of a gap, with a button that shows it if the page knows it.
    Gap(i64, bool),
}

/// One table, at most [`ROWS`] rows of it; `more` says what was left out.
fn table(
    page: &mut Markup,
    caption: &str,
    note: &str,
    columns: &[Column],
    rows: Vec<Vec<Cell>>,
    more: Option<String>,
) {
    if rows.is_empty() {
        return;
    }
    let class = |numeric: bool| if numeric { "n" } else { "" };
    page.with(
        "div",
        &[("class", "scroll"), ("role", "region"), ("aria-label", caption), ("tabindex", "0")],
        |page| {
            page.with("table", &[], |page| {
                page.with("caption", &[], |page| {
                    page.leaf("b", &[], caption);
                    if !note.is_empty() {
                        page.leaf("span", &[("class", "faint")], &format!(" {note}"));
                    }
                });
                page.with("thead", &[], |page| {
                    page.with("tr", &[], |page| {
                        for (title, numeric) in columns {
                            page.leaf("th", &[("scope", "col"), ("class", class(*numeric))], title);
                        }
                    });
                });
                page.with("tbody", &[], |page| {
                    for row in rows {
                        page.with("tr", &[], |page| {
                            for (cell, (_, numeric)) in row.into_iter().zip(columns) {
                                page.with("td", &[("class", class(*numeric))], |page| write_cell(page, cell));
                            }
                        });
                    }
                });
            });
        },
    );
    if let Some(more) = more {
        page.leaf("p", &[("class", "faint")], &more);
    }
}

fn write_cell(page: &mut Markup, cell: Cell) {
    match cell {
        Cell::Text(text) => page.text(&text),
        Cell::Code(text) => page.leaf("code", &[], &text),
        Cell::Gap(id, false) => page.text(&id.to_string()),
        Cell::Gap(id, true) => {
            let id = id.to_string();
            let label = format!("Show gap {id}");
            page.leaf(
                "button",
                &[("type", "button"), ("class", "link"), ("data-gap", &id), ("aria-label", &label)],
                &id,
            );
        }
    }
}

pub fn write(page: &mut Markup, report: &Report, timeline: &Timeline) {
    section(page, "details", "Details", "", |page| {
        worst(page, report, timeline);
        stages(page, report);
        threads(page, report);
        shares(page, report, "Waiting by file", &report.objects.files);
        shares(page, report, "Waiting by block device", &report.objects.block_devices);
        shares(page, report, "Waiting by network peer", &report.objects.peers);
        enablers(page, report);
        disks(page, report);
    });
}

fn text(text: impl Into<String>) -> Cell {
    Cell::Text(text.into())
}

fn worst(page: &mut Markup, report: &Report, timeline: &Timeline) {
    let rows = report.worst_gaps.iter().map(|gap| {
        let mut place = gap.thread.as_ref().map(thread).unwrap_or_default();
        if let Some(object) = &gap.object {
            if !place.is_empty() {
                place.push_str(": ");
            }
            place.push_str(&shown(object));
        }
        vec![
            Cell::Gap(gap.gap_id, timeline.gaps.iter().any(|known| known.id == gap.gap_id)),
            text(gap.device.to_string()),
            text(format!("{:.3} s", (gap.start_ns - report.recording.started_ns) as f64 / 1e9)),
            text(time(gap.ns)),
            Cell::Code(shown(&gap.cause)),
            text(percent(gap.cause_ns, gap.ns)),
            text(place),
        ]
    });
    let columns = [
        ("gap", true),
        ("GPU", true),
        ("at", true),
        ("length", true),
        ("mostly", false),
        ("of it", true),
        ("in", false),
    ];
    table(page, "Longest gaps", "a number shows the gap in the timeline", &columns, rows.collect(), None);
}

fn stages(page: &mut Markup, report: &Report) {
    let rows = report.stages.iter().take(ROWS).map(|stage| {
        let causes: Vec<String> = stage
            .causes
            .iter()
            .take(3)
            .map(|cause| format!("{} {}", shown(&cause.name), percent(cause.ns, stage.ns)))
            .collect();
        vec![
            text(time(stage.ns)),
            text(percent(stage.ns, report.totals.gap_ns)),
            text(percent(stage.ns, report.totals.window_ns)),
            text(shown(wording::stage(&stage.stage))),
            text(causes.join(", ")),
        ]
    });
    let columns =
        [("time", true), ("of waiting", true), ("of window", true), ("while", false), ("mostly", false)];
    let note = format!("against {} of computing", time(report.totals.compute_ns));
    table(page, "Waiting by what the program was at", &note, &columns, rows.collect(), None);
}

fn threads(page: &mut Markup, report: &Report) {
    let length = report.recording.ended_ns - report.recording.started_ns;
    let rows = report.threads.iter().take(ROWS).map(|row| {
        let causes: Vec<String> = row
            .causes
            .iter()
            .take(3)
            .map(|cause| format!("{} {}", shown(&cause.name), time(cause.ns)))
            .collect();
        vec![
            text(time(row.ns)),
            text(percent(row.ns, report.totals.gap_ns)),
            text(thread(&row.thread)),
            text(row.on_cpu_ns.map(|ns| percent(ns, length)).unwrap_or_default()),
            text(causes.join(", ")),
        ]
    });
    let columns =
        [("time", true), ("of waiting", true), ("thread", false), ("on a CPU", true), ("mostly", false)];
    let more = rest(report.threads.len(), report.threads.iter().skip(ROWS).map(|row| row.ns).sum());
    let note = "on a CPU: share of the whole recording";
    table(page, "Waiting by the thread at the end of the chain", note, &columns, rows.collect(), more);
}

fn shares(page: &mut Markup, report: &Report, title: &str, list: &[Share]) {
    let rows = list.iter().take(ROWS).map(|row| {
        vec![text(time(row.ns)), text(percent(row.ns, report.totals.gap_ns)), text(shown(&row.name))]
    });
    let more = rest(list.len(), list.iter().skip(ROWS).map(|row| row.ns).sum());
    table(page, title, "", &[("time", true), ("of waiting", true), ("name", false)], rows.collect(), more);
}

fn rest(rows: usize, ns: i64) -> Option<String> {
    (rows > ROWS).then(|| format!("{} more with {}", count((rows - ROWS) as u64), time(ns)))
}

fn enablers(page: &mut Markup, report: &Report) {
    let rows = report.enablers.iter().take(ROWS).map(|enabler| {
        vec![
            text(time(enabler.ns)),
            text(percent(enabler.ns, report.totals.gap_ns)),
            text(count(enabler.gaps)),
            Cell::Code(shown(&enabler.call)),
        ]
    });
    let columns = [("time", true), ("of waiting", true), ("gaps", true), ("after", false)];
    let caption = "Synchronising calls that had drained the launch queue";
    table(page, caption, "without them work could have been queued", &columns, rows.collect(), None);
}

fn disks(page: &mut Markup, report: &Report) {
    let length = report.recording.ended_ns - report.recording.started_ns;
    let rows = report.disks.iter().take(ROWS).map(|disk| {
        let per_second = (disk.read_bytes + disk.written_bytes) as f64 / (disk.busy_ns.max(1) as f64 / 1e9);
        vec![
            text(shown(&disk.device)),
            text(count(disk.reads)),
            text(bytes(disk.read_bytes)),
            text(bytes(disk.read_bytes / disk.reads.max(1) as i64)),
            text(count(disk.writes)),
            text(bytes(disk.written_bytes)),
            text(percent(disk.busy_ns, length)),
            text(format!("{}/s", bytes(per_second as i64))),
            text(DurationNs(disk.median_ns).to_string()),
            text(DurationNs(disk.p99_ns).to_string()),
        ]
    });
    let columns = [
        ("disk", false),
        ("reads", true),
        ("read", true),
        ("mean", true),
        ("writes", true),
        ("written", true),
        ("busy", true),
        ("while busy", true),
        ("median", true),
        ("99th", true),
    ];
    let note = "whoever waited; median and 99th percentile from issue to completion";
    table(page, "What the disks did", note, &columns, rows.collect(), None);
}
