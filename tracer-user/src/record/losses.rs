//! What could not be recorded, as intervals.

use std::collections::BTreeMap;

use tracer_abi::kernel::LossClass;

use crate::event::{MonoNs, Text};
use crate::store::schema::Loss;

/// `losses.source` and `losses.reason` of each class of the kernel side, in the order of [`LossClass`].
const CLASSES: [(LossClass, &str, &str); LossClass::COUNT as usize] = [
    (LossClass::RingOffCpu, "ring.off_cpu", "the ring was full: off-CPU intervals are missing"),
    (LossClass::RingSyscall, "ring.syscall", "the ring was full: system calls are missing"),
    (LossClass::RingBlock, "ring.block", "the ring was full: block requests are missing"),
    (LossClass::RingObject, "ring.object", "the ring was full: paths came late or not at all"),
    (LossClass::RingProcess, "ring.process", "the ring was full: forks, execs or exits are missing"),
    (LossClass::ThreadsFull, "threads", "too many threads: some were not recorded"),
    (LossClass::CountsFull, "syscall_counts", "too many kinds of fast calls: some were not counted"),
    (LossClass::RequestsFull, "requests", "too many block requests in flight: some were not recorded"),
    (LossClass::ProcessesFull, "processes", "too many processes: some children were not followed"),
    (
        LossClass::IrqDepthReset,
        "irq_reset",
        "the end of an interrupt was missed: a wake edge may name the wrong interrupt",
    ),
    (
        LossClass::IrqTooDeep,
        "irq_depth",
        "interrupts nested deeper than is kept: a wake edge may lack what it delivered",
    ),
    (
        LossClass::RingOther,
        "ring.other",
        "the ring was full: stalls of memory, interrupts or retransmissions are missing",
    ),
    (LossClass::RingSample, "ring.sample", "the ring was full: stack samples are missing"),
];

/// Turns counters that only grow into intervals.
#[derive(Default)]
pub struct LossLedger {
    seen: [u64; LossClass::COUNT as usize],
    since: MonoNs,
}

impl LossLedger {
    /// A ledger that begins at `started`.
    #[must_use]
    pub fn new(started: MonoNs) -> Self {
        Self { since: started, ..Self::default() }
    }

    /// What was lost since the last call.
    pub fn intervals(&mut self, totals: &[u64; LossClass::COUNT as usize], now: MonoNs) -> Vec<Loss> {
        let mut rows = Vec::new();
        for (class, source, reason) in CLASSES {
            let index = class as usize;
            let count = totals[index].saturating_sub(self.seen[index]);
            if count > 0 {
                rows.push(Loss {
                    source: Text::from(source),
                    reason: Text::from(reason),
                    pid: None,
                    start_ns: self.since,
                    end_ns: now,
                    count: count as i64,
                });
            }
            self.seen[index] = totals[index];
        }
        self.since = now;
        rows
    }

    /// Totals by source, for `meta.json`: every source, those without a loss too.
    #[must_use]
    pub fn totals(&self) -> BTreeMap<String, u64> {
        CLASSES.iter().map(|&(class, source, _)| (source.to_owned(), self.seen[class as usize])).collect()
    }

    /// Records lost because a ring or table was full: what makes a recording incomplete.
    #[must_use]
    pub fn lost_events(&self) -> u64 {
        CLASSES
            .iter()
            .filter(|(class, ..)| {
                !matches!(
                    class,
                    LossClass::IrqDepthReset
                        | LossClass::IrqTooDeep
                        | LossClass::RingObject
                        | LossClass::RingSample
                )
            })
            .map(|&(class, ..)| self.seen[class as usize])
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_interval_has_what_was_lost_in_it() {
        for (index, (class, ..)) in CLASSES.iter().enumerate() {
            assert_eq!(*class as usize, index);
        }
        let mut ledger = LossLedger::new(MonoNs(10));
        let mut totals = [0; LossClass::COUNT as usize];
        assert!(ledger.intervals(&totals, MonoNs(20)).is_empty());
        totals[LossClass::RingBlock as usize] = 3;
        let rows = ledger.intervals(&totals, MonoNs(30));
        assert_eq!(rows.len(), 1);
        assert_eq!(
            (rows[0].source.as_str(), rows[0].start_ns, rows[0].end_ns, rows[0].count),
            ("ring.block", MonoNs(20), MonoNs(30), 3)
        );
        totals[LossClass::RingBlock as usize] = 5;
        assert_eq!(ledger.intervals(&totals, MonoNs(40))[0].count, 2);
        assert_eq!((ledger.lost_events(), ledger.totals()["ring.block"]), (5, 5));
    }
}
