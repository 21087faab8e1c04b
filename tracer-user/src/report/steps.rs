//! Steps: how long they take, what of it is computing and what waiting, and which are unlike the others.

use std::collections::BTreeMap;

use serde::Serialize;

use super::model::Share;
use crate::store::schema::Step;

/// The steps of one GPU.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Steps {
    /// The GPU.
    pub device: i32,
    /// `range` (the program or its profiler marked them) or `sequence` (the GPU's work repeats).
    pub found_by: String,
    /// How many.
    pub count: u64,
    /// Ops in one; the median.
    pub ops: i64,
    /// From the start of the first to the end of the last.
    pub span_ns: i64,
    /// Length: the median.
    pub median_ns: i64,
    /// Length: the 95th percentile.
    pub p95_ns: i64,
    /// Length: the longest.
    pub longest_ns: i64,
    /// Mean computing time of a step.
    pub compute_ns: i64,
    /// Mean waiting time of a step.
    pub gap_ns: i64,
    /// The same by stage, the largest first.
    pub stages: Vec<Share>,
    /// Steps in a second, over all of them.
    pub per_second: f64,
    /// The first step, where it was slower than the others.
    pub first_ns: Option<i64>,
    /// Slow steps at even distances.
    pub periodic: Option<Periodic>,
    /// Other slow steps.
    pub slow: u64,
    /// The last third's median length against the first third's, where they differ by a tenth at least: 1.2 is slower.
    pub drift: Option<f64>,
}

/// Slow steps at even distances.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Periodic {
    /// One in so many steps.
    pub every: i64,
    /// How many there were.
    pub count: u64,
    /// How long they took; the median.
    pub median_ns: i64,
    /// The stage that has most of what they took longer, if one has.
    pub stage: Option<String>,
}

/// Fewer steps show no trend.
const ENOUGH_FOR_DRIFT: usize = 30;
/// A smaller difference is none.
const DRIFT: f64 = 0.1;

/// Collects steps.
#[derive(Default)]
pub struct StepTally {
    devices: BTreeMap<i32, Vec<Step>>,
}

impl StepTally {
    /// Takes a step.
    pub fn step(&mut self, step: &Step) {
        self.devices.entry(step.device.0).or_default().push(step.clone());
    }

    /// The steps of each GPU.
    #[must_use]
    pub fn finish(self) -> Vec<Steps> {
        self.devices.into_iter().filter_map(|(device, steps)| of_device(device, steps)).collect()
    }
}

fn length(step: &Step) -> i64 {
    step.end_ns.0 - step.start_ns.0
}

fn stages(step: &Step) -> [(&'static str, i64); 8] {
    [
        ("data_loading", step.data_loading_ns.0),
        ("h2d", step.h2d_ns.0),
        ("forward_backward", step.forward_backward_ns.0),
        ("communication", step.communication_ns.0),
        ("checkpoint", step.checkpoint_ns.0),
        ("serving", step.serving_ns.0),
        ("startup", step.startup_ns.0),
        ("other", step.other_ns.0),
    ]
}

fn of_device(device: i32, mut steps: Vec<Step>) -> Option<Steps> {
    steps.sort_by_key(|step| step.step);
    let (first, last) = (steps.first()?, steps.last()?);
    let count = steps.len() as i64;
    let span_ns = last.end_ns.0 - first.start_ns.0;
    let lengths: Vec<i64> = steps.iter().map(length).collect();
    let compute: i64 = steps.iter().map(|step| step.compute_ns.0).sum();
    let waited: i64 = lengths.iter().sum::<i64>() - compute;
    let slow = |kind: &str| steps.iter().filter(|step| step.outlier.as_deref() == Some(kind)).count() as u64;
    Some(Steps {
        device,
        found_by: first.found_by.as_str().to_owned(),
        count: count as u64,
        ops: quantile(steps.iter().map(|step| step.ops).collect(), 0.5),
        span_ns,
        median_ns: quantile(lengths.clone(), 0.5),
        p95_ns: quantile(lengths.clone(), 0.95),
        longest_ns: lengths.iter().copied().max().unwrap_or(0),
        compute_ns: compute / count,
        gap_ns: waited / count,
        stages: mean_stages(&steps),
        per_second: if span_ns > 0 { count as f64 * 1e9 / span_ns as f64 } else { 0.0 },
        first_ns: (first.outlier.as_deref() == Some("first")).then(|| length(first)),
        periodic: periodic(&steps),
        slow: slow("slow"),
        drift: drift(&lengths),
    })
}

fn mean_stages(steps: &[Step]) -> Vec<Share> {
    let mut sums: BTreeMap<&str, i64> = BTreeMap::new();
    for (stage, ns) in steps.iter().flat_map(stages) {
        *sums.entry(stage).or_default() += ns;
    }
    let mean = |(stage, ns): (&str, i64)| Share { name: stage.to_owned(), ns: ns / steps.len() as i64 };
    let mut shares: Vec<Share> = sums.into_iter().map(mean).filter(|share| share.ns > 0).collect();
    shares.sort_by_key(|share| std::cmp::Reverse(share.ns));
    shares
}

fn periodic(steps: &[Step]) -> Option<Periodic> {
    let slow: Vec<&Step> = steps.iter().filter(|step| step.outlier.as_deref() == Some("periodic")).collect();
    let distances = slow.windows(2).map(|pair| pair[1].step - pair[0].step).collect();
    let every = quantile(distances, 0.5);
    if every == 0 {
        return None;
    }
    let usual: Vec<&Step> = steps.iter().filter(|step| step.outlier.is_none()).collect();
    let mean = |steps: &[&Step], index: usize| {
        steps.iter().map(|step| stages(step)[index].1).sum::<i64>() / (steps.len() as i64).max(1)
    };
    let longer = (0..8).map(|index| (mean(&slow, index) - mean(&usual, index), stages(slow[0])[index].0));
    let stage = longer.max_by_key(|(ns, _)| *ns).filter(|(ns, _)| *ns > 0).map(|(_, name)| name.to_owned());
    Some(Periodic {
        every,
        count: slow.len() as u64,
        median_ns: quantile(slow.iter().map(|step| length(step)).collect(), 0.5),
        stage,
    })
}

fn drift(lengths: &[i64]) -> Option<f64> {
    if lengths.len() < ENOUGH_FOR_DRIFT {
        return None;
    }
    let third = lengths.len() / 3;
    let early = quantile(lengths[..third].to_vec(), 0.5);
    let late = quantile(lengths[lengths.len() - third..].to_vec(), 0.5);
    let ratio = late as f64 / early.max(1) as f64;
    ((ratio - 1.0).abs() >= DRIFT).then_some(ratio)
}

fn quantile(mut values: Vec<i64>, part: f64) -> i64 {
    if values.is_empty() {
        return 0;
    }
    values.sort_unstable();
    values[((values.len() - 1) as f64 * part).round() as usize]
}
