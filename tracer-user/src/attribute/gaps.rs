//! The gaps of a device: its stretches without compute, and the op that ended each.

use super::busy::{Activity, stretches};
use super::timeline::{NO_INDEX, Op, Timeline};
use crate::event::{DeviceId, DurationNs, Interval, MonoNs};

/// A gap before it has a cause. Ops are indices into [`Timeline::ops`].
#[derive(Clone, Copy, Debug)]
pub struct RawGap {
    /// The GPU.
    pub device: DeviceId,
    /// Never [`Activity::Busy`].
    pub activity: Activity,
    /// When.
    pub time: Interval,
    /// The op that ended last before it.
    pub previous: Option<usize>,
    /// The op that ended it by starting; of several, the one launched first.
    pub next: Option<usize>,
}

/// What a device did over the whole recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceTime {
    /// The GPU.
    pub device: DeviceId,
    /// The recording, widened to hold all ops.
    pub recording: Interval,
    /// From its first op's start to its last one's end.
    pub window: Interval,
    /// A kernel or graph ran.
    pub busy: DurationNs,
    /// Nothing ran.
    pub idle: DurationNs,
    /// Only copies ran.
    pub exposed_copy: DurationNs,
    /// Only collectives ran.
    pub exposed_comm: DurationNs,
}

impl DeviceTime {
    /// All its gaps.
    #[must_use]
    pub fn gap_time(&self) -> DurationNs {
        self.idle + self.exposed_copy + self.exposed_comm
    }

    /// Before its first op.
    #[must_use]
    pub fn leading_edge(&self) -> Interval {
        Interval::new(self.recording.start, self.window.start)
    }

    /// After its last op.
    #[must_use]
    pub fn trailing_edge(&self) -> Interval {
        Interval::new(self.window.end, self.recording.end)
    }
}

/// The gaps of one device, in order of time, and its sums. `range` is where its ops lie.
#[must_use]
pub fn find_gaps(
    timeline: &Timeline,
    device: DeviceId,
    range: std::ops::Range<usize>,
) -> (DeviceTime, Vec<RawGap>) {
    let ops = &timeline.ops[range.clone()];
    let stretches = stretches(ops);
    let total = |activity| super::busy::total(&stretches, activity);
    let window = Interval::new(
        stretches.first().map_or(timeline.recording.start, |first| first.time.start),
        stretches.last().map_or(timeline.recording.start, |last| last.time.end),
    );
    let recording =
        Interval::new(timeline.recording.start.min(window.start), timeline.recording.end.max(window.end));
    let time = DeviceTime {
        device,
        recording,
        window,
        busy: total(Activity::Busy),
        idle: total(Activity::Idle),
        exposed_copy: total(Activity::ExposedCopy),
        exposed_comm: total(Activity::ExposedComm),
    };
    let gaps = stretches
        .iter()
        .filter(|stretch| stretch.activity != Activity::Busy)
        .map(|stretch| RawGap {
            device,
            activity: stretch.activity,
            time: stretch.time,
            previous: stretch.previous.map(|index| range.start + index),
            next: first_launched_at(timeline, ops, stretch.time.end).map(|index| range.start + index),
        })
        .collect();
    (time, gaps)
}

/// Of the ops that start at `moment`, the one launched first.
fn first_launched_at(timeline: &Timeline, ops: &[Op], moment: MonoNs) -> Option<usize> {
    let first = ops.partition_point(|op| op.start() < moment);
    ops[first..]
        .iter()
        .enumerate()
        .take_while(|(_, op)| op.start() == moment)
        .min_by_key(|(_, op)| {
            let launched = match op.launch {
                NO_INDEX => MonoNs::MAX,
                launch => timeline.api[launch as usize].time.start,
            };
            (launched, op.id)
        })
        .map(|(index, _)| first + index)
}
