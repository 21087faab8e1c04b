//! The rows that the segments of a gap rest on.

use std::collections::{HashMap, HashSet};

use crate::event::{Interval, MonoNs};
use crate::store::schema::{
    BlockIo, CudaApi, CudaOverhead, CudaSync, GapSegment, GpuOp, Interrupt, Marker, MemoryStall, OffCpu,
    Sample, Syscall,
};
use crate::store::{Bundle, StoreError, Table};

/// A row of evidence.
#[derive(Clone, Debug)]
pub enum EvidenceRow {
    /// Of `off_cpu`.
    OffCpu(OffCpu),
    /// Of `syscalls`.
    Syscall(Syscall),
    /// Of `block_io`.
    BlockIo(BlockIo),
    /// Of `cuda_api`.
    CudaApi(CudaApi),
    /// Of `cuda_sync`.
    CudaSync(CudaSync),
    /// Of `cuda_overhead`.
    CudaOverhead(CudaOverhead),
    /// Of `markers`.
    Marker(Marker),
    /// Of `memory_stalls`.
    MemoryStall(MemoryStall),
    /// Of `interrupts`.
    Interrupt(Interrupt),
    /// Of `samples`.
    Sample(Box<Sample>),
    /// Of `gpu_ops`.
    GpuOp(Box<GpuOp>),
}

/// Rows by table and id.
pub type Found = HashMap<(String, i64), EvidenceRow>;

/// Looks up every row that the segments name. One that is not there is missing in the result.
pub fn look_up(bundle: &Bundle, segments: &[GapSegment], gap: Interval) -> Result<Found, StoreError> {
    let mut wanted: HashMap<&str, HashSet<i64>> = HashMap::new();
    for evidence in segments.iter().flat_map(|segment| &segment.evidence) {
        wanted.entry(&evidence.table).or_default().insert(evidence.row.0);
    }
    let mut found = Found::new();
    let none = HashSet::new();
    let of = |table: &str| wanted.get(table).unwrap_or(&none);
    collect(bundle, of(OffCpu::NAME), gap, &mut found, |row| row.id.0, EvidenceRow::OffCpu)?;
    collect(bundle, of(Syscall::NAME), gap, &mut found, |row| row.id.0, EvidenceRow::Syscall)?;
    collect(bundle, of(BlockIo::NAME), gap, &mut found, |row| row.request_id.0, EvidenceRow::BlockIo)?;
    collect(bundle, of(CudaApi::NAME), gap, &mut found, |row| row.id.0, EvidenceRow::CudaApi)?;
    collect(bundle, of(CudaSync::NAME), gap, &mut found, |row| row.id.0, EvidenceRow::CudaSync)?;
    collect(bundle, of(CudaOverhead::NAME), gap, &mut found, |row| row.id.0, EvidenceRow::CudaOverhead)?;
    collect(bundle, of(Marker::NAME), gap, &mut found, |row| row.id.0, EvidenceRow::Marker)?;
    collect(bundle, of(MemoryStall::NAME), gap, &mut found, |row| row.id.0, EvidenceRow::MemoryStall)?;
    collect(bundle, of(Interrupt::NAME), gap, &mut found, |row| row.id.0, EvidenceRow::Interrupt)?;
    collect(
        bundle,
        of(Sample::NAME),
        gap,
        &mut found,
        |row: &Sample| row.id.0,
        |row| EvidenceRow::Sample(Box::new(row)),
    )?;
    collect(
        bundle,
        of(GpuOp::NAME),
        gap,
        &mut found,
        |row: &GpuOp| row.op_id.0,
        |row| EvidenceRow::GpuOp(Box::new(row)),
    )?;
    Ok(found)
}

/// Rows that begin after the gap are no evidence for it, so that the scan ends there.
fn collect<T: Table>(
    bundle: &Bundle,
    wanted: &HashSet<i64>,
    gap: Interval,
    found: &mut Found,
    id: impl Fn(&T) -> i64,
    wrap: impl Fn(T) -> EvidenceRow,
) -> Result<(), StoreError> {
    let mut missing = wanted.len();
    if missing == 0 {
        return Ok(());
    }
    for row in bundle.scan::<T>()? {
        let row = row?;
        if missing == 0 || row.sort_key() > gap.end {
            break;
        }
        let id = id(&row);
        if wanted.contains(&id) {
            missing -= 1;
            found.insert((T::NAME.to_owned(), id), wrap(row));
        }
    }
    Ok(())
}

impl EvidenceRow {
    /// When it began, by which evidence is listed.
    #[must_use]
    pub fn start(&self) -> MonoNs {
        match self {
            Self::OffCpu(row) => row.sort_key(),
            Self::Syscall(row) => row.sort_key(),
            Self::BlockIo(row) => row.sort_key(),
            Self::CudaApi(row) => row.sort_key(),
            Self::CudaSync(row) => row.sort_key(),
            Self::CudaOverhead(row) => row.sort_key(),
            Self::Marker(row) => row.sort_key(),
            Self::MemoryStall(row) => row.sort_key(),
            Self::Interrupt(row) => row.sort_key(),
            Self::Sample(row) => row.sort_key(),
            Self::GpuOp(row) => row.sort_key(),
        }
    }
}
