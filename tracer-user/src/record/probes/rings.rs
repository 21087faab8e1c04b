//! The ring of memfds: each of its few records wakes the reader.

use std::os::fd::{AsFd, BorrowedFd};

use aya::maps::{MapData, RingBuf};
use tracer_abi::kernel::MemfdRecord;

use super::raw::RawRecord;

/// Memfds of recorded processes that may be rings of a shim (`gtrace-…`), as they are made.
pub struct RingAnnouncements(RingBuf<MapData>);

impl RingAnnouncements {
    /// Of the map `RINGS`.
    pub(super) fn new(ring: RingBuf<MapData>) -> Self {
        Self(ring)
    }

    /// The next one, if there is one.
    pub fn next_memfd(&mut self) -> Option<MemfdRecord> {
        while let Some(item) = self.0.next() {
            if let Some(RawRecord::Memfd(record)) = RawRecord::parse(&item) {
                return Some(*record);
            }
        }
        None
    }
}

impl AsFd for RingAnnouncements {
    /// Readable while there is one.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
