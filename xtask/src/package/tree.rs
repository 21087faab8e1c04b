//! The tree that is installed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::{Package, glibc};
use crate::{process, workspace};

const SHIM: &str = "libgtrace_cupti.so";
/// Shells, and where each looks for completions.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "share/bash-completion/completions/gtrace"),
    ("zsh", "share/zsh/site-functions/_gtrace"),
    ("fish", "share/fish/vendor_completions.d/gtrace.fish"),
];

/// Makes it anew in `folder`.
pub fn lay_out(folder: &Path) -> Result<Package> {
    let program = workspace::release("gtrace");
    let version = version(&program)?;
    let machine = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => bail!("there are no packages for {other}"),
    };
    let tree = folder.join(format!("gtrace-{version}"));
    if tree.exists() {
        fs::remove_dir_all(&tree).with_context(|| format!("cannot remove {}", tree.display()))?;
    }
    binary(&program, &tree.join("bin/gtrace"), 0o755)?;
    binary(&workspace::release(SHIM), &tree.join("lib/gtrace").join(SHIM), 0o644)?;
    let manual = tree.join("share/man/man1");
    process::run(Command::new(&program).arg("man").arg(&manual))?;
    for (shell, place) in COMPLETIONS {
        let script = process::output(Command::new(&program).args(["completions", shell]))
            .with_context(|| format!("gtrace gives no completions for {shell}"))?;
        write(&tree.join(place), format!("{script}\n").as_bytes())?;
    }
    documentation(&tree.join("share/doc/gtrace"))?;
    let newest = |file: PathBuf| glibc::newest(&file);
    let glibc = newest(tree.join("bin/gtrace"))?.max(newest(tree.join("lib/gtrace").join(SHIM))?);
    Ok(Package { version, machine, tree, glibc })
}

fn version(program: &Path) -> Result<String> {
    let said = process::output(Command::new(program).arg("--version"))
        .with_context(|| format!("{} does not run: `cargo xtask build` builds it", program.display()))?;
    said.strip_prefix("gtrace ")
        .map(|version| version.trim().to_owned())
        .context("gtrace does not say its version")
}

/// A program or library without what only a debugger reads.
fn binary(from: &Path, to: &Path, mode: u32) -> Result<()> {
    let bytes = fs::read(from)
        .with_context(|| format!("cannot read {}: `cargo xtask build` builds it", from.display()))?;
    write(to, &bytes)?;
    process::run(Command::new("strip").args(["--strip-unneeded", "--preserve-dates"]).arg(to))?;
    fs::set_permissions(to, std::os::unix::fs::PermissionsExt::from_mode(mode))
        .with_context(|| format!("cannot set the mode of {}", to.display()))
}

fn documentation(to: &Path) -> Result<()> {
    let root = workspace::root();
    for name in ["README.md", "LICENSE-APACHE", "LICENSE-MIT"] {
        copy(&root.join(name), &to.join(name))?;
    }
    let docs = root.join("docs");
    for entry in fs::read_dir(&docs).with_context(|| format!("cannot list {}", docs.display()))? {
        let path = entry?.path();
        let Some(name) = path.file_name().filter(|_| path.extension().is_some_and(|kind| kind == "md"))
        else {
            continue;
        };
        copy(&path, &to.join("docs").join(name))?;
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    let bytes = fs::read(from).with_context(|| format!("cannot read {}", from.display()))?;
    write(to, &bytes)
}

fn write(to: &Path, bytes: &[u8]) -> Result<()> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    fs::write(to, bytes).with_context(|| format!("cannot write {}", to.display()))
}
