//! Segments in their compact form, as the walk makes them.

use super::cause::Cause;
use super::names::{Name, Names};
use super::path::{Edge, EvidenceRow, HopState, PathHop, PathId, Paths};
use super::role::Roles;
use super::stage::Stage;
use super::timeline::{ThreadIndex, Timeline};
use super::what_if::Key;
use crate::event::{Interval, Pid, Tid};

/// A piece of a gap with one cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Which gap, as an index.
    pub gap: u32,
    /// When.
    pub time: Interval,
    /// Why.
    pub cause: Cause,
    /// What the program was at.
    pub stage: Stage,
    /// File, peer, culprit …
    pub object: Name,
    /// Its chain.
    pub path: PathId,
    /// Rests on overlap in time somewhere, not only on recorded edges.
    pub inferred: bool,
}

/// The end of a chain before it is a segment.
#[derive(Clone, Copy, Debug)]
pub struct Leaf {
    /// Why.
    pub cause: Cause,
    /// The cause's object.
    pub object: Name,
    /// Process of the last hop, 0 if it is no thread.
    pub pid: Pid,
    /// Thread of the last hop.
    pub tid: Tid,
    /// Name of the last hop's thread or device.
    pub thread: Name,
    /// What it did.
    pub state: HopState,
    /// In which call.
    pub call: Name,
    /// What the last hop waited for or worked on, where that is not the cause's object.
    pub hop_object: Name,
    /// The rows that it rests on.
    pub evidence: [EvidenceRow; 2],
    /// Rests on overlap in time.
    pub inferred: bool,
}

impl Leaf {
    /// A leaf that is a thread.
    #[must_use]
    pub fn thread(timeline: &Timeline, thread: ThreadIndex, state: HopState, cause: Cause) -> Self {
        let rows = timeline.thread(thread);
        Self { pid: rows.pid, tid: rows.tid, ..Self::device(rows.name, cause).with_state(state) }
    }

    /// A leaf that is a device, or anything that is no thread.
    #[must_use]
    pub fn device(name: Name, cause: Cause) -> Self {
        Self {
            cause,
            object: Name::NONE,
            pid: Pid(0),
            tid: Tid(0),
            thread: name,
            state: HopState::Device,
            call: Name::NONE,
            hop_object: Name::NONE,
            evidence: [None, None],
            inferred: false,
        }
    }

    /// With this state.
    #[must_use]
    pub fn with_state(self, state: HopState) -> Self {
        Self { state, ..self }
    }

    /// In this call.
    #[must_use]
    pub fn in_call(self, call: Name) -> Self {
        Self { call, ..self }
    }

    /// With this object, of the cause and of the last hop.
    #[must_use]
    pub fn on(self, object: Name) -> Self {
        Self { object, hop_object: object, ..self }
    }

    /// Resting on this row too.
    #[must_use]
    pub fn resting_on(mut self, row: impl Into<EvidenceRow>) -> Self {
        let row = row.into();
        if self.evidence[0].is_none() {
            self.evidence[0] = row;
        } else {
            self.evidence[1] = row;
        }
        self
    }

    /// Resting on overlap in time.
    #[must_use]
    pub fn inferred(self) -> Self {
        Self { inferred: true, ..self }
    }

    /// The hop at the end of a chain.
    #[must_use]
    pub fn hop(&self, parent: PathId) -> PathHop {
        PathHop {
            parent,
            pid: self.pid,
            tid: self.tid,
            thread: self.thread,
            state: self.state,
            call: self.call,
            object: self.hop_object,
            edge: Edge::None,
            evidence: self.evidence,
        }
    }
}

impl Segment {
    /// The thread at the end of its chain.
    #[must_use]
    pub fn thread(&self, paths: &Paths) -> Option<(Pid, Tid)> {
        paths.backwards(self.path).find(|hop| hop.tid.0 != 0).map(|hop| (hop.pid, hop.tid))
    }

    /// What would have to go for it to be gone.
    #[must_use]
    pub fn key(&self, paths: &Paths, timeline: &Timeline, roles: &Roles) -> Key {
        let role = self.thread(paths).and_then(|(pid, tid)| roles.get(timeline.find_thread(pid, tid)?));
        Key::of(self.cause, role)
    }

    /// Whether `leaf` after `parent` would say the same as this segment.
    #[must_use]
    pub fn says_the_same(&self, paths: &Paths, parent: PathId, leaf: &Leaf, inferred: bool) -> bool {
        if (self.cause, self.object, self.inferred) != (leaf.cause, leaf.object, inferred) {
            return false;
        }
        paths.get(self.path).is_some_and(|hop| {
            let evidence = hop.evidence;
            *hop == PathHop { evidence, ..leaf.hop(parent) }
        })
    }
}

/// The name of a task for an object: `4711/python3`.
pub fn task_name(names: &mut Names, pid: Pid, comm: Name) -> Name {
    let text = format!("{pid}/{}", names.get(comm));
    names.str(&text)
}
