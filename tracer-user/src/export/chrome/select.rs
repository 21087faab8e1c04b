//! Which part of the recording is exported.

use crate::event::{Interval, MonoNs};

/// All of time, or some intervals of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection(Option<Vec<Interval>>);

impl Selection {
    /// Everything.
    pub fn all() -> Self {
        Self(None)
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
        Self(Some(merged))
    }

    /// Whether `[start, end)` touches the selection; an empty interval counts as the moment at its start.
    pub fn touches(&self, start: MonoNs, end: MonoNs) -> bool {
        let Some(windows) = &self.0 else { return true };
        let first = windows.partition_point(|window| window.end <= start);
        windows.get(first).is_some_and(|window| window.start < end || window.start <= start)
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
