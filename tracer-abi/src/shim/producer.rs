//! The writing end.

use core::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

use super::RECORD_MAX_BYTES;
use super::header::RingHeader;
use super::record::{Class, Record, RecordKind};
use super::slot::{Slot, SlotState};

/// The writing end of a ring: any number of threads, no lock, no allocation, no waiting. Copies of it are the same end.
///
/// A record is reserved by moving `reserved` (compare and swap), marked busy with its length, written, and marked ready
/// with release order. If its thread dies between the first two steps the place has no length, if between the last two
/// it stays busy; the reader does not get past it while the process lives (nobody can know that the thread will not go
/// on), the ring fills and drops are counted; when the process is dead the reader steps over it and counts one loss.
#[derive(Clone, Copy)]
pub struct Producer<'memory> {
    header: &'memory RingHeader,
    data: &'memory [AtomicU64],
}

impl<'memory> Producer<'memory> {
    /// The writing end of the ring in `data`, whose length in words is a power of two.
    ///
    /// # Panics
    /// The length is none: a defect of the caller, who made the ring.
    #[must_use]
    pub const fn new(header: &'memory RingHeader, data: &'memory [AtomicU64]) -> Self {
        assert!(data.len().is_power_of_two(), "a ring's size is a power of two");
        Self { header, data }
    }

    /// The head of the ring.
    #[must_use]
    pub const fn header(&self) -> &'memory RingHeader {
        self.header
    }

    /// Writes a record. `false`: the ring is full; the record is dropped and counted.
    pub fn write<R: Record>(&self, record: &R) -> bool {
        self.write_with(record, &[])
    }

    /// Writes a record and the bytes that follow it, filled up to 8 with zeros. `false`: dropped and counted.
    pub fn write_with<R: Record>(&self, record: &R, tail: &[u8]) -> bool {
        let record_words = size_of::<R>() / 8;
        let words = 1 + record_words + tail.len().div_ceil(8);
        if words * 8 > RECORD_MAX_BYTES {
            return self.drop_one(R::KIND.class());
        }
        let Some(position) = self.reserve(words as u64 * 8) else {
            return self.drop_one(R::KIND.class());
        };
        let slot = Slot { state: SlotState::Busy, kind: R::KIND as u8, words: words as u16 };
        self.word(position).store(slot.encode(position), Relaxed);

        let from = core::ptr::from_ref(record).cast::<u64>();
        for index in 0..record_words {
            // SAFETY: `Record` promises alignment to 8, a size in whole words, no padding.
            let word = unsafe { from.add(index).read() };
            self.word(position + 8 * (1 + index as u64)).store(word, Relaxed);
        }
        let after = position + 8 * (1 + record_words as u64);
        for (index, chunk) in tail.chunks(8).enumerate() {
            let mut bytes = [0; 8];
            bytes[..chunk.len()].copy_from_slice(chunk);
            self.word(after + 8 * index as u64).store(u64::from_ne_bytes(bytes), Relaxed);
        }

        let slot = Slot { state: SlotState::Ready, ..slot };
        self.word(position).store(slot.encode(position), Release);
        true
    }

    /// Moves `reserved` by `bytes`, and past the end of the ring first if they do not fit before it.
    fn reserve(&self, bytes: u64) -> Option<u64> {
        let capacity = self.data.len() as u64 * 8;
        let reserved = &self.header.reserved.position;
        let mut position = reserved.load(Relaxed);
        loop {
            let to_end = capacity - position % capacity;
            let padding = if to_end < bytes { to_end } else { 0 };
            let next = position.checked_add(padding + bytes)?;
            // A reader that writes nonsense here can make us overwrite what it has not read, nothing else.
            let consumed = self.header.consumed.position.load(Acquire);
            if next.checked_sub(consumed)? > capacity {
                return None;
            }
            match reserved.compare_exchange_weak(position, next, Relaxed, Relaxed) {
                Ok(_) if padding == 0 => return Some(position),
                Ok(_) => {
                    let slot = Slot { state: SlotState::Ready, kind: 0, words: (padding / 8) as u16 };
                    self.word(position).store(slot.encode(position), Release);
                    return Some(position + padding);
                }
                Err(now) => position = now,
            }
        }
    }

    fn word(&self, position: u64) -> &AtomicU64 {
        &self.data[(position / 8) as usize & (self.data.len() - 1)]
    }

    fn drop_one(&self, class: Class) -> bool {
        self.header.dropped[class as usize].fetch_add(1, Relaxed);
        false
    }
}

// The kinds fit into the slot's byte, and padding has none of them.
const _: () = assert!(RecordKind::from_raw(0).is_none());
