//! Which part of the recording is exported.

use crate::event::{Interval, MonoNs};

/// All of time, or some intervals of it; and of these everything, or what concerns causal chains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    windows: Option<Vec<Interval>>,
    chains_only: bool,
}

impl Selection {
    /// Everything.
    pub fn all() -> Self {
        Self { windows: None, chains_only: false }
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
        Self { windows: Some(merged), chains_only: false }
    }

    /// The same without threads and block requests that no causal chain runs through.
    pub fn chains_only(self) -> Self {
        Self { chains_only: true, ..self }
    }

    /// Whether only threads and requests on causal chains are wanted.
    pub fn is_chains_only(&self) -> bool {
        self.chains_only
    }

    /// Whether `[start, end)` touches the selection; an empty interval counts as the moment at its start.
    pub fn touches(&self, start: MonoNs, end: MonoNs) -> bool {
        let Some(windows) = &self.windows else { return true };
        let first = windows.partition_point(|window| window.end <= start);
        windows.get(first).is_some_and(|window| window.start < end || window.start <= start)
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
