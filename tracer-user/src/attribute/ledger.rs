//! The ledger: the sum of segments by what they have in common.

use std::collections::BTreeMap;

use super::cause::Cause;
use super::segment::Segment;
use super::stage::Stage;
use crate::event::DurationNs;

/// Gap time by cause and stage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    entries: BTreeMap<(Cause, Stage), DurationNs>,
}

impl Ledger {
    /// The ledger of segments.
    #[must_use]
    pub fn of<'a>(segments: impl IntoIterator<Item = &'a Segment>) -> Self {
        let mut ledger = Self::default();
        for segment in segments {
            ledger.add(segment);
        }
        ledger
    }

    /// Enters a segment.
    pub fn add(&mut self, segment: &Segment) {
        let entry = self.entries.entry((segment.cause, segment.stage)).or_default();
        *entry = *entry + segment.time.length();
    }

    /// Enters what another one holds.
    pub fn merge(&mut self, other: &Self) {
        for (cause, stage, time) in other.entries() {
            let entry = self.entries.entry((cause, stage)).or_default();
            *entry = *entry + time;
        }
    }

    /// All entries.
    pub fn entries(&self) -> impl Iterator<Item = (Cause, Stage, DurationNs)> {
        self.entries.iter().map(|(&(cause, stage), &time)| (cause, stage, time))
    }

    /// Everything.
    #[must_use]
    pub fn total(&self) -> DurationNs {
        self.entries.values().copied().sum()
    }

    /// What is not known.
    #[must_use]
    pub fn unknown(&self) -> DurationNs {
        self.entries().filter(|(cause, ..)| cause.is_unknown()).map(|(.., time)| time).sum()
    }

    /// The cause with most time; of equals, the first of the catalogue.
    #[must_use]
    pub fn dominant_cause(&self) -> Option<Cause> {
        let mut sums: BTreeMap<Cause, DurationNs> = BTreeMap::new();
        for (cause, _, time) in self.entries() {
            let sum = sums.entry(cause).or_default();
            *sum = *sum + time;
        }
        sums.into_iter().max_by_key(|&(cause, time)| (time, std::cmp::Reverse(cause))).map(|(cause, _)| cause)
    }

    /// The stage with most time; of equals, the first.
    #[must_use]
    pub fn dominant_stage(&self) -> Option<Stage> {
        let mut sums: BTreeMap<Stage, DurationNs> = BTreeMap::new();
        for (_, stage, time) in self.entries() {
            let sum = sums.entry(stage).or_default();
            *sum = *sum + time;
        }
        sums.into_iter().max_by_key(|&(stage, time)| (time, std::cmp::Reverse(stage))).map(|(stage, _)| stage)
    }
}
