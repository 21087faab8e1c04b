//! NVIDIA's own libcupti of each CUDA version, opened without a GPU: every function that the shim uses is there from the
//! version on that it is expected in, and `cuptiGetVersion` says what the shim expects.
//!
//! Downloads some 150 MB of wheels from PyPI (`nvidia-cuda-cupti`, `-cu12`, `-cu11`) into `target/wheels`, so it is not run
//! unless asked for: `GTRACE_TEST_WHEELS=1 cargo test -p cupti-shim --test wheels`. Wants `python3 -m pip`, or the one that
//! `GTRACE_TEST_PYTHON` names.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::VERSIONS;
use libloading::os::unix::Library;

/// Makes this binary open the library that it names, in a process of its own: 13.2 overflows its stack without a driver.
const CHILD: &str = "GTRACE_TEST_CUPTI";

/// What the shim cannot do without.
const NEEDED: [&str; 14] = [
    "cuptiGetVersion",
    "cuptiGetTimestamp",
    "cuptiSubscribe",
    "cuptiUnsubscribe",
    "cuptiEnableDomain",
    "cuptiActivityRegisterCallbacks",
    "cuptiActivityRegisterTimestampCallback",
    "cuptiActivityEnable",
    "cuptiActivityEnableAndDump",
    "cuptiActivityDisable",
    "cuptiActivityFlushAll",
    "cuptiActivityGetNextRecord",
    "cuptiActivityGetNumDroppedRecords",
    "cuptiSetThreadIdType",
];

/// What it uses from a version on.
const OPTIONAL: [(&str, &str); 5] = [
    ("cuptiActivityEnableDriverApi", "12.5"),
    ("cuptiActivityEnableRuntimeApi", "12.5"),
    ("cuptiActivityEnableAllSyncRecords", "12.8"),
    ("cuptiSubscribe_v2", "13.0"),
    ("cuptiActivityGetStructSize", "13.2"),
];

fn number(version: &str) -> (u32, u32) {
    let (major, minor) = version.split_once('.').unwrap();
    (major.parse().unwrap(), minor.parse().unwrap())
}

fn python() -> PathBuf {
    std::env::var_os("GTRACE_TEST_PYTHON").map_or_else(|| "python3".into(), PathBuf::from)
}

/// The library of a version's wheel.
fn library(version: &str) -> PathBuf {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("target/wheels").join(version);
    let name = match number(version).0 {
        11 => "nvidia-cuda-cupti-cu11",
        12 => "nvidia-cuda-cupti-cu12",
        _ => "nvidia-cuda-cupti",
    };
    if !target.join("unpacked").exists() {
        std::fs::create_dir_all(&target).unwrap();
        let wanted = format!("{name}=={version}.*");
        let status = Command::new(python())
            .args(["-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:", "--dest"])
            .arg(&target)
            .arg(&wanted)
            .status()
            .unwrap();
        assert!(status.success(), "pip cannot download {wanted}");
        let wheel = files(&target).into_iter().find(|path| path.extension().is_some_and(|end| end == "whl"));
        let status = Command::new(python())
            .args(["-m", "zipfile", "-e"])
            .arg(wheel.unwrap())
            .arg(target.join("unpacked"))
            .status()
            .unwrap();
        assert!(status.success(), "{wanted} cannot be unpacked");
    }
    let found = files(&target.join("unpacked"))
        .into_iter()
        .find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("libcupti.so.")));
    found.unwrap_or_else(|| panic!("no libcupti in {}", target.display()))
}

/// All files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    entries
        .flat_map(|entry| if entry.path().is_dir() { files(&entry.path()) } else { vec![entry.path()] })
        .collect()
}

#[test]
fn every_versions_own_cupti_has_what_the_shim_uses() {
    if std::env::var_os("GTRACE_TEST_WHEELS").is_none() {
        eprintln!("NOT RUN: it downloads NVIDIA's wheels; GTRACE_TEST_WHEELS=1 asks for it");
        return;
    }
    for (version, tells) in VERSIONS {
        let path = library(version);
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["child", "--exact", "--nocapture"])
            .env(CHILD, &path)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let symbols: Vec<&str> = text.lines().filter_map(|line| line.split("HAS ").nth(1)).collect();
        for name in NEEDED {
            assert!(symbols.contains(&name), "{version} has no {name}: {text}");
        }
        for (name, since) in OPTIONAL {
            assert_eq!(symbols.contains(&name), number(version) >= number(since), "{version}: {name}");
        }
        // From 13.2 on it says nothing without a driver (13.2 itself dies of it): the shim asks only where there is one.
        let said = text.lines().find_map(|line| line.split("VERSION ").nth(1));
        match (number(version) < (13, 2), said) {
            (true, Some(said)) => {
                let major_update = if version == "12.9" { "27|28" } else { "" };
                let exact = said == format!("0 {tells}");
                let update = major_update.split('|').any(|other| said == format!("0 {other}"));
                let same_release = said.strip_prefix("0 ").and_then(|said| said.parse::<u32>().ok());
                let release = same_release.is_some_and(|said| said >= 130_000 && said / 100 == tells / 100);
                assert!(exact || update || release, "{version}: {said} instead of {tells}");
            }
            (true, None) => panic!("{version}: cuptiGetVersion gave nothing: {text}"),
            (false, said) => {
                assert!(
                    said.is_none_or(|said| !said.starts_with("0 ")),
                    "{version} says {said:?} without a driver"
                );
            }
        }
        println!("{version}: {} ({})", said.unwrap_or("says no version without a driver"), path.display());
    }
}

/// Opens the library, says which functions it has, and asks for its version.
#[test]
fn child() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    // SAFETY: NVIDIA's library has initialisers that are meant to run in any process.
    let library = unsafe { Library::open(Some(path), libc::RTLD_NOW | libc::RTLD_LOCAL) }.unwrap();
    for name in NEEDED.into_iter().chain(OPTIONAL.map(|(name, _)| name)) {
        // SAFETY: only looked for.
        if unsafe { library.get::<unsafe extern "C" fn()>(name.as_bytes()) }.is_ok() {
            println!("HAS {name}");
        }
    }
    // SAFETY: the function's type in all versions.
    let get = unsafe { library.get::<unsafe extern "C" fn(*mut u32) -> u32>(b"cuptiGetVersion") }.unwrap();
    let mut version = 0;
    // SAFETY: a number to fill. May not return.
    let code = unsafe { get(&raw mut version) };
    println!("VERSION {code} {version}");
}
