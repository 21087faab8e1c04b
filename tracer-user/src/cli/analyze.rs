//! `gtrace analyze`.

use std::path::PathBuf;

use clap::Args;

use super::{ExitStatus, Failure, Result, Ui};

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
pub fn run(args: &AnalyzeArgs, _ui: &Ui) -> Result<ExitStatus> {
    let AnalyzeArgs { bundle } = args;
    Err(Failure::new(format!("cannot analyse {}", bundle.display()))
        .because("this build has no analysis")
        .try_this("use a later build")
        .into())
}
