//! What an import had to refuse: counted by kind, and where the record could have been GPU work, the time that it may have
//! covered is unknown.

use std::collections::BTreeMap;

use crate::event::{Interval, MonoNs, Text};
use crate::store::schema;

/// Rows of one kind that are told one by one; what comes after widens the last.
const TOLD: usize = 4_096;

/// Refused records by source and reason.
#[derive(Debug, Default)]
pub struct Losses {
    /// Records that hide no GPU work.
    counted: BTreeMap<(&'static str, String), i64>,
    /// Records that may.
    hiding: BTreeMap<(&'static str, String), Vec<(Interval, i64)>>,
}

impl Losses {
    /// A record was refused that can hide neither GPU work nor a cause's absence.
    pub fn count(&mut self, source: &'static str, reason: &str) {
        *self.entry(source, reason) += 1;
    }

    fn entry(&mut self, source: &'static str, reason: &str) -> &mut i64 {
        // Reasons are few; the key is only made when it is new.
        self.counted.entry((source, reason.to_owned())).or_default()
    }

    /// Records were refused that may have been GPU work in `time`.
    pub fn hide(&mut self, source: &'static str, reason: &str, time: Interval, count: i64) {
        let rows = self.hiding.entry((source, reason.to_owned())).or_default();
        let full = rows.len() >= TOLD;
        match rows.last_mut() {
            Some((last, counted)) if full || last.intersect(time) == time => {
                *last = Interval::new(last.start.min(time.start), last.end.max(time.end));
                *counted += count;
            }
            _ => rows.push((time, count)),
        }
    }

    /// The same by source.
    #[must_use]
    pub fn by_source(&self) -> BTreeMap<&'static str, i64> {
        let mut sums = BTreeMap::new();
        for ((source, _), count) in &self.counted {
            *sums.entry(*source).or_default() += count;
        }
        for ((source, _), rows) in &self.hiding {
            *sums.entry(*source).or_default() += rows.iter().map(|(_, count)| count).sum::<i64>();
        }
        sums
    }

    /// Each kind with its count, the most frequent first.
    #[must_use]
    pub fn by_reason(&self) -> Vec<(&'static str, String, i64)> {
        let mut kinds: BTreeMap<(&'static str, &str), i64> = BTreeMap::new();
        for ((source, reason), count) in &self.counted {
            *kinds.entry((source, reason)).or_default() += count;
        }
        for ((source, reason), rows) in &self.hiding {
            *kinds.entry((source, reason)).or_default() += rows.iter().map(|(_, count)| count).sum::<i64>();
        }
        let mut kinds: Vec<_> =
            kinds.into_iter().map(|((source, reason), count)| (source, reason.to_owned(), count)).collect();
        kinds.sort_by_key(|kind| std::cmp::Reverse(kind.2));
        kinds
    }

    /// The rows of the table; `recording` holds all events.
    #[must_use]
    pub fn rows(&self, recording: Interval) -> Vec<schema::Loss> {
        let row = |source: &'static str, reason: &str, time: Interval, count| schema::Loss {
            source: Text::from(source),
            reason: Text::from(reason),
            pid: None,
            start_ns: time.start,
            end_ns: time.end,
            count,
        };
        let counted = self.counted.iter().map(|((source, reason), count)| {
            row(source, reason, Interval::new(recording.start, recording.start), *count)
        });
        let hiding = self.hiding.iter().flat_map(|((source, reason), rows)| {
            rows.iter().map(|(time, count)| {
                let start = time.start.clamp(recording.start, recording.end);
                row(source, reason, Interval::new(start, time.end.clamp(start, recording.end)), *count)
            })
        });
        counted.chain(hiding).collect()
    }
}

/// Where nothing is known of the time of a record but what stands beside it in the file.
#[derive(Debug, Default)]
pub struct Neighbours {
    before: Option<MonoNs>,
    waiting: Option<(&'static str, String, i64)>,
}

impl Neighbours {
    /// A record was refused whose time is not known.
    pub fn refuse(&mut self, losses: &mut Losses, source: &'static str, reason: &str) {
        match &mut self.waiting {
            Some((waiting, why, count)) if *waiting == source && why == reason => *count += 1,
            Some(_) => {
                if let Some(before) = self.before {
                    self.settle(losses, before);
                }
                self.waiting = Some((source, reason.to_owned(), 1));
            }
            None => self.waiting = Some((source, reason.to_owned(), 1)),
        }
    }

    /// A good record starts at `start`.
    #[inline]
    pub fn good(&mut self, losses: &mut Losses, start: MonoNs) {
        if self.waiting.is_some() {
            self.settle(losses, start);
        }
        self.before = Some(start);
    }

    /// The file ends.
    pub fn end(&mut self, losses: &mut Losses) {
        if self.waiting.is_some() {
            self.settle(losses, self.before.unwrap_or_default());
        }
    }

    fn settle(&mut self, losses: &mut Losses, after: MonoNs) {
        if let Some((source, reason, count)) = self.waiting.take() {
            let before = self.before.unwrap_or(after);
            losses.hide(source, &reason, Interval::new(before.min(after), before.max(after)), count);
        }
    }
}
