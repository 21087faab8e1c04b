//! Commands that are programs of their own: built on demand, then run with the caller's arguments.

use std::ffi::OsString;
use std::process::{Command, ExitCode};

use anyhow::Result;

use crate::{build, process, workspace};

/// `gtrace demo`, after a build.
///
/// # Errors
/// The build fails, or the program cannot be started.
pub fn demo(args: &[OsString]) -> Result<ExitCode> {
    build::run()?;
    process::exit_of(Command::new(workspace::release("gtrace")).arg("demo").args(args))
}

/// The scenarios with a known answer, after a build.
///
/// # Errors
/// The build fails, or the program cannot be started.
pub fn gapbench(args: &[OsString]) -> Result<ExitCode> {
    build::run()?;
    process::exit_of(&mut gapbench_command("score", args))
}

/// The measurement of what recording costs, after a build.
///
/// # Errors
/// The build fails, or the program cannot be started.
pub fn bench(args: &[OsString]) -> Result<ExitCode> {
    build::run()?;
    process::exit_of(&mut gapbench_command("cost", args))
}

/// The program `gapbench` with what it needs to know about this build.
pub fn gapbench_command(part: &str, args: &[OsString]) -> Command {
    let mut command = Command::new(workspace::release("gapbench"));
    command
        .current_dir(workspace::root())
        .arg(part)
        .arg("--release-dir")
        .arg(workspace::target().join("release"))
        .arg("--sim-path")
        .arg(crate::sim_path::folder())
        .arg("--docs")
        .arg(workspace::root().join("docs"))
        .args(args);
    command
}
