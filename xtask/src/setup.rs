//! `cargo xtask setup`: finds or installs what building and testing need. Nothing that is present is installed again.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::toolchain::{self, Compiler};
use crate::{host, process, workspace};

/// The version of bpf-linker that the eBPF programs are tested with.
const BPF_LINKER: &str = "0.13.0";
/// The LLVM versions that this bpf-linker can be built with.
const LINKER_LLVM: std::ops::RangeInclusive<u32> = 21..=23;
/// Debian's compiler with its library's source.
const DEBIAN_COMPILER: [&str; 2] = ["rustc-web", "rust-web-src"];
/// What the tests read bundles and traces with, as other people would: the name to import, and what pip installs.
const PYTHON_PACKAGES: [(&str, &str); 4] =
    [("duckdb", "duckdb"), ("pyarrow", "pyarrow"), ("polars", "polars"), ("perfetto", "perfetto==0.59.1")];

/// Runs the command.
///
/// # Errors
/// Something is missing and cannot be installed: the error says what a person can do.
pub fn run() -> Result<()> {
    c_compiler()?;
    let compiler = compiler()?;
    println!("eBPF compiler: {}", compiler.describe());
    let linker = linker(&compiler)?;
    println!("eBPF linker:   {}", linker.display());
    let python = python()?;
    println!("test Python:   {} with {}", python.display(), PYTHON_PACKAGES.map(|(name, _)| name).join(", "));
    println!("ready: next is `cargo xtask build`");
    Ok(())
}

fn c_compiler() -> Result<()> {
    if process::which("cc").is_some() {
        return Ok(());
    }
    println!("no C compiler (crates of the build link with it): installing gcc and libc6-dev");
    apt_install(&["gcc", "libc6-dev"]).context("a C compiler is missing: install gcc or clang as `cc`")
}

fn compiler() -> Result<Compiler> {
    if let Some(compiler) = Compiler::find() {
        return Ok(compiler);
    }
    println!("no compiler that can build `core` for the eBPF target");
    let mut tried = Vec::new();
    match debian_compiler() {
        Ok(()) => tried.push(
            "Debian's packages were installed, and their compiler does not carry its source".to_owned(),
        ),
        Err(error) => tried.push(format!("{error:#}")),
    }
    if let Some(compiler) = Compiler::find() {
        return Ok(compiler);
    }
    match rustup_nightly() {
        Ok(()) => tried.push("the nightly was installed, and has no rust-src".to_owned()),
        Err(error) => tried.push(format!("{error:#}")),
    }
    Compiler::find().with_context(|| {
        format!(
            "no compiler for the eBPF programs ({}). As root on Debian: `apt-get install {}`; anywhere: \
             `rustup toolchain install nightly --component rust-src`",
            tried.join("; "),
            DEBIAN_COMPILER.join(" ")
        )
    })
}

fn debian_compiler() -> Result<()> {
    println!("installing Debian's compiler with its source: {}", DEBIAN_COMPILER.join(" "));
    apt_install(&DEBIAN_COMPILER)
}

fn rustup_nightly() -> Result<()> {
    if process::which("rustup").is_none() {
        bail!("there is no rustup");
    }
    println!("installing a rustup nightly with rust-src");
    let mut rustup = Command::new("rustup");
    process::run(rustup.args([
        "toolchain",
        "install",
        "nightly",
        "--profile",
        "minimal",
        "--component",
        "rust-src",
    ]))
}

fn linker(compiler: &Compiler) -> Result<PathBuf> {
    if let Some(linker) = toolchain::bpf_linker() {
        return Ok(linker);
    }
    let llvm = compiler.llvm();
    if !LINKER_LLVM.contains(&llvm) {
        bail!(
            "bpf-linker {BPF_LINKER} cannot be built for the compiler's LLVM {llvm}. Install a bpf-linker for it: \
             `cargo binstall bpf-linker`, or a release from https://github.com/aya-rs/bpf-linker/releases"
        );
    }
    let prefix = PathBuf::from(format!("/usr/lib/llvm-{llvm}"));
    let libraries = [format!("llvm-{llvm}-dev"), format!("libpolly-{llvm}-dev")];
    let mut packages: Vec<&str> = libraries.iter().map(String::as_str).collect();
    packages.extend(["libzstd-dev", "zlib1g-dev", "libxml2-dev", "g++"]);
    println!("no bpf-linker: building bpf-linker {BPF_LINKER} against LLVM {llvm} ({})", prefix.display());
    apt_install(&packages).with_context(|| {
        format!(
            "bpf-linker is missing, and so is what it is built from. Install `{}` as root and run this again, or \
             `cargo binstall bpf-linker`",
            packages.join(" ")
        )
    })?;
    let feature = format!("llvm-{llvm}");
    let version = format!("bpf-linker@{BPF_LINKER}");
    let mut install = toolchain::cargo();
    install.env("LLVM_PREFIX", &prefix).args([
        "install",
        version.as_str(),
        "--locked",
        "--no-default-features",
        "--features",
        feature.as_str(),
    ]);
    process::run(&mut install)?;
    toolchain::bpf_linker()
        .context("cargo installed bpf-linker, but it is neither on PATH nor in cargo's bin folder")
}

fn python() -> Result<PathBuf> {
    if process::which("python3").is_none() {
        println!("no python3 (the demo's training loop and the tests need it): installing it");
        apt_install(&["python3", "python3-venv"]).context("python3 is missing: install it")?;
    }
    let venv = workspace::venv();
    let python = venv.join("bin").join("python3");
    if !python.exists() {
        println!("making a virtual environment for the tests in {}", venv.display());
        make_venv(&venv)?;
    }
    for (name, package) in PYTHON_PACKAGES {
        if imports(&python, name) {
            continue;
        }
        println!("installing the Python package {package} into {}", venv.display());
        let mut pip = Command::new(&python);
        process::run(pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", package]))
            .with_context(|| {
            format!("the tests read bundles with {name}: make it importable in {}", venv.display())
        })?;
    }
    Ok(python)
}

fn make_venv(venv: &Path) -> Result<()> {
    let make = || {
        let mut command = Command::new("python3");
        process::run(command.args(["-m", "venv", "--system-site-packages"]).arg(venv))
    };
    if make().is_ok() {
        return Ok(());
    }
    println!("python3 has no ensurepip: installing python3-venv");
    apt_install(&["python3-venv"])?;
    // What the failed attempt left would be taken for a whole environment.
    let _ = std::fs::remove_dir_all(venv);
    make()
}

fn imports(python: &Path, package: &str) -> bool {
    process::output(Command::new(python).args(["-c", &format!("import {package}")])).is_some()
}

/// Installs Debian packages that are not there yet.
fn apt_install(packages: &[&str]) -> Result<()> {
    let missing: Vec<&str> = packages.iter().copied().filter(|name| !host::has_package(name)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let list = missing.join(" ");
    let apt = || {
        host::apt_get().with_context(|| {
            format!("`{list}` can be installed neither here (no apt-get) nor by this user (no root, no sudo without password)")
        })
    };
    process::run(apt()?.args(["update", "-qq"]))?;
    if let Some(absent) = missing.iter().find(|name| !host::is_offered(name)) {
        bail!("this distribution does not offer the package `{absent}`");
    }
    process::run(apt()?.args(["install", "-y", "-qq", "--no-install-recommends"]).args(missing))
}
