//! `gtrace export`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{ExitStatus, Failure, Result, Ui, parse_bytes};

/// Arguments of `gtrace export`.
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// The recording.
    #[arg(value_name = "DIR")]
    pub bundle: PathBuf,
    /// What to write.
    #[arg(long, short, value_name = "FORMAT", default_value = "chrome")]
    pub format: ExportFormat,
    /// Where to write it [default: beside the recording].
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Only what surrounds this gap.
    #[arg(long, value_name = "GAP")]
    pub around_gap: Option<i64>,
    /// Leave the least important out where the file would be larger (200M, 1G).
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub max_size: Option<u64>,
}

/// A format of a trace viewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// Chrome trace-event JSON: opens in chrome://tracing and ui.perfetto.dev.
    Chrome,
}

/// Writes a recording for a trace viewer.
///
/// # Errors
/// The recording cannot be read, or the file cannot be written.
pub fn run(args: &ExportArgs, _ui: &Ui) -> Result<ExitStatus> {
    Err(Failure::new(format!("cannot export {}", args.bundle.display()))
        .because("this build has no export")
        .try_this("use a later build")
        .into())
}
