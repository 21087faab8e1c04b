//! Where libraries lie, by their names alone: nothing is loaded, since a look must not run foreign code as root.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// How many entries of a folder are looked at.
const MOST_ENTRIES: usize = 20_000;

/// A library's file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Library {
    /// Where it is.
    pub path: PathBuf,
    /// The file behind it, whose name carries the full version.
    pub file: String,
}

/// Files in `folders` whose name begins with `stem` (`libcupti.so`), one for each real file.
pub fn find(folders: &[PathBuf], stem: &str) -> Vec<Library> {
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for folder in folders {
        let Ok(entries) = std::fs::read_dir(folder) else { continue };
        let mut names: Vec<_> = entries
            .take(MOST_ENTRIES)
            .filter_map(Result::ok)
            .map(|entry| entry.file_name())
            .filter(|name| is_named(name, stem))
            .collect();
        names.sort();
        for name in names {
            let path = folder.join(&name);
            let Ok(real) = path.canonicalize() else { continue };
            if real.is_file() && seen.insert(real.clone()) {
                let file = real.file_name().unwrap_or_default().to_string_lossy().into_owned();
                found.push(Library { path, file });
            }
        }
    }
    found
}

/// `libcupti.so`, `libcupti.so.12`, but not `libcupti.so.py`.
fn is_named(name: &OsStr, stem: &str) -> bool {
    let Some(rest) = name.to_str().and_then(|name| name.strip_prefix(stem)) else { return false };
    rest.is_empty() || (rest.starts_with('.') && rest.chars().all(|c| c.is_ascii_digit() || c == '.'))
}

/// Folders in which the dynamic loader finds libraries on common systems, and those of `LD_LIBRARY_PATH`.
pub fn loader_folders() -> Vec<PathBuf> {
    let mut folders = from_path_variable("LD_LIBRARY_PATH");
    folders.extend(
        [
            "/usr/lib/x86_64-linux-gnu",
            "/usr/lib/aarch64-linux-gnu",
            "/usr/lib64",
            "/usr/lib",
            "/lib64",
            "/usr/local/lib",
            "/usr/local/nvidia/lib64",
            "/usr/lib/wsl/lib",
            "/run/opengl-driver/lib",
        ]
        .map(PathBuf::from),
    );
    folders
}

/// Folders in which CUPTI lies: the loader's, the toolkit's, and those of Python's wheels.
pub fn cupti_folders() -> Vec<PathBuf> {
    let mut folders = loader_folders();
    let mut toolkits: Vec<PathBuf> =
        ["CUDA_HOME", "CUDA_PATH"].iter().filter_map(std::env::var_os).map(PathBuf::from).collect();
    toolkits.extend(children("/usr/local", "cuda"));
    for toolkit in toolkits {
        folders.push(toolkit.join("extras/CUPTI/lib64"));
        folders.push(toolkit.join("lib64"));
        folders.push(toolkit.join("targets/x86_64-linux/lib"));
        folders.push(toolkit.join("targets/sbsa-linux/lib"));
    }
    for packages in site_packages() {
        folders.push(packages.join("nvidia/cuda_cupti/lib"));
        folders.extend(children(packages.join("nvidia"), "cu1").into_iter().map(|folder| folder.join("lib")));
    }
    folders
}

fn site_packages() -> Vec<PathBuf> {
    let mut roots: Vec<PathBuf> = ["VIRTUAL_ENV", "CONDA_PREFIX"]
        .iter()
        .filter_map(std::env::var_os)
        .map(|root| PathBuf::from(root).join("lib"))
        .collect();
    roots.extend(["/usr/lib", "/usr/local/lib", "/opt/conda/lib"].map(PathBuf::from));
    let mut packages = Vec::new();
    for python in roots.iter().flat_map(|root| children(root, "python3")) {
        packages.push(python.join("site-packages"));
        packages.push(python.join("dist-packages"));
    }
    packages
}

fn children(folder: impl AsRef<Path>, prefix: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut found: Vec<PathBuf> = entries
        .take(MOST_ENTRIES)
        .filter_map(Result::ok)
        .filter(|entry| entry.file_name().to_str().is_some_and(|name| name.starts_with(prefix)))
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found
}

fn from_path_variable(name: &str) -> Vec<PathBuf> {
    let value = std::env::var_os(name).unwrap_or_default();
    std::env::split_paths(&value).filter(|folder| folder.is_absolute()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_is_found_once_whatever_its_links() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("libcupti.so.2024.1.1"), "").expect("a file");
        std::fs::write(at("libcupti.so.py"), "").expect("a file");
        std::os::unix::fs::symlink("libcupti.so.2024.1.1", at("libcupti.so.12")).expect("a link");
        std::os::unix::fs::symlink("nowhere", at("libcupti.so.13")).expect("a link");
        let found = find(&[folder.path().into(), folder.path().join("none")], "libcupti.so");
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].path, at("libcupti.so.12"));
        assert_eq!(found[0].file, "libcupti.so.2024.1.1");
    }
}
