//! Who reads a ring.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::time::{Duration, Instant};

use tracer_abi::shim::RingHeader;

/// A reader whose counter stands still for so long is dead.
const SILENCE: Duration = Duration::from_secs(3);

/// Our claim on a ring.
#[derive(Debug)]
pub(super) enum Claim {
    /// Another reader is there; `beats` was its counter at `since`.
    Waiting { token: u64, beats: u64, since: Instant },
    /// It is ours. `from_start`: nobody read it before us, so everything in it is ours too.
    Held { from_start: bool },
}

impl Claim {
    /// Claims the ring for `token`, or begins to watch the one who has it.
    pub(super) fn new(header: &RingHeader, token: u64) -> Self {
        let holder = header.reader.token.load(Acquire);
        if holder == 0 && swap(header, 0, token) {
            return Self::Held { from_start: header.reader.readers.fetch_add(1, Relaxed) == 0 };
        }
        Self::Waiting { token: holder, beats: header.reader.beats.load(Relaxed), since: Instant::now() }
    }

    /// Looks again. `true`: the ring has just become ours.
    pub(super) fn advance(&mut self, header: &RingHeader, token: u64) -> bool {
        let Self::Waiting { token: holder, beats, since } = self else { return false };
        let current = (header.reader.token.load(Acquire), header.reader.beats.load(Relaxed));
        if current.0 != 0 && current != (*holder, *beats) {
            (*holder, *beats, *since) = (current.0, current.1, Instant::now());
            return false;
        }
        if (current.0 != 0 && since.elapsed() < SILENCE) || !swap(header, current.0, token) {
            return false;
        }
        header.reader.readers.fetch_add(1, Relaxed);
        *self = Self::Held { from_start: false };
        true
    }
}

/// Gives the ring up, so that its shim stops collecting at once.
pub(super) fn release(header: &RingHeader, token: u64) {
    swap(header, token, 0);
}

fn swap(header: &RingHeader, from: u64, to: u64) -> bool {
    header.reader.token.compare_exchange(from, to, AcqRel, Relaxed).is_ok()
}
