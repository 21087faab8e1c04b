//! Small conversions for the entries of the tree.

use std::collections::{HashSet, VecDeque};

use nix::time::{ClockId, clock_gettime};

use crate::event::{MonoNs, Text, Tid};
use crate::record::procfs::{TaskStat, bounded_text};

/// A `comm` out of a kernel record: at most 16 bytes, ended by a zero.
#[must_use]
pub fn comm_text(comm: &[u8]) -> Text {
    let end = comm.iter().position(|&byte| byte == 0).unwrap_or(comm.len());
    bounded_text(&comm[..end], 64)
}

/// `/proc` appends to a kworker's name what it works on at the moment (`kworker/0:1-events`); the task's own name, which
/// kernel records have, ends before that.
#[must_use]
pub fn plain_comm(comm: Text) -> Text {
    match comm.strip_prefix("kworker/").and_then(|rest| rest.split(['-', '+']).next()) {
        Some(plain) => Text::from(format!("kworker/{plain}")),
        None => comm,
    }
}

/// The thread ids that were put in last.
#[derive(Default)]
pub struct RecentTids {
    known: HashSet<Tid>,
    order: VecDeque<Tid>,
}

impl RecentTids {
    const KEPT: usize = 1 << 14;

    /// Puts one in.
    pub fn insert(&mut self, tid: Tid) {
        if self.known.insert(tid) {
            self.order.push_back(tid);
        }
        if self.order.len() > Self::KEPT
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }

    /// Takes one out: the id is in use again.
    pub fn remove(&mut self, tid: Tid) {
        if self.known.remove(&tid) {
            self.order.retain(|known| *known != tid);
        }
    }

    /// Whether it is one of them.
    pub fn contains(&self, tid: Tid) -> bool {
        self.known.contains(&tid)
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kworker_keeps_its_own_name() {
        assert_eq!(plain_comm(Text::from("kworker/0:1-events")).as_str(), "kworker/0:1");
        assert_eq!(plain_comm(Text::from("kworker/u8:2+loop0")).as_str(), "kworker/u8:2");
        assert_eq!(plain_comm(Text::from("my-kworker")).as_str(), "my-kworker");
    }

    #[test]
    fn a_comm_ends_at_its_zero() {
        assert_eq!(comm_text(b"python3\0old garb").as_str(), "python3");
        assert_eq!(comm_text(b"sixteen-bytes-16").as_str(), "sixteen-bytes-16");
    }
}
