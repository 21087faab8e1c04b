//! `cargo xtask package`: what people install: a tarball and a Debian package that need neither Rust nor clang.
//!
//! Both hold the same tree: the program with the eBPF object in it, the shim in `lib/gtrace`, manual pages, completions and
//! the documentation. Both are the same bytes each time they are made of the same build.

mod clean_root;
mod deb;
mod glibc;
mod tree;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::{build, process, workspace};

/// What to make.
#[derive(clap::Args)]
pub struct Args {
    /// Package what was built before.
    #[arg(long)]
    no_build: bool,
    /// Install the Debian package and the tarball into clean root file systems and try them: needs root, and the network
    /// for mmdebstrap unless --root names one.
    #[arg(long)]
    check: bool,
    /// A clean root file system (a folder) to copy for --check.
    #[arg(long, value_name = "DIR", requires = "check")]
    root: Option<PathBuf>,
}

/// A package about to be made.
pub struct Package {
    /// The version of gtrace.
    pub version: String,
    /// Debian's name of the machine: `amd64`, `arm64`.
    pub machine: &'static str,
    /// The folder with everything that is installed, as below `/usr`.
    pub tree: PathBuf,
    /// The newest version of glibc that anything in it asks for.
    pub glibc: (u32, u32),
}

/// Runs the command.
///
/// # Errors
/// The build fails, a file is missing, or the packages do not work where they are tried.
pub fn run(args: &Args) -> Result<()> {
    if !args.no_build {
        build::run()?;
    }
    let folder = workspace::target().join("package");
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let package = tree::lay_out(&folder)?;
    let tarball = tarball(&folder, &package)?;
    let deb = deb::write(&folder, &package)?;
    for file in [&tarball, &deb] {
        let size = std::fs::metadata(file).map_or(0, |meta| meta.len());
        println!("{} ({:.1} MB)", file.display(), size as f64 / 1e6);
    }
    println!(
        "needs glibc {}.{} or newer (the shim, inside of the recorded program: 2.18)",
        package.glibc.0, package.glibc.1
    );
    if args.check {
        clean_root::check(&deb, &tarball, args.root.as_deref(), &folder)?;
    }
    Ok(())
}

/// `gtrace-VERSION-linux-MACHINE.tar.gz`.
fn tarball(folder: &Path, package: &Package) -> Result<PathBuf> {
    let file = folder.join(format!("gtrace-{}-linux-{}.tar.gz", package.version, package.machine));
    let inside = package.tree.file_name().context("the tree has a name")?;
    tar(folder, &file, &[inside.as_ref()])?;
    Ok(file)
}

/// Packs `entries` of `folder`, the same way each time.
fn tar(folder: &Path, file: &Path, entries: &[&Path]) -> Result<()> {
    let mut tar = Command::new("tar");
    tar.current_dir(folder)
        .args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mtime=@1", "--format=gnu"])
        .args(["--use-compress-program=gzip -n9", "-cf"])
        .arg(file)
        .args(entries);
    process::run(&mut tar)
}
