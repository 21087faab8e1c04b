//! The ledger of the last seconds, from a bundle that is being recorded.
//!
//! The recorder keeps only a rolling stretch of the recording on disk ([`crate::store::writer::SealPolicy::keep_ns`]), so
//! that each look reads all of it and still costs the same however long it goes on. What is too new to be whole is left
//! out: rows of one moment reach the disk within [`SETTLED_NS`] of each other.

pub mod draw;

use std::time::{Duration, Instant};

use crate::attribute::gaps::DeviceTime;
use crate::attribute::{Violation, analyze, name_roles, read_timeline_until, rows_to_read};
use crate::event::MonoNs;
use crate::report::ledger::LedgerTally;
use crate::report::model::Cause;
use crate::report::names::Names;
use crate::store::schema::{Process, Thread};
use crate::store::{Bundle, StoreError};

/// After so long all rows of a moment are on the disk: they are sealed every second, and GPU records come in every tenth.
pub const SETTLED_NS: i64 = 2_500_000_000;
/// More rows are not looked at: they would take longer than they last.
pub const MOST_ROWS: u64 = 800_000;

/// Nothing can be shown.
#[derive(Debug, thiserror::Error)]
pub enum TopError {
    /// The bundle cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Time does not add up: a defect of gtrace.
    #[error(transparent)]
    Violation(#[from] Violation),
    /// Too much happens.
    #[error("{0} events in the stretch that is looked at are more than can be analysed meanwhile")]
    TooMany(u64),
}

/// What the last seconds say.
#[derive(Debug)]
pub struct Frame {
    /// Up to when.
    pub until: MonoNs,
    /// Each GPU's time, from its first op in the stretch to its last.
    pub devices: Vec<DeviceTime>,
    /// Names of GPUs by number.
    pub names: Vec<(i32, String)>,
    /// The ledger.
    pub causes: Vec<Cause>,
    /// Gaps.
    pub gaps: u64,
    /// Rows that it is made from.
    pub rows: u64,
    /// Events lost since the beginning.
    pub lost: u64,
    /// Why there is no GPU side, where there is none.
    pub gpu_missing: Option<String>,
    /// How long it took to make.
    pub took: Duration,
}

impl Frame {
    /// Sum of the windows.
    #[must_use]
    pub fn window_ns(&self) -> i64 {
        self.devices.iter().map(|device| device.window.length().0).sum()
    }

    /// Sum of the gaps.
    #[must_use]
    pub fn gap_ns(&self) -> i64 {
        self.devices.iter().map(|device| device.gap_time().0).sum()
    }
}

/// Looks at a bundle that is being recorded, at the time `now`.
///
/// # Errors
/// It cannot be read, or too much happens.
pub fn look(bundle: &Bundle, now: MonoNs) -> Result<Frame, TopError> {
    let began = Instant::now();
    let rows = rows_to_read(bundle)?;
    if rows > MOST_ROWS {
        return Err(TopError::TooMany(rows));
    }
    let until = MonoNs(now.0 - SETTLED_NS);
    let timeline = read_timeline_until(bundle, Some(until), &|_| ())?;
    let analysis = analyze(&timeline)?;
    let mut threads = bundle.read::<Thread>()?;
    name_roles(&mut threads, &timeline, &analysis.roles);
    let names = Names::new(&bundle.read::<Process>()?, &threads);
    let mut ledger = LedgerTally::default();
    analysis.found.gap_rows(&timeline).for_each(|gap| ledger.gap(&gap));
    analysis.found.segment_rows(&timeline).for_each(|segment| ledger.segment(&segment));
    let meta = bundle.meta();
    Ok(Frame {
        until,
        gaps: analysis.found.gaps.len() as u64,
        causes: ledger.causes(&names),
        devices: analysis.devices,
        names: meta.gpus.iter().map(|gpu| (gpu.device, gpu.name.clone())).collect(),
        rows,
        lost: meta.losses.values().sum(),
        gpu_missing: meta.gpu_missing.clone(),
        took: began.elapsed(),
    })
}

/// How long to wait until the next look, so that looking takes at most an eighth of a CPU.
#[must_use]
pub fn pause(wanted: Duration, took: Duration) -> Duration {
    wanted.max(took * 8)
}
