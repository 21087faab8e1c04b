//! `cargo xtask sim-path`: the folder with the simulated CUDA stack under the names that programs load.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::{process, workspace};

/// The program of the build that lays the folder out.
const LAYOUT: &str = "sim-cuda-layout";

/// Runs the command.
///
/// # Errors
/// The libraries are not built.
pub fn run() -> Result<()> {
    lay_out()?;
    println!("{}", folder().display());
    Ok(())
}

/// The folder.
pub fn folder() -> PathBuf {
    workspace::target().join("sim")
}

/// Makes the folder from what is built.
///
/// # Errors
/// The libraries are not built, or cannot be written there.
pub fn lay_out() -> Result<()> {
    let layout = workspace::release(LAYOUT);
    let mut command = Command::new(&layout);
    process::output(command.arg(folder()))
        .with_context(|| format!("`{}` fails: run `cargo xtask build`", process::display(&command)))?;
    Ok(())
}
