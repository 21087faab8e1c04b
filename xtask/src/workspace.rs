//! Where things lie.

use std::path::PathBuf;

/// The root of the repository.
pub fn root() -> PathBuf {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    manifest.parent().map_or_else(|| manifest.clone(), PathBuf::from)
}

/// Cargo's target folder, `CARGO_TARGET_DIR` honoured.
pub fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(folder) => root().join(folder),
        None => root().join("target"),
    }
}

/// A program or library of the release build.
pub fn release(name: &str) -> PathBuf {
    target().join("release").join(name)
}

/// The eBPF object that `gtrace` embeds.
pub fn bpf_object() -> PathBuf {
    target().join("bpf").join("gtrace.bpf.o")
}

/// The Python of the tests: a virtual environment over the system's packages.
pub fn venv() -> PathBuf {
    target().join("venv")
}

/// The Python interpreter that tests use: the virtual environment's, or the system's before set-up.
pub fn python() -> PathBuf {
    let inside = venv().join("bin").join("python3");
    if inside.exists() { inside } else { "python3".into() }
}
