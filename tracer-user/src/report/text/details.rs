//! Everything below the first screen but the trust section.

use super::style::{Look, bytes, count, plural, time};
use super::{Page, shown, thread};
use crate::event::DurationNs;
use crate::report::findings::percent;
use crate::report::model::{Report, Share};
use crate::report::table::{Align, TextTable};
use crate::report::wording;

/// Rows of a table of details; the JSON has all.
const ROWS: usize = 10;

pub fn write(page: &mut Page, report: &Report) {
    advice(page, report);
    super::questions::write(page, report);
    super::steps::what_if(page, report);
    super::steps::details(page, report);
    worst(page, report);
    stages(page, report);
    all_causes(page, report);
    threads(page, report);
    shares(page, report, "Waiting by file", &report.objects.files);
    shares(page, report, "Waiting by block device", &report.objects.block_devices);
    shares(page, report, "Waiting by network peer", &report.objects.peers);
    enablers(page, report);
    disks(page, report);
    edges(page, report);
}

fn advice(page: &mut Page, report: &Report) {
    if report.advice.is_empty() {
        return;
    }
    page.heading("What to change", "the time is the most that can be won");
    for (index, advice) in report.advice.iter().enumerate() {
        let share = percent(advice.ns, report.totals.window_ns);
        let found = format!("{} ({share} of the window): {}", time(advice.ns), shown_found(&advice.found));
        page.paragraph(&format!("  {}. ", index + 1), &found);
        for change in &advice.change {
            page.paragraph("     - ", change);
        }
        page.paragraph("     to disprove it: ", &advice.disproof);
    }
}

fn shown_found(text: &str) -> String {
    crate::report::escape::escape_line(text)
}

fn worst(page: &mut Page, report: &Report) {
    let mut table = TextTable::new(&[
        ("gap", Align::Right),
        ("GPU", Align::Right),
        ("at", Align::Right),
        ("length", Align::Right),
        ("mostly", Align::Left),
        ("of it", Align::Right),
        ("in", Align::Flexible),
    ]);
    for gap in &report.worst_gaps {
        let mut place = gap.thread.as_ref().map(thread).unwrap_or_default();
        if let Some(object) = &gap.object {
            if !place.is_empty() {
                place.push_str(": ");
            }
            place.push_str(&shown(object));
        }
        table.row(vec![
            gap.gap_id.to_string(),
            gap.device.to_string(),
            format!("{:.3} s", (gap.start_ns - report.recording.started_ns) as f64 / 1e9),
            time(gap.ns),
            shown(&gap.cause),
            percent(gap.cause_ns, gap.ns),
            place,
        ]);
    }
    if !table.is_empty() {
        page.heading("Longest gaps", "gtrace explain DIR --gap N shows the chain behind one");
        page.table(&table);
    }
}

fn stages(page: &mut Page, report: &Report) {
    let mut table = TextTable::new(&[
        ("time", Align::Right),
        ("of waiting", Align::Right),
        ("of window", Align::Right),
        ("while", Align::Left),
        ("mostly", Align::List),
    ]);
    for stage in &report.stages {
        let causes = stage
            .causes
            .iter()
            .take(2)
            .map(|cause| format!("{} {}", shown(&cause.name), percent(cause.ns, stage.ns)));
        table.row(vec![
            time(stage.ns),
            percent(stage.ns, report.totals.gap_ns),
            percent(stage.ns, report.totals.window_ns),
            shown(wording::stage(&stage.stage)),
            causes.collect::<Vec<_>>().join(", "),
        ]);
    }
    if !table.is_empty() {
        let note = format!("against {} of computing", time(report.totals.compute_ns));
        page.heading("Waiting by what the program was at", &note);
        page.table(&table);
    }
}

fn all_causes(page: &mut Page, report: &Report) {
    let mut table = TextTable::new(&[
        ("time", Align::Right),
        ("of waiting", Align::Right),
        ("of window", Align::Right),
        ("cause", Align::Left),
        ("pieces", Align::Right),
        ("mean", Align::Right),
        ("objects", Align::List),
    ]);
    for cause in &report.causes {
        let functions = cause.functions.iter().take(3).map(|function| {
            let share = percent(function.samples as i64, cause.samples as i64);
            format!("{} {share}", crate::report::escape::name(&function.name, 40))
        });
        let mut objects: Vec<String> = cause
            .objects
            .iter()
            .take(3)
            .map(|object| {
                format!("{} {}", crate::report::escape::name(&object.name, 40), percent(object.ns, cause.ns))
            })
            .collect();
        if !cause.functions.is_empty() {
            objects = functions.collect();
            if cause.functions.len() > 3 {
                objects.push(format!("{} more", count(cause.functions.len() as u64 - 3)));
            }
        } else if cause.object_count > 3 {
            objects.push(format!("{} more", count(cause.object_count - 3)));
        }
        table.row(vec![
            time(cause.ns),
            percent(cause.ns, report.totals.gap_ns),
            percent(cause.ns, report.totals.window_ns),
            shown(&cause.cause),
            count(cause.segments),
            time(cause.ns / cause.segments.max(1) as i64),
            objects.join(", "),
        ]);
    }
    let sum: i64 = report.causes.iter().map(|cause| cause.ns).sum();
    table.row(vec![
        time(sum),
        percent(sum, report.totals.gap_ns),
        percent(sum, report.totals.window_ns),
        "all".into(),
        count(report.causes.iter().map(|cause| cause.segments).sum()),
        String::new(),
        String::new(),
    ]);
    page.heading("Waiting by cause", "docs/causes.md says what each code means");
    page.table(&table);
}

fn threads(page: &mut Page, report: &Report) {
    let mut table = TextTable::new(&[
        ("time", Align::Right),
        ("of waiting", Align::Right),
        ("thread", Align::Left),
        ("on a CPU", Align::Right),
        ("mostly", Align::List),
    ]);
    let length = report.recording.ended_ns - report.recording.started_ns;
    for row in report.threads.iter().take(ROWS) {
        let causes =
            row.causes.iter().take(2).map(|cause| format!("{} {}", shown(&cause.name), time(cause.ns)));
        table.row(vec![
            time(row.ns),
            percent(row.ns, report.totals.gap_ns),
            thread(&row.thread),
            row.on_cpu_ns.map(|ns| percent(ns, length)).unwrap_or_default(),
            causes.collect::<Vec<_>>().join(", "),
        ]);
    }
    if table.is_empty() {
        return;
    }
    page.heading("Waiting by the thread at the end of the chain", "on a CPU: share of the whole recording");
    page.table(&table);
    if report.threads.len() > ROWS {
        page.line(&format!("  {} more", count((report.threads.len() - ROWS) as u64)));
    }
}

fn shares(page: &mut Page, report: &Report, title: &str, list: &[Share]) {
    if list.is_empty() {
        return;
    }
    let mut table =
        TextTable::new(&[("time", Align::Right), ("of waiting", Align::Right), ("", Align::Flexible)]);
    for row in list.iter().take(ROWS) {
        table.row(vec![time(row.ns), percent(row.ns, report.totals.gap_ns), shown(&row.name)]);
    }
    page.heading(title, "");
    page.table(&table);
    if list.len() > ROWS {
        let rest: i64 = list.iter().skip(ROWS).map(|row| row.ns).sum();
        page.line(&format!("  {} more with {}", count((list.len() - ROWS) as u64), time(rest)));
    }
}

fn enablers(page: &mut Page, report: &Report) {
    let mut table = TextTable::new(&[
        ("time", Align::Right),
        ("of waiting", Align::Right),
        ("gaps", Align::Right),
        ("after", Align::Flexible),
    ]);
    for enabler in report.enablers.iter().take(ROWS) {
        table.row(vec![
            time(enabler.ns),
            percent(enabler.ns, report.totals.gap_ns),
            count(enabler.gaps),
            shown(&enabler.call),
        ]);
    }
    if !table.is_empty() {
        page.heading(
            "Synchronising calls that had drained the launch queue",
            "without them work could have been queued",
        );
        page.table(&table);
    }
}

fn disks(page: &mut Page, report: &Report) {
    let mut table = TextTable::new(&[
        ("disk", Align::Left),
        ("reads", Align::Right),
        ("read", Align::Right),
        ("mean", Align::Right),
        ("writes", Align::Right),
        ("written", Align::Right),
        ("busy", Align::Right),
        ("while busy", Align::Right),
        ("median", Align::Right),
        ("99th", Align::Right),
    ]);
    let length = report.recording.ended_ns - report.recording.started_ns;
    for disk in &report.disks {
        let per_second = (disk.read_bytes + disk.written_bytes) as f64 / (disk.busy_ns.max(1) as f64 / 1e9);
        table.row(vec![
            shown(&disk.device),
            count(disk.reads),
            bytes(disk.read_bytes),
            bytes(disk.read_bytes / (disk.reads.max(1) as i64)),
            count(disk.writes),
            bytes(disk.written_bytes),
            percent(disk.busy_ns, length),
            format!("{}/s", bytes(per_second as i64)),
            DurationNs(disk.median_ns).to_string(),
            DurationNs(disk.p99_ns).to_string(),
        ]);
    }
    if !table.is_empty() {
        page.heading(
            "What the disks did",
            "whoever waited; median and 99th percentile from issue to completion",
        );
        page.table(&table);
    }
}

fn edges(page: &mut Page, report: &Report) {
    page.heading("Outside the window", "no gap: before the first GPU work and after the last");
    for device in &report.devices {
        page.line(&format!(
            "  GPU {}: {} before, {} after; {}, {} of {} in all",
            device.device,
            time(device.edge_before_ns),
            time(device.edge_after_ns),
            plural(device.kernels, "kernel"),
            if device.copies == 1 { "1 copy".to_owned() } else { format!("{} copies", count(device.copies)) },
            bytes(device.bytes),
        ));
        if device.imbalance_ns != 0 {
            let line = format!(
                "  GPU {}: DOES NOT ADD UP: busy time of its work and its gaps differ from its window by {}",
                device.device,
                time(device.imbalance_ns)
            );
            page.line(&page.style.paint(Look::Bad, &line));
        }
    }
}
