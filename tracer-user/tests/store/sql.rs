//! A bundle in DuckDB and pyarrow, which people use on it.

use std::path::{Path, PathBuf};
use std::process::Command;

use gtrace::store::BundleWriter;

use crate::samples::meta;
use crate::story;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Runs `sql.py` on a bundle.
fn ask(bundle: &Path, expectation: &str) {
    let mut command = Command::new("python3");
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/store/sql.py")).arg(bundle);
    expect_success(command.arg(repository().join("docs/sql.md")).arg(expectation));
}

/// Runs a script of these tests, and gives what it printed.
fn expect_success(command: &mut Command) -> String {
    let output = command.output().expect("python3 is needed for this test; `cargo xtask setup` installs it");
    assert!(
        output.status.success(),
        "{}{}\nIf a Python package is missing, `cargo xtask setup` installs it.",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn tables_views_and_the_cookbook_work_on_a_finished_bundle() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.gtrace");
    story::write(&path);
    ask(&path, "story");
}

#[test]
fn they_work_before_the_first_row() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.gtrace");
    let _writer = BundleWriter::create(&path, meta(), None).unwrap();
    ask(&path, "empty");
}

#[test]
fn many_recordings_are_one_data_set() {
    let runs = tempfile::tempdir().unwrap();
    for run in ["run=before", "run=after", "run=later"] {
        story::write(&runs.path().join(run));
    }
    let python = std::env::var_os("GTRACE_TEST_PYTHON").unwrap_or_else(|| "python3".into());
    let mut command = Command::new(python);
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/store/many.py")).arg(runs.path());
    print!("{}", expect_success(command.arg(repository().join("docs/many.sql")).arg("3")));
}
