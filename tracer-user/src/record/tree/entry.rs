//! Small conversions for the entries of the tree.

use nix::time::{ClockId, clock_gettime};

use crate::event::{MonoNs, Text};
use crate::record::procfs::{TaskStat, bounded_text};

/// A `comm` out of a kernel record: at most 16 bytes, ended by a zero.
#[must_use]
pub fn comm_text(comm: &[u8]) -> Text {
    let end = comm.iter().position(|&byte| byte == 0).unwrap_or(comm.len());
    bounded_text(&comm[..end], 64)
}

/// `/proc` counts starts in clock ticks of CLOCK_BOOTTIME, which runs on while the machine sleeps.
pub struct BootClock {
    ns_per_tick: i64,
    behind_ns: i64,
}

impl BootClock {
    /// The present relation of the two clocks.
    pub fn now() -> Self {
        let read =
            |clock| clock_gettime(clock).map_or(0, |time| time.tv_sec() * 1_000_000_000 + time.tv_nsec());
        // SAFETY: sysconf reads a constant of the system and touches no memory of ours.
        let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
        Self {
            ns_per_tick: 1_000_000_000 / ticks.max(1),
            behind_ns: read(ClockId::CLOCK_BOOTTIME) - read(ClockId::CLOCK_MONOTONIC),
        }
    }

    /// A start in ticks, on CLOCK_MONOTONIC.
    pub fn monotonic(&self, ticks: u64) -> MonoNs {
        MonoNs(
            i64::try_from(ticks)
                .unwrap_or(i64::MAX)
                .saturating_mul(self.ns_per_tick)
                .saturating_sub(self.behind_ns),
        )
    }

    /// When a task began, if it could be read.
    pub fn began(&self, stat: Option<&TaskStat>) -> Option<MonoNs> {
        stat.map(|stat| self.monotonic(stat.start_ticks))
    }
}
