//! The folder of real recordings, and bundles made of them.

use std::path::{Path, PathBuf};

use gtrace::attribute::analyze_bundle;
use gtrace::import::{Imported, import_file};
use gtrace::store::Bundle;

/// Where the real recordings lie: beside the repository, or where `GTRACE_TEST_TRACES` says. Without them, a test says so
/// and passes.
pub fn traces(test: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("GTRACE_TEST_TRACES").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data/traces"),
        PathBuf::from,
    );
    if folder.join("reference.json").is_file() {
        return Some(folder);
    }
    eprintln!("{test}: skipped, there is no {}", folder.display());
    None
}

/// An imported and analysed bundle in a folder of its own.
pub struct Made {
    pub bundle: Bundle,
    pub imported: Imported,
    _folder: tempfile::TempDir,
}

/// A folder in memory where there is such a place: a bundle syncs each of its files, and the tests make hundreds.
pub fn in_memory() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap()
}

/// Imports and analyses a file.
pub fn make(file: &Path) -> Made {
    let folder = in_memory();
    let output = folder.path().join("x.gtrace");
    let imported = import_file(file, &output).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let bundle = Bundle::open(&output).unwrap();
    analyze_bundle(&bundle, &|_| {}).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    Made { bundle, imported, _folder: folder }
}
