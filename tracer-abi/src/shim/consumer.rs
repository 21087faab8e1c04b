//! The reading end.

use core::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

use super::RECORD_MAX_BYTES;
use super::header::RingHeader;
use super::record::{Record, RecordKind};
use super::slot::{Slot, SlotState};

/// The reading end of a ring. It trusts nothing in it: positions must stay within one ring's length of each other,
/// lengths within the ring and [`RECORD_MAX_BYTES`], and a record is copied before it is looked at.
pub struct Consumer<'memory> {
    header: &'memory RingHeader,
    data: &'memory [AtomicU64],
    position: u64,
    /// The record last read, without its slot word.
    record: [u64; RECORD_MAX_BYTES / 8],
    words: usize,
}

/// What lies at the reader's position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// A record; [`Consumer::record`] reads it.
    Record(RecordKind),
    /// A record of a kind that this version does not know, stepped over.
    Unknown(u8),
    /// Nothing.
    Empty,
    /// A record that is reserved and not written yet.
    Pending,
}

/// The ring is not one that a shim wrote. Nothing more can be read from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RingFault {
    /// `reserved` lies before the reader's position, or more than one ring after it.
    Positions,
    /// A record's length is 0, too long, or reaches past what is reserved or past the end of the ring.
    Length,
}

impl core::fmt::Display for RingFault {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Positions => "the positions in its head contradict each other",
            Self::Length => "a record's length is impossible",
        })
    }
}

impl core::error::Error for RingFault {}

impl<'memory> Consumer<'memory> {
    /// The reading end of the ring in `data`, which goes on where the last reader stopped.
    ///
    /// # Errors
    /// The positions contradict each other.
    ///
    /// # Panics
    /// The length of `data` is no power of two: a defect of the caller, who checked it.
    pub fn new(header: &'memory RingHeader, data: &'memory [AtomicU64]) -> Result<Self, RingFault> {
        assert!(data.len().is_power_of_two(), "a ring's size is a power of two");
        let position = header.consumed.position.load(Acquire);
        let consumer = Self { header, data, position, record: [0; RECORD_MAX_BYTES / 8], words: 0 };
        if !position.is_multiple_of(8) {
            return Err(RingFault::Positions);
        }
        consumer.available()?;
        Ok(consumer)
    }

    /// The head of the ring.
    #[must_use]
    pub const fn header(&self) -> &'memory RingHeader {
        self.header
    }

    /// Takes the next record.
    ///
    /// # Errors
    /// The ring is broken.
    pub fn take(&mut self) -> Result<Next, RingFault> {
        loop {
            let available = self.available()?;
            if available == 0 {
                return Ok(Next::Empty);
            }
            let word = self.word(self.position).load(Acquire);
            let Some(slot) = Slot::decode(word, self.position) else { return Ok(Next::Pending) };
            let bytes = self.checked_bytes(slot, available)?;
            if slot.state == SlotState::Busy {
                return Ok(Next::Pending);
            }
            if slot.kind == 0 {
                self.advance(bytes);
                continue;
            }
            self.words = usize::from(slot.words) - 1;
            for index in 0..self.words {
                self.record[index] = self.word(self.position + 8 * (1 + index as u64)).load(Relaxed);
            }
            self.advance(bytes);
            return Ok(RecordKind::from_raw(slot.kind).map_or(Next::Unknown(slot.kind), Next::Record));
        }
    }

    /// Steps over a record that will never be written, since its process is dead. `false`: nothing is left.
    ///
    /// A busy one has its length. One whose writer died before it wrote that has none: then on to the next word that is
    /// a slot of its own position.
    ///
    /// # Errors
    /// The ring is broken.
    pub fn step_over_pending(&mut self) -> Result<bool, RingFault> {
        let available = self.available()?;
        if available == 0 {
            return Ok(false);
        }
        let busy = Slot::decode(self.word(self.position).load(Acquire), self.position);
        if let Some(slot) = busy {
            let bytes = self.checked_bytes(slot, available)?;
            self.advance(bytes);
            return Ok(true);
        }
        let mut skip = 8;
        while skip < available {
            let position = self.position + skip;
            let slot = Slot::decode(self.word(position).load(Acquire), position);
            if slot.is_some_and(|slot| self.checked_bytes_at(slot, position, available - skip).is_ok()) {
                break;
            }
            skip += 8;
        }
        self.advance(skip);
        Ok(true)
    }

    /// The record last taken, as `R`; `None` if it is too short for one.
    #[must_use]
    pub fn record<R: Record>(&self) -> Option<R> {
        if size_of::<R>() / 8 > self.words {
            return None;
        }
        // SAFETY: the words are there and aligned; any bit pattern is an `R` (`Record`).
        Some(unsafe { self.record.as_ptr().cast::<R>().read() })
    }

    /// The bytes after the record last taken, read as `R`; at most `length` of them.
    #[must_use]
    pub fn tail<R: Record>(&self, length: usize) -> &[u8] {
        let words = self.record.get(size_of::<R>() / 8..self.words).unwrap_or_default();
        // SAFETY: the words are initialised and bytes have no alignment.
        let bytes = unsafe { core::slice::from_raw_parts(words.as_ptr().cast::<u8>(), words.len() * 8) };
        &bytes[..length.min(bytes.len())]
    }

    /// Bytes reserved and not read.
    fn available(&self) -> Result<u64, RingFault> {
        let reserved = self.header.reserved.position.load(Acquire);
        let available = reserved.checked_sub(self.position).ok_or(RingFault::Positions)?;
        if available > self.data.len() as u64 * 8 || !available.is_multiple_of(8) {
            return Err(RingFault::Positions);
        }
        Ok(available)
    }

    fn checked_bytes(&self, slot: Slot, available: u64) -> Result<u64, RingFault> {
        self.checked_bytes_at(slot, self.position, available)
    }

    fn checked_bytes_at(&self, slot: Slot, position: u64, available: u64) -> Result<u64, RingFault> {
        let capacity = self.data.len() as u64 * 8;
        let bytes = slot.bytes();
        let to_end = capacity - position % capacity;
        if bytes == 0 || bytes > RECORD_MAX_BYTES as u64 || bytes > available || bytes > to_end {
            return Err(RingFault::Length);
        }
        Ok(bytes)
    }

    fn advance(&mut self, bytes: u64) {
        self.position += bytes;
        self.header.consumed.position.store(self.position, Release);
    }

    fn word(&self, position: u64) -> &'memory AtomicU64 {
        &self.data[(position / 8) as usize & (self.data.len() - 1)]
    }
}
