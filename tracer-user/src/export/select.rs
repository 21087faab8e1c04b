//! Which part of the recording is exported.

use crate::event::{DurationNs, Interval, MonoNs};

/// How much is shown of a time. Each level has what the next one has, and more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    /// Everything.
    All,
    /// Of threads and block requests only those on causal chains.
    Chains,
    /// Only the rows that causes rest on.
    Evidence,
    /// Only gaps with their segments, and losses.
    Gaps,
}

/// All of time, or some intervals of it, in some detail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    windows: Option<Vec<Interval>>,
    detail: Detail,
    segments: usize,
}

impl Selection {
    /// Everything.
    pub fn all() -> Self {
        Self { windows: None, detail: Detail::All, segments: usize::MAX }
    }

    /// What touches one of these intervals.
    pub fn windows(mut windows: Vec<Interval>) -> Self {
        windows.sort_unstable();
        let mut merged: Vec<Interval> = Vec::with_capacity(windows.len());
        for window in windows {
            match merged.last_mut() {
                Some(last) if window.start <= last.end => last.end = last.end.max(window.end),
                _ => merged.push(window),
            }
        }
        Self { windows: Some(merged), ..Self::all() }
    }

    /// The same in this detail.
    pub fn in_detail(self, detail: Detail) -> Self {
        Self { detail, ..self }
    }

    /// The same with at most so many segments of each gap, the longest ones.
    pub fn longest_segments(self, segments: usize) -> Self {
        Self { segments, ..self }
    }

    /// The detail.
    pub fn detail(&self) -> Detail {
        self.detail
    }

    /// How many segments of each gap.
    pub fn segments(&self) -> usize {
        self.segments
    }

    /// The length of the shortest interval selected; `None`: all of time is.
    pub fn shortest(&self) -> Option<DurationNs> {
        self.windows.as_ref().and_then(|windows| windows.iter().map(|window| window.length()).min())
    }

    /// Beginnings of intervals after one moment and before another.
    pub fn begun(&self, after: MonoNs, before: MonoNs) -> impl Iterator<Item = MonoNs> {
        let windows = self.windows.as_deref().unwrap_or_default();
        let first = windows.partition_point(|window| window.start <= after);
        windows[first..].iter().map(|window| window.start).take_while(move |start| *start < before)
    }

    /// Whether `[start, end)` touches the selection; an empty interval counts as the moment at its start.
    pub fn touches(&self, start: MonoNs, end: MonoNs) -> bool {
        let Some(windows) = &self.windows else { return true };
        let first = windows.partition_point(|window| window.end <= start);
        windows.get(first).is_some_and(|window| window.start < end || window.start <= start)
    }

    /// The same for an interval that may have no end and then goes on to `last`; returns its end, too.
    pub fn touches_open(&self, start: MonoNs, end: Option<MonoNs>, last: MonoNs) -> (bool, MonoNs) {
        let end = end.unwrap_or(last).max(start);
        (self.touches(start, end), end)
    }

    /// The part of an interval to draw: from the first window that it touches to the last. A wait of an hour around a gap
    /// of a millisecond would otherwise set the viewer's scale. What touches nothing stays as it is.
    pub fn clip(&self, start: MonoNs, end: MonoNs) -> (MonoNs, MonoNs) {
        let Some(windows) = &self.windows else { return (start, end) };
        let first = windows.partition_point(|window| window.end <= start);
        let after = windows.partition_point(|window| window.start < end);
        match windows.get(first..after) {
            Some([first, .., last]) => (start.max(first.start), end.min(last.end)),
            Some([only]) => (start.max(only.start), end.min(only.end)),
            _ => (start, end),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn interval(start: i64, length: i64) -> Interval {
        Interval { start: MonoNs(start), end: MonoNs(start + length) }
    }

    proptest! {
        #[test]
        fn clipping_keeps_every_nanosecond_inside(
            windows in prop::collection::vec((0_i64..60, 1_i64..9), 0..8),
            start in 0_i64..70,
            length in 1_i64..20,
        ) {
            let windows: Vec<Interval> = windows.iter().map(|(start, length)| interval(*start, *length)).collect();
            let whole = interval(start, length);
            let selection = Selection::windows(windows.clone());
            let (from, to) = selection.clip(whole.start, whole.end);
            let clipped = Interval { start: from, end: to };
            prop_assert_eq!(clipped.intersect(whole), clipped);
            for window in windows {
                prop_assert_eq!(clipped.intersect(window).length(), whole.intersect(window).length());
            }
        }

        #[test]
        fn touching_is_sharing_a_nanosecond(
            windows in prop::collection::vec((0_i64..60, 1_i64..9), 0..8),
            start in 0_i64..70,
            length in 0_i64..20,
        ) {
            let windows: Vec<Interval> = windows.iter().map(|(start, length)| interval(*start, *length)).collect();
            let other = interval(start, length.max(1));
            let expected = windows.iter().any(|window| !window.intersect(other).is_empty());
            let selection = Selection::windows(windows);
            prop_assert_eq!(selection.touches(MonoNs(start), MonoNs(start + length)), expected);
        }
    }
}
