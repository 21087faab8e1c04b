//! Causal chains, shared: a hop knows the hop before it, so that the segments of a gap, which mostly agree in their first
//! hops, store each hop once.

use super::names::{Name, Names};
use crate::event::{Pid, Text, Tid};
use crate::store::schema;

/// What the thread of a hop did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HopState {
    /// Waited.
    Blocked,
    /// Wanted a CPU.
    Runnable,
    /// Was on a CPU.
    Running,
    /// The hop is no thread.
    Device,
    /// Not known.
    Unknown,
}

impl HopState {
    /// Its name in the table.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Blocked => "blocked",
            Self::Runnable => "runnable",
            Self::Running => "running",
            Self::Device => "device",
            Self::Unknown => "unknown",
        }
    }
}

/// The edge from a collective to the rank that it waited for.
pub const LATE_RANK: &str = "late rank";

/// How the next hop ended this one's wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// It is the leaf.
    None,
    /// A task woke it.
    Task,
    /// A block request completed.
    Block,
    /// A packet or connection event came.
    Network,
    /// A timer ran out.
    Timer,
    /// The GPU finished.
    Gpu,
    /// Another interrupt.
    Interrupt,
    /// The next hop's process was made by this one.
    Parent,
    /// A collective waited for the rank of the next hop.
    LateRank,
}

impl Edge {
    /// Its name in the table.
    #[must_use]
    pub const fn as_str(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Task => Some("woken by task"),
            Self::Block => Some("block completion"),
            Self::Network => Some("network receive"),
            Self::Timer => Some("timer"),
            Self::Gpu => Some("device"),
            Self::Interrupt => Some("interrupt"),
            Self::Parent => Some("created by"),
            Self::LateRank => Some(LATE_RANK),
        }
    }
}

/// Tables that evidence can be of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EvidenceTable {
    /// `gpu_ops`
    GpuOps,
    /// `cuda_api`
    CudaApi,
    /// `cuda_overhead`
    CudaOverhead,
    /// `off_cpu`
    OffCpu,
    /// `syscalls`
    Syscalls,
    /// `block_io`
    BlockIo,
    /// `markers`
    Markers,
    /// `memory_stalls`
    MemoryStalls,
    /// `interrupts`
    Interrupts,
    /// `samples`
    Samples,
}

impl EvidenceTable {
    /// Its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::GpuOps => "gpu_ops",
            Self::CudaApi => "cuda_api",
            Self::CudaOverhead => "cuda_overhead",
            Self::OffCpu => "off_cpu",
            Self::Syscalls => "syscalls",
            Self::BlockIo => "block_io",
            Self::Markers => "markers",
            Self::MemoryStalls => "memory_stalls",
            Self::Interrupts => "interrupts",
            Self::Samples => "samples",
        }
    }
}

/// A row that a hop rests on.
pub type EvidenceRow = Option<(EvidenceTable, i64)>;

/// A hop's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathId(u32);

impl PathId {
    /// Before the first hop.
    pub const ROOT: Self = Self(u32::MAX);

    /// Its place after `len` hops were put before all.
    #[must_use]
    pub const fn after(self, len: usize) -> Self {
        if self.0 == Self::ROOT.0 { self } else { Self(self.0 + len as u32) }
    }
}

/// One hop of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathHop {
    /// The hop before it.
    pub parent: PathId,
    /// Process, 0 if it is no thread.
    pub pid: Pid,
    /// Thread, 0 if it is no thread.
    pub tid: Tid,
    /// The thread's or the device's name.
    pub thread: Name,
    /// What it did.
    pub state: HopState,
    /// System call or CUDA call.
    pub call: Name,
    /// What it waited for or worked on.
    pub object: Name,
    /// How the next hop ended its wait.
    pub edge: Edge,
    /// The rows that it rests on.
    pub evidence: [EvidenceRow; 2],
}

/// All hops.
#[derive(Clone, Debug, Default)]
pub struct Paths {
    hops: Vec<PathHop>,
}

impl Paths {
    /// Adds a hop.
    pub fn push(&mut self, hop: PathHop) -> PathId {
        let id = PathId(self.hops.len() as u32);
        self.hops.push(hop);
        id
    }

    /// Takes out what was added since there were `len` hops.
    pub fn truncate(&mut self, len: usize) {
        self.hops.truncate(len);
    }

    /// Adds the hops of another, whose strings are named anew by `rename`. What was [`PathId`] `id` there is
    /// [`PathId::after`] `len` here, with the length before.
    pub fn extend(&mut self, other: &Self, mut rename: impl FnMut(Name) -> Name) {
        let len = self.len();
        self.hops.extend(other.hops.iter().map(|hop| PathHop {
            parent: hop.parent.after(len),
            thread: rename(hop.thread),
            call: rename(hop.call),
            object: rename(hop.object),
            ..*hop
        }));
    }

    /// How many hops there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.hops.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.hops.is_empty()
    }

    /// A hop.
    #[must_use]
    pub fn get(&self, id: PathId) -> Option<&PathHop> {
        self.hops.get(id.0 as usize)
    }

    /// The hops from `id` back to the root.
    pub fn backwards(&self, id: PathId) -> impl Iterator<Item = &PathHop> {
        std::iter::successors(self.get(id), |hop| self.get(hop.parent))
    }

    /// The chain that ends at `id`, as it is stored.
    #[must_use]
    pub fn to_rows(&self, id: PathId, names: &Names) -> Vec<schema::Hop> {
        let mut rows = Vec::with_capacity(self.backwards(id).count());
        rows.extend(self.backwards(id).map(|hop| schema::Hop {
            pid: hop.pid,
            tid: hop.tid,
            thread: names.to_text(hop.thread).unwrap_or_default(),
            state: Text::fixed(hop.state.as_str()),
            call: names.to_text(hop.call),
            object: names.to_text(hop.object),
            edge: hop.edge.as_str().map(Text::fixed),
        }));
        rows.reverse();
        rows
    }

    /// The rows that the chain rests on, from its end on.
    pub fn evidence(&self, id: PathId) -> impl Iterator<Item = (EvidenceTable, i64)> {
        self.backwards(id).flat_map(|hop| hop.evidence.iter().rev().flatten().copied())
    }
}
