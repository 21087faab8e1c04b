//! What a shim collected, and when it changed.

use std::sync::atomic::Ordering::{Acquire, Relaxed};

use tracer_abi::shim::{CollectMode, Collection, RingHeader};

use super::clock::ProcessClock;
use crate::event::MonoNs;
use crate::store::meta::GpuMode;

/// Changes that are kept: a recording with windows has two a minute.
const MOST: usize = 4096;

/// The changes of one process.
#[derive(Default)]
pub(super) struct Modes {
    present: Option<(Collection, u64)>,
    changes: Vec<GpuMode>,
    paused: Option<(MonoNs, Why)>,
    resumed: Option<MonoNs>,
}

/// Why nothing was collected for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// Nothing was to be.
    Paused,
    /// Another client of CUPTI had its records.
    Taken,
}

impl Modes {
    /// Looks whether something else is collected. `why`: the reason, should that be so.
    pub(super) fn look(&mut self, header: &RingHeader, clock: ProcessClock, why: &str) {
        let raw = header.collection.load(Acquire);
        let since_ns = header.collection_since_ns.load(Relaxed);
        let collection = Collection::from_raw(raw);
        if since_ns == 0 || self.present == Some((collection, since_ns)) {
            return;
        }
        let was_paused = self.present.is_some_and(|(before, _)| before.mode == CollectMode::Paused);
        let same = self.present.is_some_and(|(before, _)| before == collection);
        self.present = Some((collection, since_ns));
        let since = clock.monotonic(since_ns);
        match (was_paused, collection.mode == CollectMode::Paused) {
            (false, true) => self.paused = Some((since, Why::Paused)),
            (true, false) => self.resumed = Some(since),
            // Begun anew.
            (false, false) if self.paused.is_some_and(|(_, why)| why == Why::Taken) => {
                self.resumed = Some(since);
            }
            _ => {}
        }
        if !same && self.changes.len() < MOST {
            self.changes.push(GpuMode { since_ns: since.0, mode: words(collection), why: why.to_owned() });
        }
    }

    /// Another client of CUPTI has had the records since `since`.
    pub(super) fn taken(&mut self, since: MonoNs) {
        if self.paused.is_none() {
            self.paused = Some((since, Why::Taken));
            self.resumed = None;
        }
    }

    /// The changes, the first one included.
    pub(super) fn changes(&self) -> &[GpuMode] {
        &self.changes
    }

    /// From when on work counts as collected again, if it was not for a while.
    pub(super) fn resumed(&self) -> Option<MonoNs> {
        self.resumed
    }

    /// The time that was not collected, once the first work after it is known: what was launched meanwhile may have run up to
    /// there. `first` is its start; without one, `end` ends a pause that never did.
    pub(super) fn take_pause(
        &mut self,
        first: Option<MonoNs>,
        end: Option<MonoNs>,
    ) -> Option<(MonoNs, MonoNs, Why)> {
        let until = match (self.resumed, first, end) {
            (Some(_), Some(first), _) => first,
            (_, _, Some(end)) => end,
            _ => return None,
        };
        let (since, why) = self.paused.take()?;
        self.resumed = None;
        Some((since, until, why))
    }
}

/// `full`, `full, whole graphs`, `light`, `paused`.
fn words(collection: Collection) -> String {
    let mode = match collection.mode {
        CollectMode::Full => "full",
        CollectMode::Light => "light",
        CollectMode::Paused => return "paused".to_owned(),
    };
    if collection.whole_graphs { format!("{mode}, whole graphs") } else { mode.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracer_abi::shim::ClockKind;

    #[test]
    fn changes_are_kept_with_their_times_and_a_pause_ends_with_the_first_work_after_it() {
        // SAFETY: all zero is a valid header.
        let header: Box<RingHeader> = Box::new(unsafe { std::mem::zeroed() });
        let clock = ProcessClock { kind: ClockKind::Unknown, monotonic_offset_ns: 0 };
        let mut modes = Modes::default();
        let change = |modes: &mut Modes, collection: Collection, since| {
            header.collection_since_ns.store(since, Relaxed);
            header.collection.store(collection.to_raw(), Relaxed);
            modes.look(&header, clock, "asked for");
        };
        modes.look(&header, clock, "nothing was collected yet");
        change(&mut modes, Collection::FULL, 10);
        change(&mut modes, Collection::FULL.paused(), 50);
        assert_eq!(modes.take_pause(Some(MonoNs(60)), None), None, "what ran on is no end of it");
        change(&mut modes, Collection::LIGHT, 90);
        assert_eq!(modes.resumed(), Some(MonoNs(90)));
        assert_eq!(modes.take_pause(Some(MonoNs(95)), None), Some((MonoNs(50), MonoNs(95), Why::Paused)));
        assert_eq!(modes.take_pause(Some(MonoNs(99)), None), None, "once");
        change(&mut modes, Collection::LIGHT, 200);
        let told: Vec<(i64, &str)> =
            modes.changes().iter().map(|change| (change.since_ns, change.mode.as_str())).collect();
        assert_eq!(told, [(10, "full"), (50, "paused"), (90, "light, whole graphs")]);
        change(&mut modes, Collection::LIGHT.paused(), 300);
        assert_eq!(modes.take_pause(None, Some(MonoNs(400))), Some((MonoNs(300), MonoNs(400), Why::Paused)));
    }

    #[test]
    fn what_another_client_took_comes_back_with_a_restart() {
        // SAFETY: all zero is a valid header.
        let header: Box<RingHeader> = Box::new(unsafe { std::mem::zeroed() });
        let clock = ProcessClock { kind: ClockKind::Unknown, monotonic_offset_ns: 0 };
        let mut modes = Modes::default();
        header.collection_since_ns.store(10, Relaxed);
        modes.look(&header, clock, "");
        modes.taken(MonoNs(30));
        modes.taken(MonoNs(40));
        modes.look(&header, clock, "");
        assert_eq!((modes.resumed(), modes.take_pause(Some(MonoNs(50)), None)), (None, None));
        header.collection_since_ns.store(60, Relaxed);
        modes.look(&header, clock, "");
        assert_eq!(modes.take_pause(Some(MonoNs(70)), None), Some((MonoNs(30), MonoNs(70), Why::Taken)));
        assert_eq!(modes.changes().len(), 1);
    }
}
