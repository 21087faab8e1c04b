//! The compiler and linker of the eBPF programs.
//!
//! The target `bpfel-unknown-none` has no prebuilt `core`, so a compiler with its library's source is needed, and
//! unstable options. Two ways: a distribution's compiler with its source package (Debian: `rustc-web` and
//! `rust-web-src`), told to accept unstable options, or a rustup nightly with the component `rust-src`.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{process, workspace};

/// A compiler that can build `core` for another target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Compiler {
    /// A compiler by its path, with its library's source beside it.
    Plain {
        /// `rustc`.
        rustc: PathBuf,
        /// Major version of its LLVM.
        llvm: u32,
    },
    /// A rustup toolchain with the component `rust-src`.
    Rustup {
        /// The toolchain's name.
        toolchain: String,
        /// Major version of its LLVM.
        llvm: u32,
    },
}

impl Compiler {
    /// Finds one: a compiler on PATH that carries its source (rustup's own wrapper is asked for its toolchains instead),
    /// else a rustup nightly that does.
    pub fn find() -> Option<Self> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let on_path = std::env::split_paths(&path).map(|folder| folder.join("rustc"));
        let plain = on_path
            .chain(["/usr/bin/rustc".into()])
            .filter(|rustc| rustc.is_file() && !is_rustup_proxy(rustc))
            .find_map(|rustc| Some(Self::Plain { llvm: usable(Command::new(&rustc))?, rustc }));
        plain.or_else(|| {
            let list = process::output(Command::new("rustup").args(["toolchain", "list"]))?;
            list.lines()
                .filter_map(|line| line.split_whitespace().next())
                .filter(|name| name.starts_with("nightly"))
                .find_map(|name| {
                    let mut rustc = Command::new("rustup");
                    rustc.args(["run", name, "rustc"]);
                    Some(Self::Rustup { llvm: usable(rustc)?, toolchain: name.to_owned() })
                })
        })
    }

    /// Major version of its LLVM; `bpf-linker` must have been linked with the same or a later one.
    pub fn llvm(&self) -> u32 {
        match self {
            Self::Plain { llvm, .. } | Self::Rustup { llvm, .. } => *llvm,
        }
    }

    /// For people.
    pub fn describe(&self) -> String {
        match self {
            Self::Plain { rustc, llvm } => {
                format!("{} with its library's source (LLVM {llvm})", rustc.display())
            }
            Self::Rustup { toolchain, llvm } => {
                format!("rustup toolchain {toolchain} with rust-src (LLVM {llvm})")
            }
        }
    }

    /// `cargo` with this compiler and unstable options allowed.
    pub fn cargo(&self) -> Command {
        match self {
            Self::Plain { rustc, .. } => {
                let mut cargo = cargo();
                cargo.env("RUSTC", rustc).env("RUSTC_BOOTSTRAP", "1");
                cargo
            }
            Self::Rustup { toolchain, .. } => {
                let mut cargo = Command::new("rustup");
                cargo.env_remove("RUSTUP_TOOLCHAIN").args(["run", toolchain, "cargo"]);
                cargo
            }
        }
    }
}

/// The cargo that runs us.
pub fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(workspace::root());
    cargo
}

/// `bpf-linker`, on PATH or where `cargo install` puts it.
pub fn bpf_linker() -> Option<PathBuf> {
    process::which("bpf-linker")
        .or_else(|| Some(cargo_bin()?.join("bpf-linker")).filter(|file| file.is_file()))
}

/// Where `cargo install` puts programs.
pub fn cargo_bin() -> Option<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")))
        .map(|home| home.join("bin"))
}

/// The LLVM version of a compiler that is new enough and carries its library's source; nothing otherwise.
fn usable(mut rustc: Command) -> Option<u32> {
    let program = rustc.get_program().to_owned();
    let arguments: Vec<_> = rustc.get_args().map(ToOwned::to_owned).collect();
    let sysroot = process::output(rustc.args(["--print", "sysroot"]))?;
    let source = Path::new(&sysroot).join("lib/rustlib/src/rust/library/core/src/lib.rs");
    if !source.is_file() {
        return None;
    }
    let version = process::output(Command::new(program).args(arguments).arg("-vV"))?;
    if version_of(&version, "release: ").is_none_or(|release| release < (1, 85)) {
        return None;
    }
    version_of(&version, "LLVM version: ").map(|(major, _)| major)
}

/// Major and minor version on the line of `rustc -vV` that starts with `key`.
fn version_of(text: &str, key: &str) -> Option<(u32, u32)> {
    let value = text.lines().find_map(|line| line.strip_prefix(key))?;
    let mut numbers = value.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok());
    Some((numbers.next()?, numbers.next().unwrap_or(0)))
}

/// rustup installs one program under many names.
fn is_rustup_proxy(rustc: &Path) -> bool {
    rustc.parent().is_some_and(|folder| folder.join("rustup").is_file())
}

#[cfg(test)]
mod tests {
    use super::version_of;

    #[test]
    fn versions_are_read_from_rustc() {
        let text =
            "rustc 1.97.0-nightly (e50aa6fba 2026-05-19)\nrelease: 1.97.0-nightly\nLLVM version: 22.1.4\n";
        assert_eq!(version_of(text, "release: "), Some((1, 97)));
        assert_eq!(version_of(text, "LLVM version: "), Some((22, 1)));
        assert_eq!(version_of(text, "host: "), None);
    }
}
