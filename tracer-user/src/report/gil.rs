//! How much of the waiting went through Python's interpreter lock. A ledger by cause alone does not say so: what the holder
//! of the lock did is the cause, and the lock only a hop on the way there.

use std::collections::HashMap;

use super::model::{Gil, ThreadShare};
use super::names::Names;
use crate::store::schema::{GapSegment, Hop};

/// How the lock is called in a chain, up to the version.
const LOCK: &str = "GIL of ";
/// How many holders the report names.
const MOST_HOLDERS: usize = 10;

/// Collects segments.
#[derive(Debug, Default)]
pub struct GilTally {
    ns: i64,
    holders: HashMap<(i32, i32), i64>,
}

impl GilTally {
    /// Counts a segment if its chain has a wait for the lock.
    pub fn segment(&mut self, segment: &GapSegment) {
        let Some(last) = segment.path.iter().rposition(waits_for_lock) else { return };
        let ns = (segment.end_ns - segment.start_ns).0;
        self.ns += ns;
        // Who let go of the lock is the next hop; where the chain ends at the lock, nobody knows.
        if let Some(holder) = segment.path.get(last + 1).filter(|hop| hop.tid.0 != 0) {
            *self.holders.entry((holder.pid.0, holder.tid.0)).or_default() += ns;
        }
    }

    /// What was found; `None` if nothing went through the lock.
    #[must_use]
    pub fn finish(self, names: &Names) -> Option<Gil> {
        let mut holders: Vec<((i32, i32), i64)> = self.holders.into_iter().collect();
        holders.sort_by_key(|&(key, ns)| (std::cmp::Reverse(ns), key));
        holders.truncate(MOST_HOLDERS);
        let share = |((pid, tid), ns)| ThreadShare { thread: names.thread(pid, tid), ns };
        (self.ns > 0).then(|| Gil { ns: self.ns, holders: holders.into_iter().map(share).collect() })
    }
}

fn waits_for_lock(hop: &Hop) -> bool {
    &*hop.state == "blocked" && hop.object.as_deref().is_some_and(|object| object.starts_with(LOCK))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{GapId, MonoNs, Pid, Tid};

    fn hop(tid: i32, state: &str, object: &str) -> Hop {
        Hop {
            pid: Pid(1),
            tid: Tid(tid),
            thread: "python3".into(),
            state: state.into(),
            call: None,
            object: Some(object.into()),
            edge: None,
        }
    }

    fn segment(start: i64, end: i64, path: Vec<Hop>) -> GapSegment {
        GapSegment {
            gap_id: GapId(0),
            seq: 0,
            start_ns: MonoNs(start),
            end_ns: MonoNs(end),
            cause: "host.cpu.user".into(),
            stage: "other".into(),
            object: None,
            pid: None,
            tid: None,
            path,
            evidence: Vec::new(),
            confidence: "exact".into(),
        }
    }

    #[test]
    fn the_holder_is_who_let_go_of_the_lock() {
        let names = Names::new(&[], &[]);
        let mut tally = GilTally::default();
        let wait = hop(1, "blocked", "GIL of CPython 3.11");
        tally.segment(&segment(0, 10, vec![wait.clone(), hop(2, "running", "python3.11")]));
        tally.segment(&segment(
            10,
            40,
            vec![wait.clone(), hop(3, "blocked", "pipe:[7]"), hop(4, "running", "x")],
        ));
        tally.segment(&segment(40, 45, vec![wait]));
        tally.segment(&segment(45, 99, vec![hop(1, "running", "GIL of CPython 3.11")]));
        tally.segment(&segment(45, 99, vec![hop(1, "blocked", "0x7f0000")]));
        let gil = tally.finish(&names).expect("waits for the lock");
        let holders: Vec<(i32, i64)> =
            gil.holders.iter().map(|holder| (holder.thread.tid, holder.ns)).collect();
        assert_eq!((gil.ns, holders), (45, vec![(3, 30), (2, 10)]));
        assert!(GilTally::default().finish(&names).is_none());
    }
}
