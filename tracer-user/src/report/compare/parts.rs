//! A recording in equal parts, with the waiting in each by cause and stage.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::noise::Samples;
use crate::event::Text;
use crate::report::model::Report;
use crate::store::schema::{Gap, GapSegment, GpuOp};
use crate::store::{Bundle, StoreError};

/// Parts of a recording: enough to see how much they differ, each long enough to hold many gaps.
const PARTS: usize = 24;
const SECOND: f64 = 1e9;

/// Sums of each part, over all devices.
pub struct Parts {
    /// Seconds of the devices' windows in each part.
    seconds: f64,
    causes: BTreeMap<Text, Vec<i64>>,
    stages: BTreeMap<Text, Vec<i64>>,
    all: Vec<i64>,
    kernels: Vec<i64>,
}

/// Where a device's parts lie.
#[derive(Clone, Copy)]
struct Window {
    start: i64,
    length: i64,
}

impl Window {
    fn part(self, at: i64) -> usize {
        let index = i128::from((at - self.start).max(0)) * PARTS as i128 / i128::from(self.length.max(1));
        (index as usize).min(PARTS - 1)
    }

    /// Where a part ends.
    fn end(self, part: usize) -> i64 {
        // The first nanosecond of the next part, by the same rounding as in `part`.
        let scaled = i128::from(self.length) * (part as i128 + 1);
        self.start + (scaled + PARTS as i128 - 1).div_euclid(PARTS as i128) as i64
    }
}

impl Parts {
    /// Reads an analysed bundle, of which `report` was made.
    pub fn collect(bundle: &Bundle, report: &Report, progress: &dyn Fn(u64)) -> Result<Self, StoreError> {
        let windows: HashMap<i32, Window> = report
            .devices
            .iter()
            .map(|device| {
                (device.device, Window { start: device.window_start_ns, length: device.window_ns() })
            })
            .collect();
        let mut parts = Self {
            seconds: report.totals.window_ns as f64 / SECOND / PARTS as f64,
            causes: BTreeMap::new(),
            stages: BTreeMap::new(),
            all: vec![0; PARTS],
            kernels: vec![0; PARTS],
        };
        let mut window_of: HashMap<i64, Window> = HashMap::new();
        let tell = |index: usize| {
            if index % 1024 == 1023 {
                progress(1024);
            }
        };
        for (index, gap) in bundle.scan::<Gap>()?.enumerate() {
            let gap = gap?;
            if let Some(window) = windows.get(&gap.device.0) {
                window_of.insert(gap.gap_id.0, *window);
            }
            tell(index);
        }
        for (index, segment) in bundle.scan::<GapSegment>()?.enumerate() {
            let segment = segment?;
            if let Some(window) = window_of.get(&segment.gap_id.0) {
                parts.segment(*window, &segment);
            }
            tell(index);
        }
        for (index, op) in bundle.scan::<GpuOp>()?.enumerate() {
            let op = op?;
            if let Some(window) = windows.get(&op.device.0)
                && !matches!(&*op.kind, "memcpy" | "memset")
            {
                parts.kernels[window.part(op.start_ns.0)] += 1;
            }
            tell(index);
        }
        Ok(parts)
    }

    fn segment(&mut self, window: Window, segment: &GapSegment) {
        let cause = self.causes.entry(segment.cause.clone()).or_insert_with(|| vec![0; PARTS]);
        let stage = self.stages.entry(segment.stage.clone()).or_insert_with(|| vec![0; PARTS]);
        let (mut from, end) = (segment.start_ns.0, segment.end_ns.0);
        while from < end {
            let part = window.part(from);
            let until = if part + 1 == PARTS { end } else { end.min(window.end(part)) };
            for sums in [&mut *cause, &mut *stage, &mut self.all] {
                sums[part] += until - from;
            }
            from = until;
        }
    }

    /// How many parts have anything to say.
    pub fn count(&self) -> usize {
        if self.seconds > 0.0 { PARTS } else { 0 }
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
        let sums = sums.cloned().unwrap_or_else(|| vec![0; PARTS]);
        Samples::new(&sums.iter().map(|sum| (*sum as f64, self.seconds)).collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_moment_lies_in_its_part(start in -1_000_000_i64..1_000_000, length in 1_i64..10_000_000, at in 0.0_f64..1.0) {
            let window = Window { start, length };
            let moment = start + (length as f64 * at) as i64;
            let part = window.part(moment);
            prop_assert!(moment < window.end(part) || part + 1 == PARTS);
            prop_assert!(part == 0 || moment >= window.end(part - 1));
        }
    }
}
