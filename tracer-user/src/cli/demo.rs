//! `gtrace demo`.

use std::path::PathBuf;

use clap::Args;

use super::{ExitStatus, Failure, Result, Ui};

/// Arguments of `gtrace demo`.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Where to write the recording [default: a new NAME.gtrace in the working directory].
    #[arg(long, short, value_name = "DIR")]
    pub output: Option<PathBuf>,
}

/// Records the demo and reports it.
///
/// # Errors
/// The demo cannot be started or recorded.
pub fn run(_args: &DemoArgs, _ui: &Ui) -> Result<ExitStatus> {
    Err(Failure::new("cannot record the demo")
        .because("this build has no demo")
        .try_this("use a later build")
        .into())
}
