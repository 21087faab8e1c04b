//! From a bundle to a report. The tables are read in order of time, one batch at a time.

use super::cpu_time::CpuTally;
use super::devices::DeviceTally;
use super::disks::DiskTally;
use super::findings;
use super::functions::{self, FunctionTally};
use super::gap_list::GapTally;
use super::gil::GilTally;
use super::late_ranks::LateRankTally;
use super::ledger::LedgerTally;
use super::model::{Objects, Recording, Report, VERSION};
use super::names::Names;
use super::questions;
use super::steps::StepTally;
use super::trust::{self, LossTally};
use super::what_if::WhatIf;
use super::wording::is_prefix;
use crate::event::DurationNs;
use crate::store::StoreError;
use crate::store::bundle::Bundle;
use crate::store::meta::Meta;
use crate::store::schema::{
    self, BlockIo, Collective, Gap, GapSegment, GpuOp, Loss, OffCpu, Process, Sample, Thread,
};

/// How many threads, files and peers a report names.
const MOST_NAMED: usize = 100;

/// The number of rows that [`report`] will read, for a progress bar.
#[must_use]
pub fn rows_to_read(meta: &Meta) -> u64 {
    [
        "gaps",
        "gap_segments",
        "steps",
        "what_if",
        "gpu_ops",
        "collectives",
        "block_io",
        "samples",
        "off_cpu",
        "losses",
    ]
    .iter()
    .filter_map(|table| meta.rows.get(*table))
    .sum()
}

/// Reads a bundle that was analysed. `progress` is told of the rows read.
///
/// # Errors
/// A table cannot be read.
pub fn report(bundle: &Bundle, progress: &dyn Fn(u64)) -> Result<Report, StoreError> {
    let meta = bundle.meta();
    let threads: Vec<Thread> = bundle.read()?;
    let names = Names::new(&bundle.read::<Process>()?, &threads);
    let mut last_event = meta.started_ns;

    let (mut devices, mut ledger, mut gaps, mut disks) =
        (DeviceTally::default(), LedgerTally::default(), GapTally::default(), DiskTally::default());
    let mut gil = GilTally::default();
    let mut late_ranks = LateRankTally::default();
    let mut functions = FunctionTally::default();
    each::<Gap>(bundle, progress, |gap| {
        devices.gap(&gap);
        ledger.gap(&gap);
        gaps.gap(&gap);
    })?;
    each::<GapSegment>(bundle, progress, |segment| {
        ledger.segment(&segment);
        gil.segment(&segment);
        late_ranks.segment(&segment);
        gaps.segment(&segment);
        disks.segment(&segment);
        functions.segment(&segment);
    })?;
    functions.segments_end();
    each::<Sample>(bundle, progress, |sample| functions.sample(&sample))?;
    let mut steps = StepTally::default();
    each::<schema::Step>(bundle, progress, |step| steps.step(&step))?;
    let steps = steps.finish();
    let mut without = Vec::new();
    each::<schema::WhatIf>(bundle, progress, |row| without.push(WhatIf::new(&row, &steps)))?;
    each::<GpuOp>(bundle, progress, |op| {
        last_event = last_event.max(op.end_ns.0);
        devices.op(&op);
    })?;
    each::<Collective>(bundle, progress, |row| late_ranks.collective(row))?;
    each::<BlockIo>(bundle, progress, |request| {
        last_event = last_event.max(request.completed_ns.0);
        disks.request(&request);
    })?;
    let mut losses = LossTally::default();
    each::<Loss>(bundle, progress, |loss| losses.loss(&loss))?;
    bundle.missing()?.iter().for_each(|loss| losses.loss(loss));

    let ended = meta.ended_ns.unwrap_or(last_event);
    let mut cpu = CpuTally::default();
    each::<OffCpu>(bundle, progress, |row| cpu.off_cpu(&row, (meta.started_ns, ended)))?;

    let recording = recording(bundle, ended);
    let (devices, totals) = devices.finish(&meta.gpus, (meta.started_ns, ended));
    let mut causes = ledger.causes(&names);
    if let Some(cause) = causes.iter_mut().find(|cause| cause.cause == functions::CAUSE) {
        (cause.samples, cause.functions) = functions.finish();
    }
    let (worst_gaps, enablers) = gaps.finish(&names);
    let (disks, block_devices) = disks.finish();
    let gil = gil.finish(&names);
    let (mut by_thread, threadless_ns) = ledger.threads(&names);
    by_thread.truncate(MOST_NAMED);
    let on_cpu = cpu.finish(&threads, meta.started_ns, ended);
    for thread in &mut by_thread {
        thread.on_cpu_ns = on_cpu.get(&(thread.thread.pid, thread.thread.tid)).copied();
    }
    let mut files = ledger.objects(names_file);
    let mut peers = ledger.objects(|cause| is_prefix("net", cause));
    files.truncate(MOST_NAMED);
    peers.truncate(MOST_NAMED);
    let trust = trust::trust(meta, losses, &causes, ledger.confidence(), ledger.uncovered());
    let lost: i64 = trust.losses.iter().map(|loss| loss.count).sum();
    let lost = (lost, trust.events as i64 + lost);
    let mut report = Report {
        format: "gtrace.report",
        version: VERSION,
        verdict: findings::verdict(&devices, &totals, &causes, trust::gpu_missing(meta).as_deref(), lost),
        advice: findings::advice(&causes, gil.as_ref(), &enablers, &totals, &names, &recording),
        trust,
        recording,
        devices,
        totals,
        causes,
        gil,
        late_ranks: late_ranks.finish(DurationNs(meta.clock_residual_ns.max(0))),
        stages: ledger.stages(),
        threads: by_thread,
        threadless_ns,
        objects: Objects { files, block_devices, peers },
        enablers,
        worst_gaps,
        steps,
        what_if: without,
        answers: Vec::new(),
        disks,
    };
    report.answers = questions::answers(&report);
    Ok(report)
}

fn each<T: crate::store::table::Table>(
    bundle: &Bundle,
    progress: &dyn Fn(u64),
    mut row: impl FnMut(T),
) -> Result<(), StoreError> {
    for (index, next) in bundle.scan::<T>()?.enumerate() {
        row(next?);
        if index % 1024 == 1023 {
            progress(1024);
        }
    }
    Ok(())
}

/// Whether the object of a cause is a file. (For a queue it is whose requests were in service.)
fn names_file(cause: &str) -> bool {
    is_prefix("memory.major_fault", cause)
        || (is_prefix("storage", cause) && !matches!(cause, "storage.read.queue" | "storage.write.queue"))
}

fn recording(bundle: &Bundle, ended_ns: i64) -> Recording {
    let meta = bundle.meta();
    Recording {
        path: bundle.path().display().to_string(),
        mode: meta.mode.clone(),
        command: meta.command.clone(),
        root_pid: meta.root_pid,
        host: meta.host.clone(),
        kernel: meta.kernel.clone(),
        cpus: meta.cpus,
        began_ns: meta.began_ns.unwrap_or(meta.started_ns),
        started_ns: meta.started_ns,
        ended_ns,
        ended: meta.ended.clone(),
        utc_offset_ns: meta.utc_offset_ns,
        gtrace_version: meta.gtrace_version.clone(),
        simulated_gpu: meta.gpus.iter().any(|gpu| gpu.name.to_lowercase().contains("simulated")),
    }
}
