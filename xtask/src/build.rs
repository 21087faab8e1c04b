//! `cargo xtask build`: everything, in release mode, in the order in which the parts are embedded.

use std::process::Command;

use anyhow::{Context, Result};

use crate::toolchain::{self, Compiler};
use crate::{process, sim_path, workspace};

/// What is built before `gtrace`, which embeds or loads it.
const PARTS: [&str; 3] = ["cupti-shim", "sim-cuda", "workloads"];

/// Runs the command.
///
/// # Errors
/// A part does not build.
pub fn run() -> Result<()> {
    ebpf()?;
    let mut parts = toolchain::cargo();
    parts.args(["build", "--release", "--locked"]).args(PARTS.iter().flat_map(|part| ["-p", part]));
    process::run(&mut parts)?;
    let mut gtrace = toolchain::cargo();
    gtrace.args(["build", "--release", "--locked", "-p", "gtrace", "-p", "gapbench"]);
    process::run(embed_ebpf(&mut gtrace))?;
    sim_path::lay_out()?;
    println!("built {}", workspace::release("gtrace").display());
    Ok(())
}

/// Names the eBPF object for the build of `gtrace`, where it is not in the ordinary target folder. (Always naming it would
/// build `gtrace` again whenever somebody calls cargo without the variable.)
pub fn embed_ebpf(cargo: &mut Command) -> &mut Command {
    if workspace::target() != workspace::root().join("target") {
        cargo.env("GTRACE_BPF_OBJECT", workspace::bpf_object());
    }
    cargo
}

/// Builds the eBPF programs and puts the object where the build of `gtrace` finds it.
fn ebpf() -> Result<()> {
    let remedy = "run `cargo xtask setup` first";
    let compiler =
        Compiler::find().with_context(|| format!("no compiler for the eBPF programs: {remedy}"))?;
    let linker = toolchain::bpf_linker().with_context(|| format!("no bpf-linker: {remedy}"))?;
    let folder = workspace::root().join("tracer-ebpf");
    let target = workspace::target().join("ebpf");
    process::run(
        ebpf_cargo(&compiler, &linker)?
            .current_dir(&folder)
            .arg("build")
            .arg("--target-dir")
            .arg(&target)
            .args(["--release", "--target=bpfel-unknown-none", "-Zbuild-std=core"]),
    )?;
    let built = target.join("bpfel-unknown-none/release/gtrace-bpf");
    let object = workspace::bpf_object();
    install(&built, &object)
}

/// `cargo` for the eBPF programs, with the linker on PATH.
fn ebpf_cargo(compiler: &Compiler, linker: &std::path::Path) -> Result<Command> {
    let mut cargo = compiler.cargo();
    if process::which("bpf-linker").is_some() {
        return Ok(cargo);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = linker.parent().map(Into::into).into_iter().chain(std::env::split_paths(&path));
    cargo.env("PATH", std::env::join_paths(folders).context("PATH holds a folder with a colon in its name")?);
    Ok(cargo)
}

/// Copies a file to its place, unless the same bytes are there already (a newer time would rebuild what embeds it).
fn install(from: &std::path::Path, to: &std::path::Path) -> Result<()> {
    let bytes = std::fs::read(from).with_context(|| format!("cannot read {}", from.display()))?;
    if std::fs::read(to).is_ok_and(|present| present == bytes) {
        return Ok(());
    }
    if let Some(folder) = to.parent() {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    std::fs::write(to, bytes).with_context(|| format!("cannot write {}", to.display()))
}
