//! What a device does at each moment: the union of all its ops, over all streams, contexts and recorded processes.

use super::timeline::{Op, OpClass};
use crate::event::{DurationNs, Interval, MonoNs};

/// What a device does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Activity {
    /// A kernel or graph runs.
    Busy,
    /// Only collectives run.
    ExposedComm,
    /// Only copies and memsets run.
    ExposedCopy,
    /// Nothing runs.
    Idle,
}

impl Activity {
    /// Its name in the table `gaps`; `None` while busy.
    #[must_use]
    pub const fn gap_kind(self) -> Option<&'static str> {
        match self {
            Self::Busy => None,
            Self::ExposedComm => Some("exposed_comm"),
            Self::ExposedCopy => Some("exposed_copy"),
            Self::Idle => Some("idle"),
        }
    }

    fn of(running: [u32; 3]) -> Self {
        match running {
            [0, 0, 0] => Self::Idle,
            [0, 0, _] => Self::ExposedCopy,
            [0, _, _] => Self::ExposedComm,
            _ => Self::Busy,
        }
    }
}

/// A maximal interval of one activity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// When.
    pub time: Interval,
    /// What.
    pub activity: Activity,
    /// The op that ended last at or before its start, as an index into the device's ops.
    pub previous: Option<usize>,
}

/// The stretches of a device from the start of its first op to the end of its last. `ops` are the device's, by start. Those
/// of no length (shorter than the clock's resolution) add no time, but where the device idled around one, the idle time
/// before it and after it are two stretches: each waited for another op.
#[must_use]
pub fn stretches(ops: &[Op]) -> Vec<Stretch> {
    let mut ends: Vec<(MonoNs, usize)> = ops
        .iter()
        .enumerate()
        .filter(|(_, op)| !op.time.is_empty())
        .map(|(index, op)| (op.end(), index))
        .collect();
    ends.sort_unstable();
    let mut starts = ops.iter().filter(|op| !op.time.is_empty()).peekable();
    let mut points = ops.iter().enumerate().filter(|(_, op)| op.time.is_empty()).peekable();
    let mut ends = ends.into_iter().peekable();
    let mut running = [0_u32; 3];
    let mut previous = None;
    let mut stretches: Vec<Stretch> = Vec::new();
    loop {
        let next = [
            starts.peek().map(|op| op.start()),
            ends.peek().map(|&(end, _)| end),
            points.peek().map(|(_, op)| op.start()),
        ];
        let Some(now) = next.into_iter().flatten().min() else { break };
        while let Some((_, index)) = ends.next_if(|&(end, _)| end == now) {
            running[class_index(&ops[index])] -= 1;
            previous = Some(index);
        }
        while let Some(op) = starts.next_if(|op| op.start() == now) {
            running[class_index(op)] += 1;
        }
        let mut point = None;
        while let Some((index, _)) = points.next_if(|(_, op)| op.start() == now) {
            point = Some(index);
        }
        let activity = Activity::of(running);
        let splits = point.is_some() && activity == Activity::Idle;
        if splits {
            previous = point;
        }
        if let Some(last) = stretches.last_mut() {
            last.time.end = now;
            if last.activity == activity && !splits {
                continue;
            }
        }
        if ends.peek().is_some() || points.peek().is_some() {
            stretches.push(Stretch { time: Interval::new(now, now), activity, previous });
        }
    }
    stretches
}

fn class_index(op: &Op) -> usize {
    match op.class {
        OpClass::Compute => 0,
        OpClass::Communication => 1,
        OpClass::Copy => 2,
    }
}

/// The time of one activity.
#[must_use]
pub fn total(stretches: &[Stretch], activity: Activity) -> DurationNs {
    stretches.iter().filter(|stretch| stretch.activity == activity).map(|stretch| stretch.time.length()).sum()
}
