//! The attribution of a bundle: its tables in, `gaps`, `gap_segments` and the threads' roles out.

use super::Violation;
use super::block::{Block, Found};
use super::gaps::DeviceTime;
use super::ledger::Ledger;
use super::role::Roles;
use super::steps::Steps;
use super::timeline::{Timeline, TimelineBuilder};
use super::what_if::{Shares, WhatIf, what_if};
use crate::event::{DurationNs, MonoNs, Pid, Text};
use crate::store::schema::{
    BlockIo, Collective, CudaApi, CudaOverhead, CudaSync, Gap, GapSegment, GpuOp, Interrupt, Loss, Marker,
    MemoryStall, OffCpu, Process, Retransmit, Sample, Syscall, Thread,
};
use crate::store::{Bundle, StoreError, Table};

/// The attribution of a bundle failed.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// The bundle cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Time does not add up.
    #[error(transparent)]
    Violation(#[from] Violation),
}

/// Reads what the attribution needs of a bundle.
///
/// # Errors
/// A table cannot be read.
pub fn read_timeline(bundle: &Bundle, advance: &dyn Fn(u64)) -> Result<Timeline, StoreError> {
    read_timeline_until(bundle, None, advance)
}

/// The same of a bundle that is being recorded, with GPU work up to `until` only: what is newer is not whole yet.
///
/// # Errors
/// A table cannot be read.
pub fn read_timeline_until(
    bundle: &Bundle,
    until: Option<MonoNs>,
    advance: &dyn Fn(u64),
) -> Result<Timeline, StoreError> {
    let meta = bundle.meta();
    let mut builder = TimelineBuilder::new(
        MonoNs(meta.started_ns),
        until.or(meta.ended_ns.map(MonoNs)),
        meta.recorder_pid.map(Pid),
        DurationNs(meta.clock_residual_ns.max(0)),
    )
    .imported(meta.mode == "import")
    .throttled(meta.cpu_throttled_ns.clone());
    each(bundle, advance, |row| builder.process(row))?;
    each(bundle, advance, |row| builder.thread(row))?;
    unordered::<GpuOp>(bundle, advance, |row| {
        if until.is_none_or(|until| row.end_ns <= until) {
            builder.gpu_op(row);
        }
    })?;
    unordered(bundle, advance, |row| builder.cuda_api(row))?;
    unordered(bundle, advance, |row| builder.cuda_sync(row))?;
    unordered(bundle, advance, |row| builder.cuda_overhead(row))?;
    unordered(bundle, advance, |row| builder.marker(row))?;
    unordered(bundle, advance, |row| builder.sample(row))?;
    unordered(bundle, advance, |row| builder.collective(row))?;
    unordered(bundle, advance, |row| builder.off_cpu(row))?;
    unordered(bundle, advance, |row| builder.syscall(row))?;
    unordered(bundle, advance, |row| builder.block_io(row))?;
    unordered(bundle, advance, |row| builder.memory_stall(row))?;
    unordered(bundle, advance, |row| builder.interrupt(row))?;
    unordered(bundle, advance, |row| builder.retransmit(row))?;
    each(bundle, advance, |row| builder.loss(row))?;
    bundle.missing()?.iter().for_each(|loss| builder.loss(loss));
    Ok(builder.finish())
}

/// How many rows [`read_timeline`] reads.
///
/// # Errors
/// A table cannot be opened.
pub fn rows_to_read(bundle: &Bundle) -> Result<u64, StoreError> {
    Ok(bundle.count::<Process>()?
        + bundle.count::<Thread>()?
        + bundle.count::<GpuOp>()?
        + bundle.count::<CudaApi>()?
        + bundle.count::<CudaSync>()?
        + bundle.count::<CudaOverhead>()?
        + bundle.count::<Marker>()?
        + bundle.count::<Sample>()?
        + bundle.count::<Collective>()?
        + bundle.count::<OffCpu>()?
        + bundle.count::<Syscall>()?
        + bundle.count::<BlockIo>()?
        + bundle.count::<MemoryStall>()?
        + bundle.count::<Interrupt>()?
        + bundle.count::<Retransmit>()?
        + bundle.count::<Loss>()?)
}

fn each<T: Table>(bundle: &Bundle, advance: &dyn Fn(u64), mut add: impl FnMut(&T)) -> Result<(), StoreError> {
    const STEP: u64 = 4096;
    let mut rows = 0;
    for row in bundle.scan::<T>()? {
        add(&row?);
        rows += 1;
        if rows % STEP == 0 {
            advance(STEP);
        }
    }
    advance(rows % STEP);
    Ok(())
}

/// The same for tables of many rows, whose order does not matter to the timeline: it sorts them by thread anyway.
fn unordered<T: Table>(
    bundle: &Bundle,
    advance: &dyn Fn(u64),
    mut add: impl FnMut(&T),
) -> Result<(), StoreError> {
    bundle.batches::<T>(|rows| {
        rows.iter().for_each(&mut add);
        advance(rows.len() as u64);
    })
}

/// What was found, in figures.
#[derive(Debug, Default)]
pub struct Summary {
    /// What each device did.
    pub devices: Vec<DeviceTime>,
    /// How many gaps there are.
    pub gaps: usize,
    /// Their time by cause and stage.
    pub ledger: Ledger,
}

/// Attributes every gap of a bundle and writes `gaps`, `gap_segments`, `steps`, `what_if` and `threads.role` back into it. `advance` is told
/// how many more rows were read.
///
/// # Errors
/// The bundle cannot be read or written, or time does not add up. What is not written yet stays as it was.
pub fn analyze_bundle(bundle: &Bundle, advance: &dyn Fn(u64)) -> Result<Summary, BundleError> {
    let timeline = read_timeline(bundle, advance)?;
    let found = Found::new(&timeline)?;
    let mut summary =
        Summary { devices: found.devices.clone(), gaps: found.gaps.len(), ledger: Ledger::default() };
    let mut steps = Steps::find(&timeline);
    let mut shares = Shares::default();
    let mut gaps = bundle.replacement::<Gap>()?;
    let segments = bundle.replacement::<GapSegment>()?;
    // Encoding is most of the work: each thread writes what it walked.
    let write = |block: Block| {
        segments.write_part(block.number as u32, block.segment_rows(&timeline).collect())?;
        let shares = Shares::of(&block, &timeline, &found.roles);
        Ok::<_, BundleError>((block, shares))
    };
    found.walk(write, |written| {
        let (block, part) = written?;
        shares.merge(&part);
        summary.ledger.merge(&Ledger::of(&block.segments));
        steps.add(&block);
        gaps.append(block.gap_rows(&timeline).collect()).map_err(BundleError::from)
    })?;
    gaps.commit()?;
    segments.commit()?;
    bundle.replace(steps.rows(&timeline).collect())?;
    bundle.replace(what_if(&timeline, &found.roles, &shares).iter().map(WhatIf::row).collect())?;
    // A recorder that still runs goes on writing `threads`.
    if bundle.meta().ended_ns.is_some() {
        write_roles(bundle, &timeline, &found.roles)?;
    }
    Ok(summary)
}

fn write_roles(bundle: &Bundle, timeline: &Timeline, roles: &Roles) -> Result<(), StoreError> {
    let mut threads = bundle.read::<Thread>()?;
    if name_roles(&mut threads, timeline, roles) { bundle.replace(threads) } else { Ok(()) }
}

/// Gives threads the roles that were found. Whether any has another one now.
pub fn name_roles(threads: &mut [Thread], timeline: &Timeline, roles: &Roles) -> bool {
    let mut changed = false;
    for thread in threads {
        let role = timeline.find_thread(thread.pid, thread.tid).and_then(|thread| roles.get(thread));
        let role = role.map(|role| Text::from(role.as_str()));
        changed |= role != thread.role;
        thread.role = role;
    }
    changed
}
