//! An explanation for a person.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;

use super::Explanation;
use super::evidence::EvidenceRow;
use crate::event::{DurationNs, MonoNs};
use crate::report::escape::name;
use crate::report::findings::percent;
use crate::report::names::Names;
use crate::report::table::{Align, TextTable};
use crate::report::text::style::{Look, Style, bytes, count, plural, time};
use crate::report::text::{Page, shown, thread};
use crate::report::wording;
use crate::store::schema::{Frame, GapSegment, GpuOp, Hop};

/// Segments that are listed one by one.
const SEGMENTS: usize = 30;
/// Chains that are drawn.
const CHAINS: usize = 4;
/// A chain with less of the gap is not drawn unless it is the longest.
const DRAWN_FROM: f64 = 0.02;
/// Rows of evidence that are printed.
const ROWS: usize = 30;

/// The explanation as text, ending with a line break.
#[must_use]
pub fn render(explanation: &Explanation, style: Style) -> String {
    let mut page = Page { style, text: String::new() };
    header(&mut page, explanation);
    segments(&mut page, explanation);
    chains(&mut page, explanation);
    evidence(&mut page, explanation);
    observations(&mut page, explanation);
    page.text
}

/// A time relative to the gap's beginning: `+3.10 ms`, `-812 ns`.
fn relative(explanation: &Explanation, moment: MonoNs) -> String {
    let away = moment - explanation.gap.start_ns;
    let sign = if away.0 < 0 { '-' } else { '+' };
    format!("{sign}{}", DurationNs(away.0.abs()))
}

fn header(page: &mut Page, explanation: &Explanation) {
    let gap = &explanation.gap;
    let length = explanation.interval().length();
    let kind = match &*gap.kind {
        "exposed_copy" => "only a copy ran",
        "exposed_comm" => "only communication ran",
        _ => "no work at all",
    };
    let title = format!(
        "Gap {} of GPU {}: {length}, {kind}, from {:.6} s to {:.6} s of the recording",
        gap.gap_id,
        gap.device,
        (gap.start_ns - explanation.started).0 as f64 / 1e9,
        (gap.end_ns - explanation.started).0 as f64 / 1e9,
    );
    page.line(&page.style.paint(Look::Strong, &title));
    page.line("");
    let of_cause: i64 =
        explanation.segments.iter().filter(|segment| segment.cause == gap.cause).map(length_of).sum();
    let answer = format!(
        "{} of it {} ({}){}.",
        percent(of_cause, length.0),
        wording::because(&gap.cause),
        shown(&gap.cause),
        stage_words(&gap.stage)
    );
    page.paragraph("", &answer);
    if let Some(enabler) = &gap.enabler {
        let line = format!(
            "{} had drained the launch queue: nothing was left for the GPU to go on with.",
            shown(enabler)
        );
        page.paragraph("", &line);
    }
    page.line("");
    page.paragraph("  before it  ", &op_words(explanation, explanation.previous.as_ref()));
    page.paragraph("  after it   ", &op_words(explanation, explanation.next.as_ref()));
    if let Some(launch) = &explanation.launch {
        let line = format!(
            "by {} at {}, which took {}, in {}",
            shown(&launch.name),
            relative(explanation, launch.start_ns),
            launch.end_ns - launch.start_ns,
            thread(&explanation.thread(launch.pid.0, launch.tid.0))
        );
        page.paragraph("  launched   ", &line);
    }
    page.line(&page.style.paint(Look::Faint, "  Times with a sign count from the beginning of the gap."));
}

fn stage_words(stage: &str) -> String {
    match stage {
        "other" => String::new(),
        stage => format!("; stage: {}", shown(wording::stage(stage))),
    }
}

fn op_words(explanation: &Explanation, op: Option<&GpuOp>) -> String {
    let Some(op) = op else { return "nothing recorded".into() };
    let mut words = format!("{} {}", shown(&op.kind), shown(&op.name));
    if let Some(size) = op.bytes {
        let _ = write!(words, " of {}", bytes(size));
    }
    let _ = write!(
        words,
        ", process {}, stream {}, {} … {}",
        op.pid,
        op.stream,
        relative(explanation, op.start_ns),
        relative(explanation, op.end_ns)
    );
    words
}

fn length_of(segment: &GapSegment) -> i64 {
    (segment.end_ns - segment.start_ns).0
}

fn segments(page: &mut Page, explanation: &Explanation) {
    page.heading("Its time", "");
    let whole = explanation.interval().length().0;
    let mut table = TextTable::new(&[
        ("#", Align::Right),
        ("from", Align::Right),
        ("length", Align::Right),
        ("share", Align::Right),
        ("cause", Align::Left),
        ("in", Align::Left),
        ("object", Align::Flexible),
    ]);
    // The longest are listed, in order of time.
    let mut listed: Vec<&GapSegment> = explanation.segments.iter().collect();
    listed.sort_by_key(|segment| std::cmp::Reverse(length_of(segment)));
    let rest: i64 = listed.iter().skip(SEGMENTS).map(|segment| length_of(segment)).sum();
    let more = listed.len().saturating_sub(SEGMENTS);
    listed.truncate(SEGMENTS);
    listed.sort_by_key(|segment| segment.seq);
    for segment in listed {
        let inferred = if &*segment.confidence == "exact" { "" } else { " (inferred)" };
        let place = segment.pid.zip(segment.tid).map(|(pid, tid)| thread(&explanation.thread(pid.0, tid.0)));
        table.row(vec![
            segment.seq.to_string(),
            relative(explanation, segment.start_ns),
            time(length_of(segment)),
            percent(length_of(segment), whole),
            format!("{}{inferred}", shown(&segment.cause)),
            place.unwrap_or_default(),
            segment.object.as_deref().map(shown).unwrap_or_default(),
        ]);
    }
    page.table(&table);
    if more > 0 {
        page.line(&format!("  and {} shorter with {} together", count(more as u64), time(rest)));
    }
    let sum: i64 = explanation.segments.iter().map(length_of).sum();
    let line = match explanation.imbalance_ns() {
        0 => page.style.paint(
            Look::Faint,
            &format!(
                "  sum of the {}: {} ns, exactly the length of the gap",
                plural(explanation.segments.len() as u64, "segment"),
                count(sum as u64)
            ),
        ),
        wrong => {
            let line = format!(
                "  ! the segments differ from the gap by {wrong} ns: this is an error of gtrace, please report it"
            );
            page.style.paint(Look::Bad, &line)
        }
    };
    page.line(&line);
}

/// The chains that differ, each with its segments; the one with the most time first.
fn distinct(explanation: &Explanation) -> Vec<(&[Hop], Vec<&GapSegment>, i64)> {
    let mut chains: Vec<(&[Hop], Vec<&GapSegment>, i64)> = Vec::new();
    for segment in explanation.segments.iter().filter(|segment| !segment.path.is_empty()) {
        match chains.iter_mut().find(|(path, segments, _)| alike(path, segments, segment)) {
            Some((_, segments, ns)) => {
                segments.push(segment);
                *ns += length_of(segment);
            }
            None => chains.push((&segment.path, vec![segment], length_of(segment))),
        }
    }
    chains.sort_by_key(|(_, _, ns)| std::cmp::Reverse(*ns));
    chains
}

/// Whether a segment has the same chain, up to the object of its last hop, and the same cause.
fn alike(path: &[Hop], segments: &[&GapSegment], segment: &GapSegment) -> bool {
    let ends = |hops: &[Hop]| hops.last().map(|hop| (hop.pid, hop.tid, hop.state.clone(), hop.call.clone()));
    let before = |hops: &[Hop]| hops.len().saturating_sub(1);
    segments.first().is_some_and(|first| first.cause == segment.cause)
        && path.len() == segment.path.len()
        && path[..before(path)] == segment.path[..before(path)]
        && ends(path) == ends(&segment.path)
}

/// The objects of segments, the one with the most time first.
fn objects(segments: &[&GapSegment]) -> Vec<(String, i64)> {
    let mut by_object: BTreeMap<&str, i64> = BTreeMap::new();
    for segment in segments {
        if let Some(object) = segment.path.last().and_then(|hop| hop.object.as_deref()) {
            *by_object.entry(object).or_default() += length_of(segment);
        }
    }
    let mut list: Vec<(String, i64)> =
        by_object.into_iter().map(|(object, ns)| (name(object, 80), ns)).collect();
    list.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    list
}

fn chains(page: &mut Page, explanation: &Explanation) {
    let whole = explanation.interval().length().0;
    let chains = distinct(explanation);
    let worth =
        |index: usize, ns: i64| index == 0 || (index < CHAINS && ns as f64 >= whole as f64 * DRAWN_FROM);
    let mut left = 0;
    for (index, (path, segments, ns)) in chains.iter().enumerate() {
        if !worth(index, *ns) {
            left += 1;
            continue;
        }
        let numbers: Vec<String> =
            segments.iter().take(8).map(|segment| format!("#{}", segment.seq)).collect();
        let more = if segments.len() > 8 { ", …" } else { "" };
        let title = format!("The chain behind {}{more}", numbers.join(", "));
        page.heading(&title, &format!("{}, {} of the gap", time(*ns), percent(*ns, whole)));
        chain(page, explanation, path, segments);
    }
    if left > 0 {
        page.line("");
        page.line(&format!("  {} with little time not drawn", plural(left, "more chain")));
    }
}

/// From the launching thread down to the cause.
fn chain(page: &mut Page, explanation: &Explanation, path: &[Hop], segments: &[&GapSegment]) {
    let Some(longest) = segments.iter().max_by_key(|segment| length_of(segment)) else { return };
    let mut used = HashSet::new();
    for (index, hop) in path.iter().enumerate() {
        let leaf = index + 1 == path.len();
        let indent = "   ".repeat(index.min(8));
        let marker =
            if index == 0 { String::new() } else { format!("{}└─ ", "   ".repeat(index.min(8) - 1)) };
        let look = if leaf { Look::Strong } else { Look::Careful };
        let who = page.style.paint(look, &hop_name(&explanation.names, hop));
        if leaf {
            leaf_line(page, &format!("  {marker}"), &who, hop, segments);
        } else {
            page.line(&format!(
                "  {marker}{who} {}",
                doing(hop, hop.object.as_deref().map(|object| name(object, 80)))
            ));
        }
        let times = when(explanation, hop, longest, &mut used);
        if let Some(mut when) = times {
            if leaf && segments.len() > 1 {
                when.push_str(" (the longest of them)");
            }
            page.line(&page.style.paint(Look::Faint, &format!("  {indent}  {when}")));
        }
        if leaf {
            let line =
                format!("this is the cause: {} ({})", wording::cause(&longest.cause), shown(&longest.cause));
            page.line(&format!("  {indent}  {}", page.style.paint(Look::Strong, &line)));
        } else if let Some(edge) = &hop.edge {
            page.line(&format!("  {indent}  {}", shown(wording::edge(edge))));
        }
    }
}

/// What the thread or the device of a hop is called.
#[must_use]
pub fn hop_name(names: &Names, hop: &Hop) -> String {
    if hop.tid.0 <= 0 {
        return shown(if hop.thread.is_empty() {
            hop.object.as_deref().unwrap_or("device")
        } else {
            &hop.thread
        });
    }
    let mut known = names.thread(hop.pid.0, hop.tid.0);
    if !hop.thread.is_empty() {
        known.name = hop.thread.to_string();
    }
    thread(&known)
}

/// The end of the chain, with the objects of all its segments.
fn leaf_line(page: &mut Page, lead: &str, who: &str, hop: &Hop, segments: &[&GapSegment]) {
    let objects = objects(segments);
    let mut list: Vec<String> = match objects.as_slice() {
        [(only, _)] => vec![only.clone()],
        several => several.iter().take(3).map(|(object, ns)| format!("{object} ({})", time(*ns))).collect(),
    };
    if objects.len() > 3 {
        list.push(format!("{} more", count((objects.len() - 3) as u64)));
    }
    let runq = segments.first().is_some_and(|segment| wording::is_prefix("host.runq", &segment.cause));
    let words = match (list.is_empty(), runq) {
        (true, _) => doing(hop, None),
        (false, true) => format!("{}, held by {}", doing(hop, None), list.join(", ")),
        (false, false) => doing(hop, Some(list.join(", "))),
    };
    page.line(&format!("{lead}{who} {words}"));
}

/// What the thread of a hop did, and on what.
#[must_use]
pub fn doing(hop: &Hop, object: Option<String>) -> String {
    let on = object.map(|object| format!(" on {object}")).unwrap_or_default();
    let call = hop.call.as_deref().map(shown);
    match (&*hop.state, call) {
        ("blocked", Some(call)) => format!("was blocked in {call}{on}"),
        ("blocked", None) => format!("was blocked{on}"),
        ("runnable", Some(call)) => format!("wanted a CPU, in {call}{on}"),
        ("runnable", None) => format!("wanted a CPU{on}"),
        ("running", Some(call)) => format!("ran in {call}{on}"),
        ("running", None) => {
            format!(
                "ran its own code{}",
                on.strip_prefix(" on ").map(|program| format!(", {program}")).unwrap_or_default()
            )
        }
        ("device", Some(call)) => format!("worked: {call}{on}"),
        ("device", None) => format!("worked{on}"),
        (state, _) => format!("{}{on}", shown(state)),
    }
}

/// The times of a hop, from the row of evidence that belongs to it.
fn when<'a>(
    explanation: &'a Explanation,
    hop: &Hop,
    segment: &GapSegment,
    used: &mut HashSet<(&'a str, i64)>,
) -> Option<String> {
    for evidence in &segment.evidence {
        let key = (evidence.table.to_string(), evidence.row.0);
        let Some(((table, row), found)) = explanation.evidence.get_key_value(&key) else { continue };
        if used.contains(&(table.as_str(), *row)) {
            continue;
        }
        let at = |moment| relative(explanation, moment);
        let words = match found {
            EvidenceRow::OffCpu(row) if hop.tid == row.tid && &*hop.state != "running" => {
                let woken = row.woken_ns.map_or("never woken".into(), |woken| format!("woken {}", at(woken)));
                let on = row.on_ns.map_or("did not run again".into(), |on| format!("ran {}", at(on)));
                Some(format!("off the CPU {}, {woken}, {on}", at(row.off_ns)))
            }
            EvidenceRow::BlockIo(row) if hop.tid.0 <= 0 => Some(format!(
                "request {}: {} of {}, queued {}, issued {}, completed {}",
                row.request_id,
                shown(&row.op),
                bytes(row.bytes),
                at(row.queued_ns),
                at(row.issued_ns),
                at(row.completed_ns)
            )),
            EvidenceRow::GpuOp(row) if hop.tid.0 <= 0 => {
                Some(format!("{} … {}", at(row.start_ns), at(row.end_ns)))
            }
            EvidenceRow::CudaApi(row) if hop.tid == row.tid && hop.call.as_deref() == Some(&*row.name) => {
                Some(format!("{} … {}", at(row.start_ns), at(row.end_ns)))
            }
            _ => None,
        };
        if words.is_some() {
            used.insert((table.as_str(), *row));
            return words;
        }
    }
    None
}

fn evidence(page: &mut Page, explanation: &Explanation) {
    let mut rows: Vec<(&(String, i64), &EvidenceRow)> = explanation.evidence.iter().collect();
    rows.sort_by_key(|(key, row)| (row.start(), *key));
    let named: HashSet<(String, i64)> = explanation
        .segments
        .iter()
        .flat_map(|segment| &segment.evidence)
        .map(|evidence| (evidence.table.to_string(), evidence.row.0))
        .collect();
    if named.is_empty() {
        return;
    }
    page.heading("The rows that it rests on", "by the table's id columns: id, request_id, op_id");
    let shown_rows = rows.iter().take(ROWS);
    let leads: Vec<String> = shown_rows.clone().map(|((name, id), _)| format!("{name} {id}")).collect();
    let widest = leads.iter().map(String::len).max().unwrap_or(0);
    for (lead, (_, row)) in leads.iter().zip(shown_rows) {
        let from = relative(explanation, row.start());
        page.paragraph(&format!("  {lead:widest$}  {from:>10}  "), &row_words(explanation, row));
    }
    if rows.len() > ROWS {
        page.line(&format!("  and {}", plural((rows.len() - ROWS) as u64, "more row")));
    }
    let missing = named.len() - rows.len();
    if missing > 0 {
        let line = format!("  {} named but not found in the tables", plural(missing as u64, "row"));
        page.line(&page.style.paint(Look::Careful, &line));
    }
}

fn row_words(explanation: &Explanation, row: &EvidenceRow) -> String {
    let at = |moment| relative(explanation, moment);
    let until = |moment: Option<MonoNs>| moment.map_or("the end".into(), at);
    match row {
        EvidenceRow::OffCpu(row) => {
            let call = row.syscall.as_deref().map(|call| format!(" in {}", shown(call))).unwrap_or_default();
            let mut words = format!(
                "{} was off the CPU{call} until {} ({})",
                thread(&explanation.thread(row.pid.0, row.tid.0)),
                until(row.on_ns),
                shown(&row.state)
            );
            let by = match (&row.waker_comm, &row.waker_tid, &row.waker_object) {
                (Some(comm), Some(tid), _) => Some(format!("{} {tid}", shown(comm))),
                (_, _, Some(object)) => Some(shown(object)),
                _ => row.waker_kind.as_deref().map(shown),
            };
            if let Some(by) = by {
                let _ = write!(words, ", woken {} by {by}", until(row.woken_ns));
            }
            if let Some(culprit) = &row.culprit_comm {
                let _ = write!(words, "; {} held the CPU meanwhile", shown(culprit));
            }
            words
        }
        EvidenceRow::Syscall(row) => {
            let object =
                row.object.as_deref().map(|object| format!(" {}", name(object, 60))).unwrap_or_default();
            let result = row.result.map_or("not returned".into(), |result| format!("= {result}"));
            format!(
                "{}: {}{object} {result} until {}, blocked {}",
                thread(&explanation.thread(row.pid.0, row.tid.0)),
                shown(&row.name),
                until(row.end_ns),
                row.blocked_ns
            )
        }
        EvidenceRow::BlockIo(row) => {
            let file = row.file.as_deref().map(|file| format!(" of {}", name(file, 60))).unwrap_or_default();
            let by = row.comm.as_deref().map(|comm| format!(" by {}", shown(comm))).unwrap_or_default();
            format!(
                "{} {} {}{file}{by}: issued {}, completed {}, {} in flight",
                shown(&row.device),
                shown(&row.op),
                bytes(row.bytes),
                at(row.issued_ns),
                at(row.completed_ns),
                row.in_flight
            )
        }
        EvidenceRow::CudaApi(row) => format!(
            "{}: {} until {}, correlation {}, result {}",
            thread(&explanation.thread(row.pid.0, row.tid.0)),
            shown(&row.name),
            at(row.end_ns),
            row.correlation_id,
            row.result
        ),
        EvidenceRow::CudaSync(row) => {
            format!("process {}: synchronisation ({}) until {}", row.pid, shown(&row.kind), at(row.end_ns))
        }
        EvidenceRow::CudaOverhead(row) => {
            format!("process {}: {} until {}", row.pid, shown(&row.kind), at(row.end_ns))
        }
        EvidenceRow::Marker(row) => format!(
            "{}: {} {} until {}",
            thread(&explanation.thread(row.pid.0, row.tid.0)),
            shown(&row.domain),
            shown(&row.name),
            at(row.end_ns)
        ),
        EvidenceRow::MemoryStall(row) => format!(
            "{}: {} until {}",
            thread(&explanation.thread(row.pid.0, row.tid.0)),
            shown(&row.kind.replace('_', " ")),
            at(row.end_ns)
        ),
        EvidenceRow::Interrupt(row) => format!(
            "CPU {}: {} interrupted {} until {}",
            row.cpu,
            shown(&row.name),
            thread(&explanation.thread(row.pid.0, row.tid.0)),
            at(row.end_ns)
        ),
        EvidenceRow::Sample(row) => format!(
            "{} was in {}",
            thread(&explanation.thread(row.pid.0, row.tid.0)),
            stack_words(&row.frames)
        ),
        EvidenceRow::GpuOp(row) => format!(
            "GPU {} stream {}: {} {} until {}",
            row.device,
            row.stream,
            shown(&row.kind),
            shown(&row.name),
            at(row.end_ns)
        ),
    }
}

/// The innermost frames of a stack: `jpeg_idct_islow (libjpeg.so.62), called by load (JpegImagePlugin.py:7)`.
fn stack_words(frames: &[Frame]) -> String {
    const MOST: usize = 6;
    let known = || frames.iter().filter(|frame| frame.function.is_some());
    let mut words: Vec<String> = known().take(MOST).map(frame_words).collect();
    let more = known().count().saturating_sub(MOST);
    if words.is_empty() {
        return "code without names".into();
    }
    if more > 0 {
        words.push(plural(more as u64, "more function"));
    }
    words.join(", called by ")
}

fn frame_words(frame: &Frame) -> String {
    let function = name(frame.function.as_deref().unwrap_or_default(), 60);
    let place = frame.file.as_deref().or(frame.module.as_deref()).unwrap_or_default();
    let place = name(place.rsplit('/').next().unwrap_or_default(), 40);
    match frame.line {
        Some(line) => format!("{function} ({place}:{line})"),
        None => format!("{function} ({place})"),
    }
}

fn observations(page: &mut Page, explanation: &Explanation) {
    page.heading("Why not something else?", "");
    for observation in &explanation.observations {
        page.paragraph("  ", &format!("{} {}", observation.question, observation.answer));
    }
}
