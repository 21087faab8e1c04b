//! Which steps take longer than the others, and in which pattern.

use std::cmp::Reverse;

use super::Step;

/// How a step differs from the others of its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outlier {
    /// The first one, and slower: allocation, compilation, cold caches.
    First,
    /// One of slow steps that come at even distances: a checkpoint, an evaluation, a log.
    Periodic,
    /// Slower than the others for once.
    Slow,
}

impl Outlier {
    /// Its name in the table.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Periodic => "periodic",
            Self::Slow => "slow",
        }
    }
}

/// A step longer than the median by this part of it, and by five times the usual difference, is slow.
const LONGER: f64 = 0.25;
const USUAL: f64 = 5.0;
/// So many slow steps at one distance are a pattern.
const PATTERN: usize = 3;
/// A pattern shows in so many slow steps.
const MOST_COMPARED: usize = 500;

/// Marks the outliers of each device's steps.
pub fn mark(steps: &mut [Step]) {
    for device in steps.chunk_by_mut(|a, b| a.device == b.device) {
        mark_device(device);
    }
}

fn mark_device(steps: &mut [Step]) {
    let mut lengths: Vec<i64> = steps.iter().map(|step| step.time.length().0).collect();
    let Some(median) = middle(&mut lengths) else { return };
    let mut off: Vec<i64> = lengths.iter().map(|length| (length - median).abs()).collect();
    let usual = middle(&mut off).unwrap_or(0);
    let limit = median as f64 + (LONGER * median as f64).max(USUAL * usual as f64);
    let slow: Vec<usize> =
        (0..steps.len()).filter(|&index| steps[index].time.length().0 as f64 > limit).collect();
    let distance = distance(&slow);
    for &index in &slow {
        let regular = distance.is_some_and(|distance| has_neighbour(&slow, index, distance));
        steps[index].outlier = Some(match () {
            () if index == 0 => Outlier::First,
            () if regular => Outlier::Periodic,
            () => Outlier::Slow,
        });
    }
}

/// The distance at which most slow steps have another one.
fn distance(slow: &[usize]) -> Option<usize> {
    let slow = &slow[..slow.len().min(MOST_COMPARED)];
    let mut distances: Vec<usize> = (1..=3)
        .flat_map(|further| slow.windows(further + 1).map(move |steps| steps[further] - steps[0]))
        // Slow steps beside one another are no pattern, but a bad time.
        .filter(|&distance| distance > 1)
        .collect();
    distances.sort_unstable();
    distances.dedup();
    let members = |distance| slow.iter().filter(|&&step| has_neighbour(slow, step, distance)).count();
    let (members, Reverse(distance)) =
        distances.into_iter().map(|distance| (members(distance), Reverse(distance))).max()?;
    (members >= PATTERN && 2 * members >= slow.len()).then_some(distance)
}

fn has_neighbour(slow: &[usize], step: usize, distance: usize) -> bool {
    let is_slow = |other: usize| slow.binary_search(&other).is_ok();
    is_slow(step + distance) || step.checked_sub(distance).is_some_and(is_slow)
}

fn middle(values: &mut [i64]) -> Option<i64> {
    let middle = values.len().checked_sub(1)? / 2;
    let (_, value, _) = values.select_nth_unstable(middle);
    Some(*value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::names::Name;
    use crate::event::{DeviceId, DurationNs, Interval, MonoNs};

    fn marked(lengths: &[i64]) -> Vec<Option<Outlier>> {
        let mut cursor = 0;
        let mut steps: Vec<Step> = (0..)
            .zip(lengths)
            .map(|(number, length)| {
                let time = Interval::new(MonoNs(cursor), MonoNs(cursor + length));
                cursor += length;
                Step {
                    device: DeviceId(0),
                    number,
                    range: Name::NONE,
                    time,
                    ops: 1,
                    gaps: [DurationNs(0); 3],
                    stages: [DurationNs(0); 8],
                    outlier: None,
                }
            })
            .collect();
        mark(&mut steps);
        steps.into_iter().map(|step| step.outlier).collect()
    }

    #[test]
    fn the_first_the_periodic_and_the_odd_one() {
        let mut lengths = vec![100; 40];
        lengths[0] = 900;
        for index in [9, 19, 29, 39] {
            lengths[index] = 180;
        }
        lengths[23] = 300;
        let marks = marked(&lengths);
        assert_eq!(marks[0], Some(Outlier::First));
        assert_eq!([marks[9], marks[19], marks[39]], [Some(Outlier::Periodic); 3]);
        assert_eq!(marks[23], Some(Outlier::Slow));
        assert_eq!(marks.iter().filter(|mark| mark.is_some()).count(), 6);
    }

    #[test]
    fn what_differs_as_usual_is_no_outlier() {
        let lengths: Vec<i64> = (0..30).map(|index| 100 + (index * 37) % 30).collect();
        assert!(marked(&lengths).iter().all(Option::is_none));
        assert!(marked(&[]).is_empty());
    }
}
