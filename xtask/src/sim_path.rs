//! `cargo xtask sim-path`: the folder with the simulated CUDA stack under the names that programs load.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::workspace;

/// The name that a program loads, and the library of the build that stands behind it.
const NAMES: [(&str, &str); 4] = [
    ("libcuda.so.1", "libsim_cuda.so"),
    ("libcuda.so", "libsim_cuda.so"),
    ("libcupti.so.12", "libsim_cuda.so"),
    ("libcupti.so.13", "libsim_cuda.so"),
];

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

/// Makes the folder, with links to what is built.
///
/// # Errors
/// A library is not built, or a link cannot be made.
pub fn lay_out() -> Result<()> {
    let folder = folder();
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for (name, library) in NAMES {
        let built = workspace::release(library);
        if !built.is_file() {
            anyhow::bail!("{} is not built: run `cargo xtask build`", built.display());
        }
        link(&built, &folder.join(name))?;
    }
    Ok(())
}

fn link(to: &Path, at: &Path) -> Result<()> {
    if std::fs::read_link(at).is_ok_and(|present| present == to) {
        return Ok(());
    }
    if at.symlink_metadata().is_ok() {
        std::fs::remove_file(at).with_context(|| format!("cannot replace {}", at.display()))?;
    }
    symlink(to, at).with_context(|| format!("cannot link {}", at.display()))
}
