//! `gtrace top`: the ledger while it happens, and what is left when it ends.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use gtrace::store::Bundle;

use crate::gtrace::{Target, expect_status, gtrace, wait_until};
use crate::inject::{Restless, shim};

/// Sleeps and reads for ever.
const LOOP: &str = r"
import os, time
print('ready', flush=True)
while True:
    os.stat('/')
    time.sleep(0.001)
";

fn top(pid: u32, arguments: &[&str]) -> Command {
    let mut command = gtrace();
    command.args(["top", &pid.to_string()]).args(arguments).env("GTRACE_SHIM", shim());
    command
}

/// What a `gtrace top` with this process number has in memory.
fn leftovers(pid: u32) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for folder in ["/dev/shm".into(), std::env::temp_dir()] {
        let entries = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
        let name = format!("gtrace-top-{pid}-");
        all.extend(
            entries.map(|entry| entry.path()).filter(|path| {
                path.file_name().is_some_and(|file| file.to_string_lossy().starts_with(&name))
            }),
        );
    }
    all
}

fn interrupt(child: &Child) {
    let pid = nix::unistd::Pid::from_raw(child.id() as i32);
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).unwrap();
}

#[test]
#[ignore = "loads eBPF programs, which needs root"]
fn root_top_shows_causes_while_they_happen() {
    let worker = Restless::start(2);
    let mut child = top(worker.pid(), &["--interval", "300ms", "--window", "4s"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut frames = 0;
    let mut gpu = false;
    for line in lines.by_ref().map(Result::unwrap) {
        assert!(!line.contains('\u{1b}'), "no terminal, no escape sequences: {line:?}");
        gpu |= line.starts_with("GPU 0") && line.contains("computing");
        if line.starts_with("Why they waited: ") {
            frames += 1;
        }
        if frames == 3 {
            break;
        }
    }
    assert!(gpu && frames == 3, "{gpu} {frames}");
    assert_eq!(leftovers(child.id()).len(), 1);
    let id = child.id();
    interrupt(&child);
    drop(lines);
    let output = child.wait_with_output().unwrap();
    expect_status(&output, 0);
    assert_eq!(leftovers(id), Vec::<PathBuf>::new());
    worker.end();
}

#[test]
#[ignore = "loads eBPF programs, which needs root"]
fn root_top_ends_when_nobody_reads_any_more() {
    let target = Target::python(LOOP);
    let mut child = top(target.pid() as u32, &["--interval", "100ms"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    reader.read_line(&mut line).unwrap();
    assert!(line.starts_with("python3 "), "{line}");
    drop(reader);
    wait_until("it ends", || child.try_wait().unwrap().is_some());
    assert_eq!(leftovers(child.id()), Vec::<PathBuf>::new());
}

#[test]
#[ignore = "loads eBPF programs, which needs root"]
fn root_a_rotating_recording_keeps_its_end() {
    let target = Target::python(LOOP);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.gtrace");
    let output = gtrace()
        .args(["attach", &target.pid().to_string(), "--no-report", "--no-cupti"])
        .args(["--duration", "14s", "--rotate", "3s", "-o"])
        .arg(&path)
        .output()
        .unwrap();
    // No GPU side: incomplete.
    expect_status(&output, 3);
    let bundle = Bundle::open(&path).unwrap();
    let meta = bundle.meta();
    let kept = (meta.ended_ns.unwrap() - meta.started_ns) as f64 / 1e9;
    let whole = (meta.ended_ns.unwrap() - meta.began_ns.unwrap()) as f64 / 1e9;
    // The stretch, the age at which parts are sealed, and what a busy machine adds.
    assert!((3.0..11.0).contains(&kept) && whole > 13.5, "{kept} of {whole} s");
    assert_eq!(bundle.missing().unwrap().len(), 0);
}
