//! Steps from the ranges that the program marked around them.

use std::collections::BTreeMap;

use crate::attribute::names::Name;
use crate::attribute::timeline::{MarkerKind, ThreadIndex, Timeline};
use crate::event::{Interval, Pid};

/// Fewer ranges say nothing of steps.
const FEWEST: usize = 2;

/// Ranges of one thread whose names differ in a number at most, in order of time.
#[derive(Debug)]
pub struct Ranges {
    /// Each range.
    pub times: Vec<(Interval, Name)>,
}

/// Ranges by whether a profiler made them, their thread, and their name without its number.
type Groups<'a> = BTreeMap<(bool, ThreadIndex, &'a str), Vec<(Interval, Name)>>;

/// The ranges around steps that a thread of process `pid` marked: a profiler's own, or those that are called steps,
/// iterations or batches.
#[must_use]
pub fn of_process(timeline: &Timeline, pid: Pid) -> Option<Ranges> {
    let mut groups = Groups::new();
    let first = timeline.threads.partition_point(|thread| thread.pid < pid);
    for thread in timeline.threads[first..].iter().take_while(|thread| thread.pid == pid) {
        for marker in &timeline.markers[thread.markers.clone()] {
            let profiler = marker.kind == MarkerKind::Step;
            let name = base_name(timeline.names.get(marker.name));
            if profiler || (marker.kind == MarkerKind::Marked && says_step(name)) {
                groups.entry((profiler, marker.thread, name)).or_default().push((marker.time, marker.name));
            }
        }
    }
    let covered = |times: &[(Interval, Name)]| times.iter().map(|(time, _)| time.length().0).sum::<i64>();
    groups
        .into_iter()
        .filter(|(_, times)| times.len() >= FEWEST && disjoint(times))
        // A profiler's own ranges first; then what covers most, and of equals the finer ones.
        .max_by_key(|((profiler, ..), times)| (*profiler, covered(times), times.len()))
        .map(|(_, times)| Ranges { times })
}

/// A name without the number at its end: `ProfilerStep#12` is one of `ProfilerStep`.
fn base_name(name: &str) -> &str {
    name.trim_end_matches(|c: char| c.is_ascii_digit() || c.is_ascii_whitespace() || "#:=_-./".contains(c))
}

fn says_step(name: &str) -> bool {
    let last = name.rsplit(['.', ':', '/', '#']).next().unwrap_or(name).to_ascii_lowercase();
    // `optimizer.step`, `Optimizer.step#Adam.step` and a scheduler's are parts of a step.
    let part = name.to_ascii_lowercase();
    let part = ["optimizer", "scheduler", "scaler"].iter().any(|owner| part.contains(owner));
    let words = ["step", "iteration", "iter", "batch", "minibatch"];
    !part && last.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| words.contains(&word))
}

fn disjoint(times: &[(Interval, Name)]) -> bool {
    times.windows(2).all(|pair| pair[0].0.end <= pair[1].0.start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_steps() {
        for name in ["step 12", "train_step", "iteration_3", "Batch", "train::step#9", "iter"] {
            assert!(says_step(base_name(name)), "{name}");
        }
        for name in ["Optimizer.step#Adam.step", "forward", "stepwise", "lr_scheduler.step", ""] {
            assert!(!says_step(base_name(name)), "{name}");
        }
        assert_eq!(base_name("ProfilerStep#12"), "ProfilerStep");
    }
}
