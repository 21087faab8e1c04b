//! `gtrace completions` and `gtrace man`: what a package installs beside the program, made from the program's own help.

use std::path::PathBuf;

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use super::{Cli, ExitStatus, OrFail as _, Result, Ui};

/// Arguments of `gtrace completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell.
    #[arg(value_name = "SHELL")]
    pub shell: Shell,
}

/// Arguments of `gtrace man`.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// The folder that the pages are written into; pages of that name are overwritten.
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}

/// Prints a shell's completions.
///
/// # Errors
/// stdout cannot be written.
pub fn completions(args: &CompletionsArgs, ui: &Ui) -> Result<ExitStatus> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "gtrace", &mut script);
    ui.print(&String::from_utf8_lossy(&script))?;
    Ok(ExitStatus::Done)
}

/// Writes the manual pages.
///
/// # Errors
/// The folder cannot be written.
pub fn man(args: &ManArgs, ui: &Ui) -> Result<ExitStatus> {
    let what = || format!("cannot write the manual into {}", args.folder.display());
    let remedy = "name a folder that may be written";
    std::fs::create_dir_all(&args.folder).or_fail(what(), remedy)?;
    let command = Cli::command().disable_help_subcommand(true);
    clap_mangen::generate_to(command, &args.folder).or_fail(what(), remedy)?;
    ui.detail(&format!("wrote the manual into {}", args.folder.display()));
    Ok(ExitStatus::Done)
}
