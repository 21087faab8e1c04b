//! Kernels of collectives: how the simulated NCCL tells the simulated driver for whom a kernel waits.
//!
//! On real hardware a kernel of NCCL spins on flags that its peers write over NVLink or PCIe. Here the flags are [`Cell`]s
//! in memory that the processes of the ranks share: a kernel that starts writes when it started, and it ends when all that
//! it waits for have started and the bytes have moved.

use core::sync::atomic::{AtomicU32, AtomicU64};

/// What the names of such kernels hold.
pub const COLLECTIVE_KERNEL: &str = "ncclDevKernel";

/// Begins [`CollectiveArgs`].
pub const COLLECTIVE_MAGIC: u64 = u64::from_le_bytes(*b"simcoll1");

/// Operations of one kind that a rank can be ahead of another: it starts none before the one before has ended, and that
/// ends when all have started it. So two would do.
pub const SLOTS: usize = 4;

/// When one rank started an operation, in shared memory. All zero: it has started none.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Cell {
    /// Number of the operation, from 1; written last.
    pub sequence: AtomicU64,
    /// When the kernel started, CLOCK_MONOTONIC, ns.
    pub started: AtomicU64,
}

/// One collective, or one half of a send and receive. A kernel can hold several.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CollectivePart {
    /// How many of its kind this rank has started. Numbers are given at the start and not at the launch, so that launches of
    /// a graph count anew.
    pub counter: *const AtomicU64,
    /// Where this rank writes: [`SLOTS`] cells.
    pub own: *const Cell,
    /// For whom it waits: an array of pointers to [`SLOTS`] cells each.
    pub peers: *const *const Cell,
    /// Length of `peers`.
    pub peer_count: usize,
    /// Words to be changed and woken when all are there.
    pub bells: *const *const AtomicU32,
    /// Length of `bells`.
    pub bell_count: usize,
}

/// To this the first argument of such a kernel points. Read at the launch; only cells, counters and bells live on.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CollectiveArgs {
    /// [`COLLECTIVE_MAGIC`].
    pub magic: u64,
    /// From the start of the last to the end, ns.
    pub transfer_ns: u64,
    /// What it consists of.
    pub parts: *const CollectivePart,
    /// Length of `parts`.
    pub part_count: usize,
}
