//! `gtrace analyze`.

use std::path::PathBuf;

use clap::Args;

use super::report::open_raw;
use super::{ExitStatus, OrFail as _, Result, Ui};
use crate::attribute;

/// Arguments of `gtrace analyze`.
#[derive(Debug, Args)]
pub struct AnalyzeArgs {
    /// The recording.
    #[arg(value_name = "DIR")]
    pub bundle: PathBuf,
}

/// Recomputes `gaps` and `gap_segments` from the raw tables.
///
/// # Errors
/// The recording cannot be read, or the results cannot be written.
pub fn run(args: &AnalyzeArgs, ui: &Ui) -> Result<ExitStatus> {
    let bundle = open_raw(&args.bundle)?;
    let what = || format!("cannot analyse the recording {}", args.bundle.display());
    let remedy = "if a file is damaged, remove it and analyse what is left; if the disk is full, make room";
    let rows = attribute::rows_to_read(&bundle).or_fail(what(), remedy)?;
    let progress = ui.progress("analysing the recording", Some(rows));
    let analysis =
        attribute::analyze_bundle(&bundle, &|rows| progress.advance(rows)).or_fail(what(), remedy)?;
    drop(progress);
    let total = analysis.ledger.total();
    let unknown = analysis.ledger.unknown().0 as f64 / total.0.max(1) as f64 * 100.0;
    ui.detail(&format!("{} gaps, {total} in all, {unknown:.2} % of it of unknown cause", analysis.gaps));
    Ok(ExitStatus::Done)
}
