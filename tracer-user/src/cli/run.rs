//! `gtrace run`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::{ExitStatus, Failure, Result, Ui, parse_duration};

/// Arguments of `gtrace run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Where to write the recording [default: a new NAME.gtrace in the working directory].
    #[arg(long, short, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Stop recording after so long (30s, 2m); the command goes on.
    #[arg(long, short, value_name = "TIME", value_parser = parse_duration)]
    pub duration: Option<Duration>,
    /// Record only: neither analyse nor report.
    #[arg(long)]
    pub no_report: bool,
    /// The command and its arguments, after `--`.
    #[arg(value_name = "CMD", required = true, last = true)]
    pub command: Vec<OsString>,
}

/// Records a command from its start, then analyses and reports.
///
/// # Errors
/// The command cannot be started or recorded, or the recording cannot be written.
pub fn run(args: &RunArgs, _ui: &Ui) -> Result<ExitStatus> {
    Err(Failure::new(format!("cannot record {}", args.command.join(" ".as_ref()).display()))
        .because("this build has no recorder")
        .try_this("use a later build")
        .into())
}
