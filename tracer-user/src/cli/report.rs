//! `gtrace report`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{ExitStatus, Failure, Result, Ui};

/// Arguments of `gtrace report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// The recording.
    #[arg(value_name = "DIR")]
    pub bundle: PathBuf,
    /// How to print it.
    #[arg(long, short, value_name = "FORMAT", default_value = "text")]
    pub format: ReportFormat,
}

/// How to print a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// For a person.
    #[default]
    Text,
    /// For a program: docs/reading-a-report.md describes its shape.
    Json,
}

/// Prints the report of a recording.
///
/// # Errors
/// The recording cannot be read, or stdout cannot be written.
pub fn run(args: &ReportArgs, _ui: &Ui) -> Result<ExitStatus> {
    Err(Failure::new(format!("cannot report on {}", args.bundle.display()))
        .because("this build has no report")
        .try_this("use a later build")
        .into())
}
