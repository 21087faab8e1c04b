//! A recording in parts, with the waiting in each by cause and stage.
//!
//! Parts are groups of as many steps each, where the analysis found steps in both recordings, and equal pieces of the GPUs'
//! windows otherwise.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::Per;
use super::noise::Samples;
use crate::event::Text;
use crate::report::model::Report;
use crate::store::schema::{Gap, GapSegment, GpuOp, Step};
use crate::store::{Bundle, StoreError};

/// Parts of a recording: enough to see how much they differ, each long enough to hold many gaps.
pub const PARTS: usize = 24;
/// Fewer steps are too few to make parts of.
const FEWEST_STEPS: usize = 2 * PARTS;
const SECOND: f64 = 1e9;

/// Sums of each part, over all devices.
pub struct Parts {
    /// Steps or seconds in each part.
    units: Vec<f64>,
    causes: BTreeMap<Text, Vec<i64>>,
    stages: BTreeMap<Text, Vec<i64>>,
    all: Vec<i64>,
    kernels: Vec<i64>,
}

/// Where the parts of each device lie: the first one's beginning, then each one's end.
type Bounds = HashMap<i32, Vec<i64>>;

/// The steps of each device: where each begins and ends, in order of time.
type Steps = BTreeMap<i32, Vec<(i64, i64)>>;

/// Where a bundle can be cut.
pub struct Cuts {
    steps: Steps,
}

impl Cuts {
    /// Looks for steps.
    pub fn of(bundle: &Bundle) -> Result<Self, StoreError> {
        let mut steps = Steps::new();
        for step in bundle.scan::<Step>()? {
            let step = step?;
            steps.entry(step.device.0).or_default().push((step.start_ns.0, step.end_ns.0));
        }
        Ok(Self { steps })
    }

    /// Whether there are steps enough on each device of the report that has work.
    pub fn has_steps(&self, report: &Report) -> bool {
        let working = || report.devices.iter().filter(|device| device.window_ns() > 0);
        working().next().is_some()
            && working()
                .all(|device| self.steps.get(&device.device).is_some_and(|steps| steps.len() >= FEWEST_STEPS))
    }

    /// The bounds of the parts, and the units in each.
    fn bounds(&self, report: &Report, per: Per) -> (Bounds, Vec<f64>) {
        let mut units = vec![0.0; PARTS];
        let bounds = report.devices.iter().filter(|device| device.window_ns() > 0).map(|device| {
            let steps = self.steps.get(&device.device).filter(|_| per == Per::Step);
            let bounds = if let Some(steps) = steps {
                let first = |part: usize| part * steps.len() / PARTS;
                for (part, units) in units.iter_mut().enumerate() {
                    *units += (first(part + 1) - first(part)) as f64;
                }
                let starts = (0..PARTS).map(|part| steps[first(part)].0);
                starts.chain(steps.last().map(|step| step.1)).collect()
            } else {
                let (start, length) = (device.window_start_ns, device.window_ns());
                for units in &mut units {
                    *units += length as f64 / SECOND / PARTS as f64;
                }
                let end = |part: usize| i128::from(length) * part as i128 / PARTS as i128;
                (0..=PARTS).map(|part| start + end(part) as i64).collect()
            };
            (device.device, bounds)
        });
        (bounds.collect(), units)
    }
}

/// The part that a moment lies in.
fn part_at(bounds: &[i64], at: i64) -> Option<usize> {
    let after = bounds.partition_point(|bound| *bound <= at);
    (after > 0 && after < bounds.len()).then(|| after - 1)
}

/// The pieces of `[from, to)` in each part.
fn pieces(bounds: &[i64], from: i64, to: i64, mut piece: impl FnMut(usize, i64)) {
    let first = bounds.partition_point(|bound| *bound <= from).saturating_sub(1);
    for (part, window) in bounds.windows(2).enumerate().skip(first) {
        if window[0] >= to {
            return;
        }
        let length = to.min(window[1]) - from.max(window[0]);
        if length > 0 {
            piece(part, length);
        }
    }
}

impl Parts {
    /// Reads an analysed bundle, of which `report` and `cuts` were made.
    pub fn collect(
        bundle: &Bundle,
        report: &Report,
        cuts: &Cuts,
        per: Per,
        progress: &dyn Fn(u64),
    ) -> Result<Self, StoreError> {
        let (bounds, units) = cuts.bounds(report, per);
        let mut parts = Self {
            units,
            causes: BTreeMap::new(),
            stages: BTreeMap::new(),
            all: vec![0; PARTS],
            kernels: vec![0; PARTS],
        };
        let mut device_of: HashMap<i64, i32> = HashMap::new();
        let tell = |index: usize| {
            if index % 1024 == 1023 {
                progress(1024);
            }
        };
        for (index, gap) in bundle.scan::<Gap>()?.enumerate() {
            let gap = gap?;
            device_of.insert(gap.gap_id.0, gap.device.0);
            tell(index);
        }
        for (index, segment) in bundle.scan::<GapSegment>()?.enumerate() {
            let segment = segment?;
            if let Some(bounds) = device_of.get(&segment.gap_id.0).and_then(|device| bounds.get(device)) {
                parts.segment(bounds, &segment);
            }
            tell(index);
        }
        for (index, op) in bundle.scan::<GpuOp>()?.enumerate() {
            let op = op?;
            let part = bounds.get(&op.device.0).and_then(|bounds| part_at(bounds, op.start_ns.0));
            if let Some(part) = part.filter(|_| !matches!(&*op.kind, "memcpy" | "memset")) {
                parts.kernels[part] += 1;
            }
            tell(index);
        }
        Ok(parts)
    }

    fn segment(&mut self, bounds: &[i64], segment: &GapSegment) {
        let cause = self.causes.entry(segment.cause.clone()).or_insert_with(|| vec![0; PARTS]);
        let stage = self.stages.entry(segment.stage.clone()).or_insert_with(|| vec![0; PARTS]);
        pieces(bounds, segment.start_ns.0, segment.end_ns.0, |part, length| {
            for sums in [&mut *cause, &mut *stage, &mut self.all] {
                sums[part] += length;
            }
        });
    }

    /// How many parts have anything to say.
    pub fn count(&self) -> usize {
        self.units.iter().filter(|units| **units > 0.0).count()
    }

    /// The codes of causes.
    pub fn causes(&self) -> BTreeSet<&str> {
        self.causes.keys().map(|code| &**code).collect()
    }

    /// The codes of stages.
    pub fn stages(&self) -> BTreeSet<&str> {
        self.stages.keys().map(|code| &**code).collect()
    }

    /// What a cause took.
    pub fn cause(&self, code: &str) -> Samples {
        self.samples(self.causes.get(code))
    }

    /// What a stage took.
    pub fn stage(&self, code: &str) -> Samples {
        self.samples(self.stages.get(code))
    }

    /// All waiting.
    pub fn all(&self) -> Samples {
        self.samples(Some(&self.all))
    }

    /// Kernels that began.
    pub fn kernels(&self) -> Samples {
        self.samples(Some(&self.kernels))
    }

    fn samples(&self, sums: Option<&Vec<i64>>) -> Samples {
        let none = vec![0; PARTS];
        let sums = sums.unwrap_or(&none).iter().map(|sum| *sum as f64);
        Samples::new(&sums.zip(self.units.iter().copied()).collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn pieces_are_the_whole_of_what_lies_within(
            mut bounds in proptest::collection::vec(0_i64..1_000, 2..30),
            from in -100_i64..1_100,
            length in 0_i64..500,
        ) {
            bounds.sort_unstable();
            let to = from + length;
            let mut sum = 0;
            pieces(&bounds, from, to, |part, length| {
                sum += length;
                assert!(length > 0 && part + 1 < bounds.len());
            });
            let (first, last) = (bounds[0], bounds[bounds.len() - 1]);
            prop_assert_eq!(sum, (to.min(last) - from.max(first)).max(0));
            if let Some(part) = part_at(&bounds, from) {
                prop_assert!(bounds[part] <= from && from < bounds[part + 1]);
            }
        }
    }
}
