//! `gtrace doctor`.

use clap::Args;

use super::{ExitStatus, Failure, Result, Ui};

/// Arguments of `gtrace doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Checks what this machine can record.
///
/// # Errors
/// stdout cannot be written.
pub fn run(_args: &DoctorArgs, _ui: &Ui) -> Result<ExitStatus> {
    Err(Failure::new("cannot check this machine")
        .because("this build has no checks")
        .try_this("use a later build")
        .into())
}
