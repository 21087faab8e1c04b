//! The tracks of gaps, and the points at which arrows along their chains begin and end.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::Pass;
use crate::event::{MonoNs, Pid, Tid};
use crate::export::ExportError;
use crate::export::sink::{Anchor, Describe, Details, Slice};
use crate::export::story::length;
use crate::export::tracks::{Group, Row};
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

impl Pass<'_> {
    /// Writes gaps and their segments.
    pub(super) fn gaps(&mut self) -> Result<Chains, ExportError> {
        let story = self.story;
        let mut pieces = Vec::new();
        for gap in &story.gaps {
            if !self.counts.row::<Gap>(self.selection.touches(gap.start_ns, gap.end_ns)) {
                self.counts.skipped::<GapSegment>(story.segments(gap.gap_id).len() as u64);
                continue;
            }
            pieces.push((gap.start_ns, Reverse(gap.end_ns), 0, gap.device, Piece::Gap(gap)));
            let segments = self.longest(story.segments(gap.gap_id));
            for segment in segments {
                let (start, end) = (segment.start_ns, segment.end_ns);
                pieces.push((start, Reverse(end), 1, gap.device, Piece::Segment(segment)));
            }
        }
        pieces.sort_by_key(|(start, end, rank, device, _)| (*start, *end, *rank, *device));
        let mut chains = Chains::default();
        for (start, Reverse(end), _, device, piece) in pieces {
            let end = end.max(start);
            let track = self.place(Group::Gpu(device.0), &Row::Gaps, start, end)?;
            let (name, color, details): (_, _, &dyn Describe) = match piece {
                Piece::Gap(gap) => (format!("gap {} ({})", gap.gap_id, gap.kind), "grey", gap),
                Piece::Segment(segment) => {
                    follow(segment, Anchor { track, time: start }, &mut chains);
                    (segment.cause.to_string(), color(&segment.cause), segment)
                }
            };
            let (name, color, launch) = (&*name, Some(color), None);
            self.slice(&Slice { track, start, end, name, category: "gap", color, launch, details })?;
        }
        for waits in chains.waits.values_mut() {
            waits.sort_by_key(|wait| wait.time);
        }
        Ok(chains)
    }

    /// The segments of a gap that are shown: all, or the longest.
    fn longest<'s>(&mut self, segments: &'s [GapSegment]) -> Vec<&'s GapSegment> {
        let mut shown: Vec<&GapSegment> = segments.iter().collect();
        shown.sort_by_key(|segment| (Reverse(length(segment.start_ns, segment.end_ns)), segment.seq));
        shown.truncate(self.selection.segments());
        for number in 0..segments.len() {
            self.counts.row::<GapSegment>(number < shown.len());
        }
        shown
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

impl Describe for Gap {
    fn describe(&self, to: &mut dyn Details) {
        to.integer("gap", self.gap_id.0);
        to.text("kind", &self.kind);
        to.text("length", &length(self.start_ns, self.end_ns).to_string());
        to.integer("length_ns", length(self.start_ns, self.end_ns).0);
        to.text("mostly", &self.cause);
        to.text("stage", &self.stage);
        to.text_if("enabler", self.enabler.as_deref());
        to.integer_if("op_before", self.prev_op.map(|op| op.0));
        to.integer_if("op_after", self.next_op.map(|op| op.0));
    }
}

impl Describe for GapSegment {
    fn describe(&self, to: &mut dyn Details) {
        to.integer("gap", self.gap_id.0);
        to.integer("segment", i64::from(self.seq));
        to.text("cause", &self.cause);
        to.text("stage", &self.stage);
        to.text_if("object", self.object.as_deref());
        to.text("length", &length(self.start_ns, self.end_ns).to_string());
        to.integer("length_ns", length(self.start_ns, self.end_ns).0);
        to.text("confidence", &self.confidence);
        to.list("chain", &mut self.path.iter().map(hop_in_words));
        to.list("evidence", &mut self.evidence.iter().map(|row| format!("{} {}", row.table, row.row)));
    }
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
