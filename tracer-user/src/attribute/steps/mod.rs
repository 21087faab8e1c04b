//! Steps: the repetitions that a training or serving loop consists of, as the device sees them.
//!
//! They are found from ranges that the program or its profiler marked, or from the sequence of the device's work. A step of
//! a device goes from the end of the work of the step before it to the end of its own, so that the wait for a step's data
//! belongs to that step.

mod outlier;
mod ranges;
mod sequence;

use std::collections::HashMap;

use foldhash::fast::RandomState;

pub use outlier::Outlier;

use super::block::Block;
use super::busy::Activity;
use super::cuda_call::CudaCall;
use super::names::Name;
use super::segment::Segment;
use super::stage::Stage;
use super::timeline::{NO_INDEX, Op, Timeline};
use crate::event::{DeviceId, DurationNs, Interval, MonoNs, Pid, Text};
use crate::store::schema;
use sequence::Element;

/// One step of one device.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// The GPU.
    pub device: DeviceId,
    /// Its number on that device, from 0.
    pub number: i64,
    /// The range around it; [`Name::NONE`] if it was found from the sequence of work.
    pub range: Name,
    /// From the end of the work before it to the end of its own.
    pub time: Interval,
    /// Its ops.
    pub ops: i64,
    /// Gap time in it by kind: idle, exposed copies, exposed collectives.
    pub gaps: [DurationNs; 3],
    /// Gap time in it by stage, in the order of [`Stage::ALL`].
    pub stages: [DurationNs; 8],
    /// How it differs from the others.
    pub outlier: Option<Outlier>,
}

/// The steps of all devices, by device and time.
#[derive(Debug, Default)]
pub struct Steps {
    steps: Vec<Step>,
}

impl Steps {
    /// Finds the steps of each device; their gap time is entered with [`Self::add`].
    #[must_use]
    pub fn find(timeline: &Timeline) -> Self {
        let mut steps = Vec::new();
        for (device, range) in timeline.device_ops() {
            steps.extend(of_device(timeline, device, &timeline.ops[range]));
        }
        outlier::mark(&mut steps);
        Self { steps }
    }

    /// All steps.
    #[must_use]
    pub fn all(&self) -> &[Step] {
        &self.steps
    }

    /// Enters the gap time of a block.
    pub fn add(&mut self, block: &Block) {
        for gap in &block.gaps {
            let first = self
                .steps
                .partition_point(|step| (step.device, step.time.end) <= (gap.gap.device, gap.gap.time.start));
            let mut from = first;
            for segment in block.segments_of(gap) {
                while self
                    .steps
                    .get(from)
                    .is_some_and(|step| step.device == gap.gap.device && step.time.end <= segment.time.start)
                {
                    from += 1;
                }
                let steps = self.steps[from..]
                    .iter_mut()
                    .take_while(|step| step.device == gap.gap.device && step.time.start < segment.time.end);
                for step in steps {
                    step.enter(gap.gap.activity, segment);
                }
            }
        }
    }

    /// The rows of the table `steps`.
    pub fn rows<'a>(&'a self, timeline: &'a Timeline) -> impl Iterator<Item = schema::Step> + 'a {
        self.steps.iter().map(|step| step.row(timeline))
    }
}

impl Step {
    fn enter(&mut self, activity: Activity, segment: &Segment) {
        let time = segment.time.intersect(self.time).length();
        let kind = match activity {
            Activity::Busy | Activity::Idle => 0,
            Activity::ExposedCopy => 1,
            Activity::ExposedComm => 2,
        };
        self.gaps[kind] = self.gaps[kind] + time;
        let stage = &mut self.stages[segment.stage as usize];
        *stage = *stage + time;
    }

    fn row(&self, timeline: &Timeline) -> schema::Step {
        let stage = |stage: Stage| self.stages[stage as usize];
        let gaps: DurationNs = self.gaps.into_iter().sum();
        schema::Step {
            step: self.number,
            device: self.device,
            start_ns: self.time.start,
            end_ns: self.time.end,
            found_by: Text::from(if self.range.is_none() { "sequence" } else { "range" }),
            range: timeline.names.to_text(self.range),
            ops: self.ops,
            compute_ns: DurationNs(self.time.length().0 - gaps.0),
            idle_ns: self.gaps[0],
            exposed_copy_ns: self.gaps[1],
            exposed_comm_ns: self.gaps[2],
            data_loading_ns: stage(Stage::DataLoading),
            h2d_ns: stage(Stage::H2d),
            forward_backward_ns: stage(Stage::ForwardBackward),
            communication_ns: stage(Stage::Communication),
            checkpoint_ns: stage(Stage::Checkpoint),
            serving_ns: stage(Stage::Serving),
            startup_ns: stage(Stage::Startup),
            other_ns: stage(Stage::Other),
            outlier: self.outlier.map(|outlier| Text::from(outlier.as_str())),
        }
    }
}

/// A piece of a device's work, in the order of its launch.
struct Launched {
    moment: MonoNs,
    symbol: u64,
    /// An index into the device's ops, or [`NO_INDEX`] for a call that waits.
    op: u32,
}

impl Launched {
    fn op<'a>(&self, ops: &'a [Op]) -> Option<&'a Op> {
        ops.get(self.op as usize)
    }
}

fn of_device(timeline: &Timeline, device: DeviceId, ops: &[Op]) -> Vec<Step> {
    let Some(pid) = busiest_process(ops) else { return Vec::new() };
    let launched = launched(timeline, pid, ops);
    let (cuts, names) = if let Some(ranges) = ranges::of_process(timeline, pid) {
        cuts_of_ranges(&launched, &ranges)
    } else {
        let beginning = elements(&launched[..launched.len().min(sequence::SHOWS)], ops);
        (sequence::find_steps(&beginning, launched.iter().map(|work| work.symbol)), Vec::new())
    };
    let Some(&first) = cuts.first() else { return Vec::new() };
    let latest_end = |launched: &[Launched], from| {
        launched.iter().filter_map(|work| work.op(ops)).map(Op::end).fold(from, Ord::max)
    };
    let mut cursor = latest_end(&launched[..first], MonoNs::MIN);
    let mut steps: Vec<Step> = Vec::new();
    for (index, pair) in cuts.windows(2).enumerate() {
        let work = &launched[pair[0]..pair[1]];
        let count = work.iter().filter(|work| work.op != NO_INDEX).count() as i64;
        let began = work.iter().filter_map(|work| work.op(ops)).map(Op::start).min();
        let start = if cursor == MonoNs::MIN { began.unwrap_or(cursor) } else { cursor };
        cursor = latest_end(work, start);
        let time = Interval::new(start, cursor);
        if count == 0 || time.is_empty() {
            continue;
        }
        steps.push(Step {
            device,
            number: steps.len() as i64,
            range: names.get(index).copied().unwrap_or_default(),
            time,
            ops: count,
            gaps: [DurationNs(0); 3],
            stages: [DurationNs(0); 8],
            outlier: None,
        });
    }
    steps
}

fn busiest_process(ops: &[Op]) -> Option<Pid> {
    let mut counts: HashMap<Pid, usize, RandomState> = HashMap::default();
    for op in ops {
        *counts.entry(op.pid).or_default() += 1;
    }
    counts.into_iter().max_by_key(|&(pid, count)| (count, std::cmp::Reverse(pid))).map(|(pid, _)| pid)
}

/// The work of process `pid` in the order of its launch, with the calls that wait for the device between it: where all
/// kernels are alike, those show the step.
fn launched(timeline: &Timeline, pid: Pid, ops: &[Op]) -> Vec<Launched> {
    let mut launched: Vec<Launched> = (0..)
        .zip(ops)
        .filter(|(_, op)| op.pid == pid)
        .map(|(index, op)| {
            let moment = match op.launch {
                NO_INDEX => op.start(),
                launch => timeline.api[launch as usize].time.start,
            };
            // Copies of other sizes are other work; a kernel's grid is not known here.
            let symbol =
                (u64::from(op.name.number()) << 32) ^ (op.bytes as u64).wrapping_mul(31) ^ op.copy as u64;
            Launched { moment, op: index, symbol }
        })
        .collect();
    let first = timeline.threads.partition_point(|thread| thread.pid < pid);
    for thread in timeline.threads[first..].iter().take_while(|thread| thread.pid == pid) {
        let waits = timeline.api[thread.api.clone()]
            .iter()
            .filter(|call| call.kind == CudaCall::Synchronize && call.parent == NO_INDEX);
        launched.extend(waits.map(|call| Launched {
            moment: call.time.start,
            op: NO_INDEX,
            symbol: (1 << 63) | u64::from(call.name.number()),
        }));
    }
    launched.sort_unstable_by_key(|work| (work.moment, work.op(ops).map(|op| op.id), work.symbol));
    launched
}

fn elements(launched: &[Launched], ops: &[Op]) -> Vec<Element> {
    let mut latest = MonoNs::MAX;
    launched
        .iter()
        .map(|work| {
            let idle = work.op(ops).map_or(0, |op| {
                let idle = if latest == MonoNs::MAX { 0 } else { (op.start() - latest.min(op.start())).0 };
                latest = if latest == MonoNs::MAX { op.end() } else { latest.max(op.end()) };
                idle
            });
            Element { symbol: work.symbol, idle }
        })
        .collect()
}

/// Work belongs to the range in which it was launched, and what lies between two ranges to the one before.
fn cuts_of_ranges(launched: &[Launched], ranges: &ranges::Ranges) -> (Vec<usize>, Vec<Name>) {
    let before = |moment: MonoNs| launched.partition_point(|work| work.moment < moment);
    let mut cuts: Vec<usize> = ranges.times.iter().map(|(time, _)| before(time.start)).collect();
    cuts.extend(ranges.times.last().map(|(time, _)| before(time.end)));
    (cuts, ranges.times.iter().map(|(_, name)| *name).collect())
}
