//! How far to trust a report: what was lost, what could not be seen, what is inferred.

use std::collections::BTreeMap;

use super::model::{
    Cause, GpuModeChange, GpuModes, GpuRefused, IdleHolder, Loss, MissingProbe, Share, Trust,
};
use super::wording::is_prefix;
use crate::store::meta::Meta;
use crate::store::schema;

/// Collects losses.
#[derive(Debug, Default)]
pub struct LossTally {
    losses: BTreeMap<(String, String), (i64, i64)>,
}

impl LossTally {
    /// Counts a row of `losses`.
    pub fn loss(&mut self, loss: &schema::Loss) {
        let (count, ns) = self.losses.entry((loss.source.to_string(), loss.reason.to_string())).or_default();
        *count += loss.count;
        *ns += (loss.end_ns - loss.start_ns).0.max(0);
    }

    fn finish(self, meta: &Meta) -> Vec<Loss> {
        let mut losses: Vec<Loss> = self
            .losses
            .into_iter()
            .map(|((source, reason), (count, ns))| Loss { source, reason, count, ns })
            .collect();
        // A counter in meta.json with more than its rows say: the last interval was not written any more.
        for (source, count) in &meta.losses {
            let listed: i64 =
                losses.iter().filter(|loss| loss.source == *source).map(|loss| loss.count).sum();
            let rest = i64::try_from(*count).unwrap_or(i64::MAX).saturating_sub(listed);
            if rest > 0 {
                let reason = "counted, without a time".to_owned();
                losses.push(Loss { source: source.clone(), reason, count: rest, ns: 0 });
            }
        }
        losses.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.source.cmp(&b.source)));
        losses
    }
}

/// Puts the section together.
#[must_use]
pub fn trust(
    meta: &Meta,
    losses: LossTally,
    causes: &[Cause],
    confidence: (i64, i64),
    uncovered_gaps: u64,
) -> Trust {
    let of =
        |family: &str| causes.iter().filter(move |cause| is_prefix(family, &cause.cause)).collect::<Vec<_>>();
    let unknown: Vec<Share> =
        of("unknown").iter().map(|cause| Share { name: cause.cause.clone(), ns: cause.ns }).collect();
    Trust {
        exact_ns: confidence.0,
        inferred_ns: confidence.1,
        unknown_ns: unknown.iter().map(|share| share.ns).sum(),
        unknown,
        losses: losses.finish(meta),
        events: meta.rows.iter().filter(|(table, _)| !is_result(table)).map(|(_, rows)| rows).sum(),
        missing_probes: meta
            .probes
            .iter()
            .filter(|probe| !probe.attached)
            .map(|probe| MissingProbe {
                name: probe.name.clone(),
                reason: probe.reason.clone(),
                unknowable: probe.unknowable.clone(),
            })
            .collect(),
        gpu_missing: gpu_missing(meta),
        gpu_refused: meta
            .gpu_processes
            .iter()
            .filter_map(|process| Some(GpuRefused { pid: process.pid, reason: process.refused.clone()? }))
            .collect(),
        idle_holders: idle_holders(meta),
        gpu_bounds: meta.gpu_bounds.clone(),
        gpu_modes: gpu_modes(meta),
        clock_residual_ns: meta.clock_residual_ns,
        recorder_cpu_ns: meta.recorder_cpu_ns,
        stolen_cpu_ns: meta.stolen_cpu_ns,
        tool_overhead_ns: of("tool.overhead").iter().map(|cause| cause.ns).sum(),
        uncovered_gaps,
        unclean_end: unclean_end(meta),
    }
}

/// Why there is no GPU side, without the words that the report puts before it.
#[must_use]
pub fn gpu_missing(meta: &Meta) -> Option<String> {
    let why = meta.gpu_missing.as_deref()?;
    Some(why.strip_prefix("no GPU side: ").unwrap_or(why).to_owned())
}

/// Recorded processes that hold a GPU and sent it no work, as their shims would have seen.
fn idle_holders(meta: &Meta) -> Vec<IdleHolder> {
    let seen =
        |pid: i32| meta.gpu_processes.iter().any(|process| process.pid == pid && process.refused.is_none());
    let holders =
        meta.gpu_devices.iter().flat_map(|device| device.holders.iter().map(move |holder| (device, holder)));
    holders
        .filter(|(_, holder)| holder.recorded && !holder.sent_work && seen(holder.pid))
        .map(|(device, holder)| IdleHolder {
            pid: holder.pid,
            comm: holder.comm.clone(),
            gpu: format!("{} {}", device.name, device.pci),
            memory_bytes: holder.memory_bytes,
        })
        .collect()
}

/// The processes that were not recorded in full all the time.
fn gpu_modes(meta: &Meta) -> Vec<GpuModes> {
    let since = |ns: i64| (ns - meta.started_ns).max(0);
    meta.gpu_processes
        .iter()
        .filter(|process| process.modes.iter().any(|change| change.mode != "full"))
        .map(|process| GpuModes {
            pid: process.pid,
            changes: process
                .modes
                .iter()
                .map(|change| GpuModeChange {
                    since_ns: since(change.since_ns),
                    mode: change.mode.clone(),
                    why: change.why.clone(),
                })
                .collect(),
        })
        .collect()
}

/// Tables that the analysis makes hold no recorded events.
fn is_result(table: &str) -> bool {
    matches!(table, "gaps" | "gap_segments" | "steps" | "what_if" | "losses" | "clocks")
}

fn unclean_end(meta: &Meta) -> Option<String> {
    match meta.ended.as_str() {
        "running" => {
            Some("it still runs, or its recorder was killed: the last seconds may be missing".into())
        }
        "disk_full" => Some("the disk was full: everything after that is missing".into()),
        "failed" => Some("the recorder failed: everything after that is missing".into()),
        _ => None,
    }
}
