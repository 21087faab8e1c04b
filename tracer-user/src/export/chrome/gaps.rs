//! The tracks of gaps, and the points at which arrows along their chains begin and end.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::Write;

use super::events::{Anchor, Slice};
use super::json::Object;
use super::tracks::{Group, Row};
use super::{ExportError, Pass};
use crate::event::{DurationNs, MonoNs, Pid, Tid};
use crate::store::schema::{Gap, GapSegment, Hop};

/// A thread.
pub type Who = (Pid, Tid);

/// What the chains say about waits: to be found among the threads' states.
#[derive(Default)]
pub struct Chains {
    /// By the thread that waited.
    pub waits: BTreeMap<Who, Vec<Wait>>,
    /// The last thread of each segment's chain.
    pub leaves: Vec<Leaf>,
}

/// A thread waited at this time, and the next hop ended that.
pub struct Wait {
    pub time: MonoNs,
    /// The thread of the next hop; `None`: it is a device, or there is none.
    pub waker: Option<Who>,
}

/// The last thread of a chain.
pub struct Leaf {
    pub who: Who,
    pub segment: Anchor,
}

enum Piece<'a> {
    Gap(&'a Gap),
    Segment(&'a GapSegment),
}

impl<W: Write> Pass<'_, W> {
    /// Writes gaps and their segments.
    pub(super) fn gaps(&mut self) -> Result<Chains, ExportError> {
        let story = self.story;
        let mut pieces = Vec::new();
        for gap in &story.gaps {
            if !self.counts.row::<Gap>(self.selection.touches(gap.start_ns, gap.end_ns)) {
                continue;
            }
            pieces.push((gap.start_ns, Reverse(gap.end_ns), 0, gap.device, Piece::Gap(gap)));
            for segment in story.segments.get(&gap.gap_id).into_iter().flatten() {
                self.counts.row::<GapSegment>(true);
                pieces.push((
                    segment.start_ns,
                    Reverse(segment.end_ns),
                    1,
                    gap.device,
                    Piece::Segment(segment),
                ));
            }
        }
        pieces.sort_by_key(|(start, end, rank, device, _)| (*start, *end, *rank, *device));
        let mut chains = Chains::default();
        for (start, Reverse(end), _, device, piece) in pieces {
            let track = self.tracks.place(Group::Gpu(device.0), Row::Gaps, start, end);
            let (name, color, args) = match piece {
                Piece::Gap(gap) => (format!("gap {} ({})", gap.gap_id, gap.kind), "grey", gap_args(gap)),
                Piece::Segment(segment) => {
                    follow(segment, Anchor { track, time: start }, &mut chains);
                    (segment.cause.to_string(), color(&segment.cause), segment_args(segment))
                }
            };
            let slice = Slice { track, start, end, name: &name, category: "gap", color: Some(color), args };
            self.events.slice(slice).map_err(ExportError::out)?;
        }
        for waits in chains.waits.values_mut() {
            waits.sort_by_key(|wait| wait.time);
        }
        Ok(chains)
    }
}

/// Notes the waits along a segment's chain, and the thread at its end.
fn follow(segment: &GapSegment, anchor: Anchor, chains: &mut Chains) {
    let mut hops = segment.path.iter().peekable();
    let mut leaf = None;
    while let Some(hop) = hops.next() {
        let Some(who) = thread(hop) else { continue };
        leaf = Some(who);
        if hop.edge.is_some() {
            let wait = Wait { time: segment.start_ns, waker: hops.peek().and_then(|next| thread(next)) };
            chains.waits.entry(who).or_default().push(wait);
        }
    }
    // Where the chain ends in a device, its last thread's wait leads there.
    chains.leaves.extend(leaf.map(|who| Leaf { who, segment: anchor }));
}

/// The thread of a hop; `None`: it is a device.
fn thread(hop: &Hop) -> Option<Who> {
    (&*hop.state != "device").then_some((hop.pid, hop.tid))
}

/// Times in a file may be anything.
pub fn length(start: MonoNs, end: MonoNs) -> DurationNs {
    DurationNs(end.0.saturating_sub(start.0))
}

fn gap_args(gap: &Gap) -> Object {
    Object::default()
        .integer("gap", gap.gap_id.0)
        .text("kind", &gap.kind)
        .text("length", &length(gap.start_ns, gap.end_ns).to_string())
        .integer("length_ns", length(gap.start_ns, gap.end_ns).0)
        .text("mostly", &gap.cause)
        .text("stage", &gap.stage)
        .text_if("enabler", gap.enabler.as_deref())
        .integer_if("op_before", gap.prev_op.map(|op| op.0))
        .integer_if("op_after", gap.next_op.map(|op| op.0))
}

fn segment_args(segment: &GapSegment) -> Object {
    Object::default()
        .integer("gap", segment.gap_id.0)
        .integer("segment", i64::from(segment.seq))
        .text("cause", &segment.cause)
        .text("stage", &segment.stage)
        .text_if("object", segment.object.as_deref())
        .text("length", &length(segment.start_ns, segment.end_ns).to_string())
        .integer("length_ns", length(segment.start_ns, segment.end_ns).0)
        .text("confidence", &segment.confidence)
        .list("chain", segment.path.iter().map(hop_in_words))
        .list("evidence", segment.evidence.iter().map(|row| format!("{} {}", row.table, row.row)))
}

fn hop_in_words(hop: &Hop) -> String {
    let mut words = format!("{} [{}/{}] {}", hop.thread, hop.pid, hop.tid, hop.state);
    for (before, part) in [(" in ", &hop.call), (" on ", &hop.object), (": ", &hop.edge)] {
        if let Some(part) = part {
            words.push_str(before);
            words.push_str(part);
        }
    }
    words
}

/// A colour by the cause's family, out of those that catapult has names for.
fn color(cause: &str) -> &'static str {
    let mut parts = cause.split('.');
    match (parts.next().unwrap_or_default(), parts.next().unwrap_or_default()) {
        ("storage", _) => "terrible",
        ("memory", _) => "cq_build_attempt_failed",
        ("net", _) => "bad",
        ("host", "cpu" | "gc") => "thread_state_running",
        ("host", "runq" | "wake_latency" | "irq") => "thread_state_runnable",
        ("host", _) => "yellow",
        ("cuda", _) => "rail_response",
        ("gpu", _) => "rail_load",
        ("copy", _) => "rail_idle",
        ("comm", _) => "olive",
        ("app", _) => "white",
        ("tool", _) => "black",
        _ => "generic_work",
    }
}
