//! Clocks.

use tracer_abi::shim::{ClockRecord, WhichClock};

/// Tries for a narrow bracket: about 30 ns wide on an idle CPU.
const TRIES: usize = 20;

/// CLOCK_MONOTONIC of this process, in ns.
#[must_use]
pub fn monotonic_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// CLOCK_REALTIME, in ns.
#[must_use]
pub fn realtime_ns() -> u64 {
    read(libc::CLOCK_REALTIME)
}

fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a struct to fill. Fails for unknown clocks only.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The narrowest of several bracketed readings of another clock; `None` if it cannot be read.
pub fn bracket(which: WhichClock, mut other: impl FnMut() -> Option<u64>) -> Option<ClockRecord> {
    let mut best: Option<ClockRecord> = None;
    for _ in 0..TRIES {
        let before_ns = monotonic_ns();
        let other_ns = other()?;
        let after_ns = monotonic_ns();
        if best.is_none_or(|best| after_ns - before_ns < best.after_ns - best.before_ns) {
            best = Some(ClockRecord { before_ns, other_ns, after_ns, which: which as u64 });
        }
    }
    best
}
