//! Processes whose shim collects, and from which nothing comes: idle, or CUPTI has fallen silent. Only calls of the driver,
//! counted from outside, tell which.

use std::collections::BTreeMap;

use crate::event::{MonoNs, Pid};

/// From the last record to the first look; each further look waits twice as long.
const FIRST_NS: i64 = 5_000_000_000;
/// At most so long.
const LONGEST_NS: i64 = 60_000_000_000;

/// Since when nothing has come, by process.
#[derive(Debug, Default)]
pub struct Silence {
    quiet: BTreeMap<Pid, Quiet>,
}

#[derive(Clone, Copy, Debug)]
struct Quiet {
    counted: (u64, u64),
    since: MonoNs,
    next: MonoNs,
    pause_ns: i64,
}

impl Silence {
    /// Takes what was counted so far in each process that collects: launches and records. The processes that are to be
    /// listened to now.
    pub fn look(&mut self, counted: impl Iterator<Item = (Pid, u64, u64)>, now: MonoNs) -> Vec<Pid> {
        let mut due = Vec::new();
        let mut quiet = BTreeMap::new();
        for (pid, launches, records) in counted {
            let counted = (launches, records);
            let fresh = Quiet { counted, since: now, next: MonoNs(now.0 + FIRST_NS), pause_ns: FIRST_NS };
            let mut known =
                self.quiet.get(&pid).filter(|known| known.counted == counted).copied().unwrap_or(fresh);
            if now >= known.next {
                known.pause_ns = (known.pause_ns * 2).min(LONGEST_NS);
                known.next = MonoNs(now.0 + known.pause_ns);
                due.push(pid);
            }
            quiet.insert(pid, known);
        }
        self.quiet = quiet;
        due
    }

    /// So many calls of the driver were counted in a process meanwhile: since when its CUPTI is silent, if it is.
    pub fn heard(&mut self, pid: Pid, calls: u64, now: MonoNs) -> Option<MonoNs> {
        let quiet = self.quiet.get_mut(&pid).filter(|_| calls > 0)?;
        let since = quiet.since;
        (quiet.since, quiet.pause_ns, quiet.next) = (now, FIRST_NS, MonoNs(now.0 + FIRST_NS));
        Some(since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PID: Pid = Pid(7);
    const SECOND: i64 = 1_000_000_000;

    #[test]
    fn only_a_process_that_calls_and_is_not_heard_is_silent() {
        let mut silence = Silence::default();
        let mut due = |records: u64, second: i64| {
            silence.look(std::iter::once((PID, 5, records)), MonoNs(second * SECOND))
        };
        assert!((0..30).all(|second| due(second, second as i64).is_empty()), "records come");
        let looks: Vec<i64> = (30..100).filter(|&second| !due(29, second).is_empty()).collect();
        assert_eq!(looks, [34, 44, 64], "an idle process is listened to ever more seldom");
        assert_eq!(silence.heard(PID, 0, MonoNs(65 * SECOND)), None, "idle");
        assert_eq!(silence.heard(PID, 3, MonoNs(66 * SECOND)), Some(MonoNs(29 * SECOND)));
        assert_eq!(silence.heard(PID, 3, MonoNs(80 * SECOND)), Some(MonoNs(66 * SECOND)), "each second once");
        assert_eq!(silence.heard(Pid(8), 3, MonoNs(80 * SECOND)), None);
    }
}
