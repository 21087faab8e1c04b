//! `gtrace explain`.

use std::path::PathBuf;

use clap::Args;

use super::{ExitStatus, Failure, Moment, Result, Ui};

/// Arguments of `gtrace explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// The recording.
    #[arg(value_name = "DIR")]
    pub bundle: PathBuf,
    /// The gap, by its number in the report [default: the longest].
    #[arg(long, value_name = "GAP", conflicts_with = "at")]
    pub gap: Option<i64>,
    /// The gap at this time: 12.5s after the beginning of the recording, or a value of the *_ns columns.
    #[arg(long, value_name = "TIME")]
    pub at: Option<Moment>,
}

/// Explains one gap.
///
/// # Errors
/// The recording cannot be read, there is no such gap, or stdout cannot be written.
pub fn run(args: &ExplainArgs, _ui: &Ui) -> Result<ExitStatus> {
    Err(Failure::new(format!("cannot explain a gap of {}", args.bundle.display()))
        .because("this build has no report")
        .try_this("use a later build")
        .into())
}
