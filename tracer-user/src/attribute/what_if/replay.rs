//! The recording played again with some of its time taken out.
//!
//! Every span of a thread and every op keeps what it waits for: its own time, another thread's wake-up, an op's end, the
//! place in the stream. All of these lie at the same recorded moment or before it, so that one pass in the order of recorded
//! time gives each moment its new one. With nothing taken out, every moment is where it was.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::spans::{Spans, Until, running_before};
use super::{Key, Removed};
use crate::attribute::cause::Cause;
use crate::attribute::launch;
use crate::attribute::timeline::{CopyKind, NO_INDEX, Op, OpClass, ThreadIndex, Timeline};
use crate::event::{Interval, MonoNs};

/// What is played, in the order of recorded time.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// An op starts: an index into [`Graph::ops`].
    Op(u32),
    /// A span ends: an index into [`Graph::spans`].
    Span(u32),
}

#[derive(Clone, Copy, Debug)]
struct GraphSpan {
    time: Interval,
    until: Until,
    key: Key,
    thread: u32,
}

/// An op with what it waited for.
#[derive(Clone, Copy, Debug)]
struct GraphOp {
    time: Interval,
    key: Option<Key>,
    /// Where in the launching thread's time it was submitted.
    launched: Option<(u32, MonoNs)>,
    /// Ops that had to end first, indices into [`Graph::ops`].
    after: [u32; 2],
}

/// A thread's spans, as a range of [`Graph::spans`].
#[derive(Clone, Debug)]
struct GraphThread {
    spans: std::ops::Range<usize>,
}

/// The dependencies of a part of a recording.
pub struct Graph {
    window: Interval,
    threads: Vec<GraphThread>,
    spans: Vec<GraphSpan>,
    ops: Vec<GraphOp>,
    order: Vec<Event>,
}

/// When everything happens in a replay.
pub struct Replay<'a> {
    graph: &'a Graph,
    removed: &'a Removed,
    /// New start of each span.
    starts: Vec<MonoNs>,
    /// New end of the last span of each thread that was played.
    ends: Vec<MonoNs>,
    /// The next span of each thread.
    next: Vec<usize>,
    /// Spans whose end was held by what they waited for.
    held: Vec<bool>,
    op_starts: Vec<MonoNs>,
    op_ends: Vec<MonoNs>,
}

impl Graph {
    /// The dependencies of what lies within `window`.
    #[must_use]
    pub fn new(timeline: &Timeline, spans: &Spans, window: Interval) -> Self {
        let mut names: Vec<ThreadIndex> = spans.keys().copied().collect();
        names.sort_unstable();
        let numbers: HashMap<ThreadIndex, u32, RandomState> = names.iter().copied().zip(0..).collect();
        let mut graph =
            Self { window, threads: Vec::new(), spans: Vec::new(), ops: Vec::new(), order: Vec::new() };
        let mut places: HashMap<u32, u32, RandomState> = HashMap::default();
        for (index, op) in timeline.ops.iter().enumerate() {
            if op.start() >= window.start && op.end() <= window.end {
                places.insert(index as u32, graph.ops.len() as u32);
                graph.ops.push(graph_op(timeline, index, &numbers));
            }
        }
        // A wait for an op outside is the thread's own time.
        for op in &mut graph.ops {
            op.after = op.after.map(|index| places.get(&index).copied().unwrap_or(NO_INDEX));
        }
        for (number, name) in (0..).zip(&names) {
            let first = graph.spans.len();
            graph.spans.extend(spans[name].iter().map(|span| {
                GraphSpan {
                    time: span.time,
                    until: match span.until {
                        Until::Op(op) => places.get(&op).map_or(Until::Itself, |&place| Until::Op(place)),
                        Until::Thread(thread) => numbers
                            .get(&thread)
                            .map_or(Until::Itself, |&number| Until::Thread(ThreadIndex(number))),
                        Until::Itself => Until::Itself,
                    },
                    key: span.key,
                    thread: number,
                }
            }));
            graph.threads.push(GraphThread { spans: first..graph.spans.len() });
        }
        graph.order = (0..graph.ops.len() as u32).map(Event::Op).collect();
        graph.order.extend((0..graph.spans.len() as u32).map(Event::Span));
        let (spans, ops) = (&graph.spans, &graph.ops);
        graph.order.sort_by_key(|event| match *event {
            Event::Op(op) => (ops[op as usize].time.start, 0, op),
            Event::Span(span) => (spans[span as usize].time.end, 1, span),
        });
        graph
    }

    /// Plays it without what is removed.
    #[must_use]
    pub fn replay<'a>(&'a self, removed: &'a Removed) -> Replay<'a> {
        let mut replay = Replay {
            graph: self,
            removed,
            starts: vec![self.window.start; self.spans.len()],
            ends: vec![self.window.start; self.threads.len()],
            next: self.threads.iter().map(|thread| thread.spans.start).collect(),
            held: vec![false; self.spans.len()],
            op_starts: vec![self.window.start; self.ops.len()],
            op_ends: vec![self.window.start; self.ops.len()],
        };
        for event in &self.order {
            match *event {
                Event::Op(op) => replay.op(op as usize),
                Event::Span(span) => replay.span(span as usize),
            }
        }
        replay
    }
}

fn graph_op(timeline: &Timeline, index: usize, numbers: &HashMap<ThreadIndex, u32, RandomState>) -> GraphOp {
    let op = &timeline.ops[index];
    let launched = (op.launch != NO_INDEX)
        .then(|| &timeline.api[op.launch as usize])
        .and_then(|call| Some((*numbers.get(&call.thread)?, call.time.end.min(op.start()))));
    let before = timeline.stream_predecessors[index];
    let before = if before != NO_INDEX && timeline.ops[before as usize].end() <= op.start() {
        before
    } else {
        NO_INDEX
    };
    GraphOp { time: op.time, key: key_of(op), launched, after: [before, event_of(timeline, index)] }
}

/// The op that an event stood for, for which the stream of `op` was told to wait: the one that ended last before it.
fn event_of(timeline: &Timeline, index: usize) -> u32 {
    let op = &timeline.ops[index];
    let elsewhere = launch::producer_elsewhere(timeline, index, MonoNs::MIN);
    let here = || {
        launch::waits_for_event(timeline, index)?;
        running_before(timeline, op.device, op.start())
            .filter(|&other| other != index && timeline.ops[other].end() <= op.start())
    };
    elsewhere.or_else(here).map_or(NO_INDEX, |other| other as u32)
}

/// What an op's own time is called where it is exposed; `None` for computing.
fn key_of(op: &Op) -> Option<Key> {
    let cause = match (op.class, op.copy) {
        (OpClass::Compute, _) => return None,
        (OpClass::Communication, _) => Cause::CommWaitOrTransfer,
        (OpClass::Copy, CopyKind::Pageable) => Cause::CopyPageable,
        (OpClass::Copy, CopyKind::Migration) => Cause::GpuMigration,
        (OpClass::Copy, CopyKind::Peer) => Cause::CopyPeer,
        (OpClass::Copy, CopyKind::Device) => Cause::CopyDevice,
        (OpClass::Copy, CopyKind::Memset) => Cause::CopyMemset,
        (OpClass::Copy, CopyKind::Pinned | CopyKind::None) => Cause::CopyPinned,
    };
    Some(Key::of(cause, None))
}

impl Replay<'_> {
    fn op(&mut self, index: usize) {
        let graph = self.graph;
        let op = &graph.ops[index];
        let (ready, recorded) = self.ready(op);
        // What passed from the last of these to its start stays.
        let latency = op.time.start - recorded.min(op.time.start);
        self.op_starts[index] = ready + latency;
        let gone = op.key.is_some_and(|key| self.removed.has(key));
        self.op_ends[index] = if gone { ready + latency } else { ready + latency + op.time.length() };
    }

    /// When all that an op waited for was done, here and as recorded.
    fn ready(&self, op: &GraphOp) -> (MonoNs, MonoNs) {
        let start = self.graph.window.start;
        let (mut ready, mut recorded) = (start, start);
        if let Some((thread, moment)) = op.launched {
            ready = ready.max(self.at(thread as usize, moment));
            recorded = recorded.max(moment);
        }
        for &before in op.after.iter().filter(|&&before| before != NO_INDEX) {
            ready = ready.max(self.op_ends[before as usize]);
            recorded = recorded.max(self.graph.ops[before as usize].time.end);
        }
        (ready, recorded)
    }

    fn span(&mut self, index: usize) {
        let span = self.graph.spans[index];
        let thread = span.thread as usize;
        let start = self.ends[thread];
        let end = match span.until {
            Until::Itself => start + self.kept(&span, span.time.end),
            Until::Thread(waker) => start.max(self.at(waker.0 as usize, span.time.end)),
            Until::Op(op) => start.max(self.op_ends[op as usize]),
        };
        self.starts[index] = start;
        self.held[index] = span.until != Until::Itself && end > start;
        self.ends[thread] = end;
        self.next[thread] = index + 1;
    }

    /// How much of a span's own time up to `moment` stays.
    fn kept(&self, span: &GraphSpan, moment: MonoNs) -> crate::event::DurationNs {
        let own = span.until == Until::Itself;
        let end = if own && self.removed.has(span.key) { span.time.start } else { moment.min(span.time.end) };
        end - span.time.start.min(end)
    }

    /// When a thread reaches a recorded moment, which must not lie beyond the span that it is in.
    fn at(&self, thread: usize, moment: MonoNs) -> MonoNs {
        let next = self.next[thread];
        let spans = &self.graph.threads[thread].spans;
        if spans.contains(&next) && self.graph.spans[next].time.start <= moment {
            return self.ends[thread] + self.kept(&self.graph.spans[next], moment);
        }
        // An earlier one.
        let past = &self.graph.spans[spans.start..next];
        let index = past.partition_point(|span| span.time.start <= moment);
        let Some(index) = index.checked_sub(1).map(|index| spans.start + index) else {
            return self.graph.window.start;
        };
        let end = if index + 1 < next { self.starts[index + 1] } else { self.ends[thread] };
        (self.starts[index] + self.kept(&self.graph.spans[index], moment)).min(end)
    }

    /// When the last op ends.
    #[must_use]
    pub fn end(&self) -> MonoNs {
        self.op_ends.iter().copied().max().unwrap_or(self.graph.window.start)
    }

    /// When each op starts and ends.
    #[cfg(test)]
    pub fn ops(&self) -> impl Iterator<Item = (Interval, Interval)> {
        let times = self.op_starts.iter().zip(&self.op_ends).map(|(&start, &end)| Interval { start, end });
        self.graph.ops.iter().map(|op| op.time).zip(times)
    }

    /// The chain of waits that leads to the last end, summed up by why each of its pieces took time. The devices' computing
    /// is left out.
    #[must_use]
    pub fn critical_path(&self) -> HashMap<Key, i64, RandomState> {
        let mut sums = HashMap::default();
        let mut at = (0..self.op_ends.len()).max_by_key(|&op| self.op_ends[op]).map(Place::Op);
        // Every step goes back in recorded time, or to the span before on the same thread.
        for _ in 0..2 * self.graph.order.len() {
            let Some(place) = at else { break };
            at = match place {
                Place::Op(op) => self.before_op(op, &mut sums),
                Place::Thread(thread, moment) => self.before_moment(thread, moment, &mut sums),
            };
        }
        sums
    }

    fn before_op(&self, index: usize, sums: &mut HashMap<Key, i64, RandomState>) -> Option<Place> {
        let op = &self.graph.ops[index];
        let (ready, _) = self.ready(op);
        if let Some(key) = op.key {
            *sums.entry(key).or_default() += (self.op_ends[index] - self.op_starts[index]).0;
        }
        let latency = (self.op_starts[index] - ready).0;
        *sums.entry(Key::of(Cause::GpuSubmitLatency, None)).or_default() += latency;
        let before =
            op.after.iter().find(|&&before| before != NO_INDEX && self.op_ends[before as usize] == ready);
        match (before, op.launched) {
            (Some(&before), _) => Some(Place::Op(before as usize)),
            (None, Some((thread, moment))) => Some(Place::Thread(thread as usize, moment)),
            (None, None) => None,
        }
    }

    fn before_moment(
        &self,
        thread: usize,
        moment: MonoNs,
        sums: &mut HashMap<Key, i64, RandomState>,
    ) -> Option<Place> {
        let spans = &self.graph.threads[thread].spans;
        let begun = self.graph.spans[spans.clone()].partition_point(|span| span.time.start < moment);
        let index = spans.start + begun.checked_sub(1)?;
        let span = &self.graph.spans[index];
        match span.until {
            Until::Itself => *sums.entry(span.key).or_default() += self.kept(span, moment).0,
            // Only the end of a wait is held.
            Until::Thread(waker) if self.held[index] && moment >= span.time.end => {
                return Some(Place::Thread(waker.0 as usize, span.time.end));
            }
            Until::Op(op) if self.held[index] && moment >= span.time.end => {
                return Some(Place::Op(op as usize));
            }
            Until::Thread(_) | Until::Op(_) => {}
        }
        Some(Place::Thread(thread, span.time.start))
    }
}

/// A place on the critical path.
enum Place {
    Op(usize),
    Thread(usize, MonoNs),
}
