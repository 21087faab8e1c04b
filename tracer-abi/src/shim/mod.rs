//! What the shim inside a GPU process hands to the recorder: a memfd with a [`RingHeader`] and a ring of records.
//!
//! One file a subject: [`RingHeader`] (who, what state, counters, who reads), [`Slot`] (the word before each record),
//! [`Producer`] and [`Consumer`] (the two ends), and the records.
//!
//! The memfd's name is [`RING_NAME`]; it is sealed against shrinking and growing before its magic number is written, so
//! that a mapping of it can never fault. Producers are many (CUPTI completes buffers from several threads) and never
//! block: a full ring drops the record and counts it by [`Class`]. The reader is one.
//!
//! Neither end believes the other: the shim must go on whatever a dead recorder left in the header, and the recorder
//! must survive whatever a hostile process writes into a memfd of that name. Every access to the shared memory is
//! atomic, so that a concurrent writer cannot make a data race out of it.

mod consumer;
mod gpu;
mod header;
mod host;
mod info;
mod marker;
mod producer;
mod record;
mod slot;
mod text;

#[cfg(test)]
mod tests;

pub use consumer::{Consumer, Next, RingFault};
pub use gpu::{CopyRecord, GraphRecord, KernelRecord, MemsetRecord, copy_flags};
pub use header::{ClockKind, CollectMode, Collection, RingHeader, ShimState, is_ring_size};
pub use host::{ApiDomain, ApiRecord, OverheadRecord, SyncRecord, overhead_flags};
pub use info::{
    ClockRecord, ContextRecord, DeviceRecord, InvalidReason, InvalidRecord, NameRecord, SessionRecord,
    StreamRecord, WhichClock,
};
pub use marker::{MarkerNameRecord, MarkerRecord, NcclFunction, NcclRecord};
pub use producer::Producer;
pub use record::{Class, Record, RecordKind};
pub use slot::{Slot, SlotState};
pub use text::SharedText;

/// Name of the memfd. The kernel side reports each memfd whose name begins with `gtrace-`.
pub const RING_NAME: &core::ffi::CStr = c"gtrace-ring";

/// `GTRRING1` in the byte order of the machine: written last, when the header is whole.
pub const RING_MAGIC: u64 = u64::from_le_bytes(*b"GTRRING1");

/// Version of everything in this module. A reader refuses any other.
pub const RING_ABI_VERSION: u32 = 3;

/// Where the ring begins: room for the header, a multiple of every page size in use is not needed since the whole file
/// is one mapping.
pub const RING_HEADER_BYTES: usize = 8192;

/// Smallest ring that is accepted.
pub const RING_MIN_BYTES: u64 = 64 << 10;
/// Ring of a shim that was not told otherwise: at 20,000 launches a second about four seconds of records.
pub const RING_DEFAULT_BYTES: u64 = 16 << 20;
/// Largest ring that is accepted.
pub const RING_MAX_BYTES: u64 = 256 << 20;

/// Longest record, slot word included.
pub const RECORD_MAX_BYTES: usize = 4096;
/// Bytes of a kernel's (mangled) name that are kept. Template instances of a few thousand bytes exist.
pub const NAME_MAX_BYTES: usize = 2048;
/// Bytes of a marked range's name that are kept.
pub const MARKER_NAME_MAX_BYTES: usize = 256;
/// Bytes of a device's name that are kept.
pub const DEVICE_NAME_MAX_BYTES: usize = 96;
