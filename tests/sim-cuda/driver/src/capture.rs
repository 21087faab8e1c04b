//! Stream capture and graphs.

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sim_abi::{OpInfo, OpKind};

use crate::device::channel::{GraphSpan, Mark, Work};
use crate::device::machine::{self, Submission};
use crate::error::{self, Result};
use crate::handle::Table;
use crate::hook;
use crate::stream::Stream;
use crate::submit;

/// All graphs.
pub static GRAPHS: Table<Graph> = Table::new(4);
/// All executable graphs.
pub static EXECS: Table<GraphExec> = Table::new(5);

/// One node of a graph.
#[derive(Clone)]
pub struct Node {
    /// What it does.
    pub work: Work,
    /// What CUPTI hears of it.
    pub info: Option<OpInfo>,
    /// Nodes before it, by index.
    pub deps: Vec<usize>,
    /// Number, unique in the process.
    pub id: u64,
}

// SAFETY: the name in `info` points to an interned, immutable string that lives as long as the process.
unsafe impl Send for Node {}
// SAFETY: as above.
unsafe impl Sync for Node {}

/// A graph.
pub struct Graph {
    /// Handle.
    pub handle: *mut c_void,
    /// Nodes; each comes after those that it depends on.
    nodes: Mutex<Arc<Vec<Node>>>,
}

impl Graph {
    /// A graph without nodes.
    pub fn empty() -> Arc<Self> {
        GRAPHS.insert(|handle| Self { handle, nodes: Mutex::default() })
    }

    /// Its present nodes.
    pub fn nodes(&self) -> Arc<Vec<Node>> {
        Arc::clone(&self.nodes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds a node after others, which are named by their numbers. The result is its own number.
    pub fn add(&self, work: Work, info: Option<OpInfo>, after: &[u64]) -> Result<u64> {
        let mut nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        let place = |id: &u64| nodes.iter().position(|node| node.id == *id).ok_or(error::INVALID_VALUE);
        let deps = after.iter().map(place).collect::<Result<Vec<usize>>>()?;
        let id = next_node();
        Arc::make_mut(&mut nodes).push(Node { work, info, deps, id });
        Ok(id)
    }

    /// Another graph with the same nodes.
    pub fn copy(&self) -> Arc<Self> {
        let nodes = self.nodes();
        GRAPHS.insert(|handle| Self { handle, nodes: Mutex::new(nodes) })
    }
}

/// A number for a node.
fn next_node() -> u64 {
    static ID: AtomicU64 = AtomicU64::new(1);
    ID.fetch_add(1, Ordering::Relaxed)
}

// SAFETY: the handle is a number, never looked into.
unsafe impl Send for Graph {}
// SAFETY: as above; the rest is fixed.
unsafe impl Sync for Graph {}

/// An executable graph.
pub struct GraphExec {
    /// Number, from 1.
    pub id: u32,
    nodes: Mutex<Arc<Vec<Node>>>,
}

#[derive(Default)]
struct Building {
    nodes: Vec<Node>,
    tails: HashMap<u64, Vec<usize>>,
    streams: Vec<Arc<Stream>>,
}

/// A capture that is going on.
pub struct Capture {
    /// Number, from 1.
    pub id: u64,
    origin: u64,
    building: Mutex<Building>,
}

/// A point in a capture: what an event recorded during it holds.
#[derive(Clone)]
pub struct Captured {
    capture: Arc<Capture>,
    nodes: Vec<usize>,
}

impl Captured {
    /// Draws a stream that does not capture into this capture.
    pub fn join(&self, stream: &Arc<Stream>) -> Result {
        let mut building = self.capture.building();
        if building.streams.is_empty() {
            return Err(error::CAPTURED_EVENT);
        }
        building.tails.insert(stream.handle as u64, self.nodes.clone());
        building.streams.push(Arc::clone(stream));
        stream.set_capture(Some(Arc::clone(&self.capture)));
        Ok(())
    }
}

impl Capture {
    /// Begins a capture in a stream.
    pub fn begin(stream: &Arc<Stream>) -> Result {
        static ID: AtomicU64 = AtomicU64::new(1);
        if stream.capture().is_some() {
            return Err(error::CAPTURE_INVALIDATED);
        }
        let building = Building { streams: vec![Arc::clone(stream)], ..Building::default() };
        let id = ID.fetch_add(1, Ordering::Relaxed);
        let capture = Self { id, origin: stream.handle as u64, building: Mutex::new(building) };
        stream.set_capture(Some(Arc::new(capture)));
        Ok(())
    }

    fn building(&self) -> MutexGuard<'_, Building> {
        self.building.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a node at the end of a stream.
    pub fn add(&self, stream: &Stream, work: Work, info: Option<OpInfo>) {
        let mut building = self.building();
        let index = building.nodes.len();
        let deps = building.tails.insert(stream.handle as u64, vec![index]).unwrap_or_default();
        let id = next_node();
        building.nodes.push(Node { work, info, deps, id });
    }

    /// The present end of a stream.
    pub fn tail(self: &Arc<Self>, stream: &Stream) -> Captured {
        let nodes = self.building().tails.get(&(stream.handle as u64)).cloned().unwrap_or_default();
        Captured { capture: Arc::clone(self), nodes }
    }

    /// Lets a stream of this capture wait for a point of it.
    pub fn wait(self: &Arc<Self>, stream: &Stream, captured: &Captured) -> Result {
        if !Arc::ptr_eq(self, &captured.capture) {
            return Err(error::CAPTURE_ISOLATION);
        }
        let mut building = self.building();
        let tail = building.tails.entry(stream.handle as u64).or_default();
        tail.extend(captured.nodes.iter().filter(|node| !tail.contains(node)).copied().collect::<Vec<_>>());
        Ok(())
    }

    /// Ends the capture in the stream that it began in.
    pub fn end(&self, stream: &Stream) -> Result<Arc<Graph>> {
        if stream.handle as u64 != self.origin {
            return Err(error::CAPTURE_UNJOINED);
        }
        let building = std::mem::take(&mut *self.building());
        for member in &building.streams {
            member.set_capture(None);
        }
        let mut joined = vec![false; building.nodes.len()];
        let mut open = building.tails.get(&self.origin).cloned().unwrap_or_default();
        while let Some(node) = open.pop() {
            if !std::mem::replace(&mut joined[node], true) {
                open.extend(&building.nodes[node].deps);
            }
        }
        if joined.contains(&false) {
            return Err(error::CAPTURE_UNJOINED);
        }
        Ok(GRAPHS.insert(|handle| Graph { handle, nodes: Mutex::new(Arc::new(building.nodes)) }))
    }
}

impl GraphExec {
    /// Makes a graph executable. The result is its handle.
    pub fn instantiate(graph: &Graph) -> *mut c_void {
        static ID: AtomicU32 = AtomicU32::new(1);
        let id = ID.fetch_add(1, Ordering::Relaxed);
        let mut made = std::ptr::null_mut();
        EXECS.insert(|handle| {
            made = handle;
            Self { id, nodes: Mutex::new(graph.nodes()) }
        });
        made
    }

    /// Takes over what another graph's nodes do, if it has the same nodes in the same order: kinds and dependencies. Launches
    /// in flight go on as they were. `false`: it has others.
    pub fn update(&self, graph: &Graph) -> bool {
        let mut present = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = graph.nodes();
        let same = |(a, b): (&Node, &Node)| {
            std::mem::discriminant(&a.work) == std::mem::discriminant(&b.work) && a.deps == b.deps
        };
        if present.len() != wanted.len() || !present.iter().zip(wanted.iter()).all(same) {
            return false;
        }
        // The numbers stay: they are the executable graph's.
        let ids: Vec<u64> = present.iter().map(|node| node.id).collect();
        let renamed = wanted.iter().zip(ids).map(|(node, id)| Node { id, ..node.clone() });
        *present = Arc::new(renamed.collect());
        true
    }

    /// Runs it once, in the order of a stream.
    pub fn launch(&self, stream: &Arc<Stream>) -> Result {
        if stream.capture().is_some() {
            return Err(error::CAPTURE_UNSUPPORTED);
        }
        let nodes = Arc::clone(&self.nodes.lock().unwrap_or_else(PoisonError::into_inner));
        let works = nodes.iter().filter(|node| node.info.is_some()).count() as u32;
        let mut info = submit::describe(OpKind::Graph, stream);
        info.graph_id = self.id;
        let token = if works > 0 { hook::op_submit(&info) } else { 0 };
        let span = (token != 0).then(|| GraphSpan::new(token, stream.device, works));
        let prepared: Vec<(Submission, &Node)> =
            nodes.iter().map(|node| (self.prepare(node, stream, span.as_ref()), node)).collect();

        let start = submit::enqueue(stream, Submission::plain(Work::Marker { point: None, data: None }));
        let mut machine = machine::lock();
        let mut marks: Vec<Mark> = Vec::with_capacity(prepared.len());
        let mut branches = vec![(stream.channel, start)];
        for (mut submission, node) in prepared {
            let deps: Vec<Mark> = node.deps.iter().map(|dep| marks[*dep]).collect();
            // A node follows on in the branch that ends in one of its dependencies; else it begins a new one.
            let follows = |tail: &Mark| deps.contains(tail) || (deps.is_empty() && *tail == start);
            let branch = branches.iter().position(|(_, tail)| follows(tail)).unwrap_or_else(|| {
                branches.push((machine.open(stream.device, stream.priority), start));
                branches.len() - 1
            });
            let (channel, tail) = branches[branch];
            submission.deps = if deps.is_empty() { vec![start] } else { deps };
            submission.deps.retain(|dep| *dep != tail || dep.channel != channel);
            let mark = machine.submit(channel, submission);
            branches[branch].1 = mark;
            marks.push(mark);
        }
        let mut join = Submission::plain(Work::Marker { point: None, data: None });
        join.deps = branches.iter().skip(1).map(|(_, tail)| *tail).collect();
        machine.submit(stream.channel, join);
        for (channel, _) in branches.iter().skip(1) {
            machine.close(*channel);
        }
        Ok(())
    }

    fn prepare(&self, node: &Node, stream: &Stream, span: Option<&Arc<GraphSpan>>) -> Submission {
        let mut submission = Submission::plain(node.work.clone());
        if let Work::Host(call) = &mut submission.work {
            (call.info.graph_id, call.info.graph_node_id) = (self.id, node.id);
            (call.info.stream, call.info.correlation_id) = (stream.id, hook::correlation_id());
        }
        match (node.info, span) {
            (Some(_), Some(span)) => submission.span = Some(Arc::clone(span)),
            (Some(mut info), None) => {
                (info.graph_id, info.graph_node_id) = (self.id, node.id);
                (info.stream, info.correlation_id) = (stream.id, hook::correlation_id());
                submission.token = hook::op_submit(&info);
            }
            (None, _) => {}
        }
        submission
    }
}
