//! Readings of other clocks between two of CLOCK_MONOTONIC.

use nix::time::{ClockId, clock_gettime};

use crate::event::{MonoNs, Text};
use crate::store::schema::ClockSample;

/// Tries per sample: the one with the least time between both readings of CLOCK_MONOTONIC counts, so that a preemption
/// between them does not widen the bracket.
const TRIES: usize = 5;

fn read(clock: ClockId) -> i64 {
    // A clock of these two cannot fail; a zero would show as an impossible offset rather than crash the recorder.
    clock_gettime(clock).map_or(0, |time| time.tv_sec() * 1_000_000_000 + time.tv_nsec())
}

/// Now.
#[must_use]
pub fn monotonic() -> MonoNs {
    MonoNs(read(ClockId::CLOCK_MONOTONIC))
}

/// CPU time of this process so far, all its threads, in ns.
#[must_use]
pub fn own_cpu_ns() -> i64 {
    read(ClockId::CLOCK_PROCESS_CPUTIME_ID)
}

/// CPU time of the calling thread so far, in ns.
#[must_use]
pub fn thread_cpu_ns() -> i64 {
    read(ClockId::CLOCK_THREAD_CPUTIME_ID)
}

/// A bracketed reading of CLOCK_REALTIME.
#[must_use]
pub fn sample_realtime() -> ClockSample {
    let mut best: Option<(i64, i64, i64)> = None;
    for _ in 0..TRIES {
        let before = read(ClockId::CLOCK_MONOTONIC);
        let other = read(ClockId::CLOCK_REALTIME);
        let after = read(ClockId::CLOCK_MONOTONIC);
        if best.is_none_or(|(from, _, to)| after - before < to - from) {
            best = Some((before, other, after));
        }
    }
    let (before, other_ns, after) = best.unwrap_or_default();
    ClockSample {
        before_ns: MonoNs(before),
        other_ns,
        after_ns: MonoNs(after),
        clock: Text::from("realtime"),
        pid: None,
    }
}

/// What to add to CLOCK_MONOTONIC for UTC, by a sample.
#[must_use]
pub fn utc_offset_ns(sample: &ClockSample) -> i64 {
    sample.other_ns - i64::midpoint(sample.before_ns.0, sample.after_ns.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_bracketed_and_right() {
        let sample = sample_realtime();
        assert!(sample.before_ns <= sample.after_ns);
        assert!(sample.before_ns <= monotonic());
        let system = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .expect("after 1970")
            .as_nanos() as i64;
        let ours = monotonic().0 + utc_offset_ns(&sample);
        assert!((system - ours).abs() < 1_000_000_000, "{system} {ours}");
    }
}
