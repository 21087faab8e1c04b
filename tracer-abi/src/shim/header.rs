//! The head of a ring.

use core::sync::atomic::{AtomicI32, AtomicU32, AtomicU64};

use super::record::Class;
use super::text::SharedText;
use super::{RING_HEADER_BYTES, RING_MAX_BYTES, RING_MIN_BYTES};

/// What a shim does.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShimState {
    /// Binding CUPTI.
    Starting = 0,
    /// Bound; waits for a recorder.
    Idle = 1,
    /// Collecting.
    Collecting = 2,
    /// Cannot collect: `refusal` says why.
    Refused = 3,
    /// The process is exiting; everything that CUPTI had was written.
    Ended = 4,
}

impl ShimState {
    /// The state for a raw number; `None` for one that this version does not know.
    #[must_use]
    pub const fn from_raw(raw: u32) -> Option<Self> {
        Some(match raw {
            0 => Self::Starting,
            1 => Self::Idle,
            2 => Self::Collecting,
            3 => Self::Refused,
            4 => Self::Ended,
            _ => return None,
        })
    }
}

/// On which clock CUPTI's times are.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockKind {
    /// Not known yet.
    Unknown = 0,
    /// CLOCK_MONOTONIC of the process, by a time-stamp callback (CUPTI 11.6 and newer, registered before any context).
    Monotonic = 1,
    /// CLOCK_REALTIME, CUPTI's default on Linux.
    Realtime = 2,
}

impl ClockKind {
    /// The clock for a raw number; an unknown one is [`ClockKind::Unknown`].
    #[must_use]
    pub const fn from_raw(raw: u32) -> Self {
        match raw {
            1 => Self::Monotonic,
            2 => Self::Realtime,
            _ => Self::Unknown,
        }
    }
}

/// How much a shim collects.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CollectMode {
    /// Everything.
    Full = 0,
    /// Device work, and of the calls those that launch, wait, allocate or free: no synchronisation or overhead records.
    Light = 1,
    /// Nothing.
    Paused = 2,
}

/// What a shim collects, as one number in the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collection {
    /// How much.
    pub mode: CollectMode,
    /// One record for each launch of a CUDA graph, instead of one for each of its nodes.
    pub whole_graphs: bool,
}

impl Collection {
    /// Everything there is.
    pub const FULL: Self = Self { mode: CollectMode::Full, whole_graphs: false };
    /// What costs little.
    pub const LIGHT: Self = Self { mode: CollectMode::Light, whole_graphs: true };
    const WHOLE_GRAPHS: u32 = 1 << 8;

    /// As a number.
    #[must_use]
    pub const fn to_raw(self) -> u32 {
        self.mode as u32 | if self.whole_graphs { Self::WHOLE_GRAPHS } else { 0 }
    }

    /// From a number; an unknown mode is [`CollectMode::Full`].
    #[must_use]
    pub const fn from_raw(raw: u32) -> Self {
        let mode = match raw & 0xff {
            1 => CollectMode::Light,
            2 => CollectMode::Paused,
            _ => CollectMode::Full,
        };
        Self { mode, whole_graphs: raw & Self::WHOLE_GRAPHS != 0 }
    }

    /// The same, paused.
    #[must_use]
    pub const fn paused(self) -> Self {
        Self { mode: CollectMode::Paused, ..self }
    }
}

/// The head of a ring: who writes it, what it does, how much it dropped, who reads it.
///
/// Fields of the shim and of the reader lie on cache lines of their own. All zero is a valid header of no meaning; it
/// means something once `magic` is there.
#[repr(C, align(64))]
pub struct RingHeader {
    // --- written once by the shim, `magic` last
    /// [`super::RING_MAGIC`].
    pub magic: AtomicU64,
    /// [`super::RING_ABI_VERSION`].
    pub abi_version: AtomicU32,
    /// [`RING_HEADER_BYTES`].
    pub header_bytes: AtomicU32,
    /// Size of the ring, a power of two.
    pub data_bytes: AtomicU64,
    /// Process id in the process's own pid namespace. A forked child shares the mapping and has another.
    pub pid: AtomicU32,
    /// 1: told to collect from the start (`gtrace run`).
    pub start_at_load: AtomicU32,
    /// When it was made, CLOCK_MONOTONIC of the process.
    pub created_ns: AtomicU64,
    /// What `cuptiGetVersion` said; 0 as long as nothing is bound.
    pub cupti_version: AtomicU32,
    /// What `cuDriverGetVersion` said.
    pub driver_version: AtomicU32,
    /// [`ClockKind`] as its number.
    pub clock: AtomicU32,
    /// Result of `cuptiSubscribe`, -1 before.
    pub subscribe_result: AtomicI32,

    // --- written by the shim all the time
    /// [`ShimState`] as its number.
    pub state: AtomicU32,
    /// Buffers that CUPTI holds.
    pub outstanding_buffers: AtomicU32,
    /// [`Collection`] as its number: what it collects now.
    pub collection: AtomicU32,
    /// The kind of the last record that nobody asked for.
    pub unknown_kind: AtomicU32,
    /// Since when it collects that, CLOCK_MONOTONIC of the process: what was launched before is of the way before.
    pub collection_since_ns: AtomicU64,
    /// Token of the session that it collects for; 0: none, or one that began at load and that no reader took over yet.
    pub session: AtomicU64,
    /// Flushes that ended.
    pub flushes: AtomicU64,
    /// When the last flush began, CLOCK_MONOTONIC of the process: what was complete then has been written.
    pub flushed_ns: AtomicU64,
    /// Records dropped since the ring was full, by [`Class`].
    pub dropped: [AtomicU64; Class::COUNT],
    /// Records that CUPTI dropped (`cuptiActivityGetNumDroppedRecords`).
    pub cupti_dropped: AtomicU64,
    /// Buffers in our callback that are another client's.
    pub foreign_buffers: AtomicU64,
    /// Requests for a buffer when none was free; their records are lost.
    pub refused_buffers: AtomicU64,
    /// Buffers whose records could not be read to their end.
    pub broken_buffers: AtomicU64,
    /// Records of kinds that nobody asked for.
    pub unknown_kinds: AtomicU64,
    /// Launch calls seen (API records).
    pub launches: AtomicU64,
    /// Kernels seen, valid or not.
    pub kernels: AtomicU64,
    /// Panics caught at the border: a defect of the shim.
    pub panics: AtomicU64,

    // --- texts of the shim
    /// Path of the libcupti that is bound.
    pub cupti_path: SharedText<504>,
    /// Why it collects nothing.
    pub refusal: SharedText<504>,
    /// The last thing that CUPTI or the shim had to complain about without giving up.
    pub notice: SharedText<504>,

    // --- written by the reader
    /// Who reads.
    pub reader: ReaderPart,
    /// How far producers have reserved.
    pub reserved: Line,
    /// How far the reader has read.
    pub consumed: Line,
}

/// The reader's part of the header.
#[repr(C, align(64))]
pub struct ReaderPart {
    /// Token of the reader, unique to it; 0: none. A shim that sees a new one begins a new session for it.
    pub token: AtomicU64,
    /// Grows while the reader lives, at least once a second. A counter and no time: the process may live in another
    /// time namespace.
    pub beats: AtomicU64,
    /// How many readers there have been.
    pub readers: AtomicU64,
    /// Grows when the reader wants its last flush now, that of records of work under way as well.
    pub flush_requests: AtomicU64,
    /// How many CUDA graphs the process launched while the reader watched it, before its token was there.
    pub graph_launches: AtomicU64,
    /// [`Collection`] as its number: what the reader wants.
    pub wanted: AtomicU32,
    /// 0.
    pub reserved: AtomicU32,
    /// Grows when the session is to be begun anew, since another client of CUPTI had taken it over and is gone.
    pub restarts: AtomicU64,
}

/// A position on a cache line of its own.
#[repr(C, align(64))]
pub struct Line {
    /// Bytes since the ring was made.
    pub position: AtomicU64,
}

const _: () = assert!(size_of::<RingHeader>() <= RING_HEADER_BYTES);

/// Whether a ring may have this size.
#[must_use]
pub const fn is_ring_size(bytes: u64) -> bool {
    bytes.is_power_of_two() && bytes >= RING_MIN_BYTES && bytes <= RING_MAX_BYTES
}
