//! What cannot be recorded is refused in three sentences, with the right status, and leaves nothing behind.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};

use crate::gtrace::{expect_status, gtrace};

fn attach(pid: &str, folder: &Path) -> Output {
    gtrace()
        .args(["attach", "--no-report", "--duration", "1s", "-o"])
        .arg(folder.join("a.gtrace"))
        .args(["--", pid])
        .output()
        .unwrap()
}

#[track_caller]
fn expect_refusal(output: &Output, status: i32, words: &[&str], folder: &Path) {
    expect_status(output, status);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    for word in words.iter().chain(&["error:", "why:", "try:"]) {
        assert!(said.contains(word), "{word:?} is not in: {said}");
    }
    assert!(!said.contains("os error 1)"), "{said}");
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), 0, "nothing is left behind");
}

#[test]
#[ignore = "loads eBPF programs, which needs root"]
fn root_wrong_processes_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    expect_refusal(&attach("4194303", folder), 2, &["there is no process 4194303"], folder);
    expect_refusal(&attach("0", folder), 2, &["there is no process 0"], folder);
    expect_refusal(&attach("2", folder), 2, &["thread of the kernel"], folder);
    let own = std::process::id().to_string();
    expect_refusal(&attach(&own, folder), 2, &["started this gtrace"], folder);
    let itself = Command::new("sh")
        .args(["-c", "exec \"$0\" attach $$ --no-report -o \"$1\"/a.gtrace"])
        .arg(env!("CARGO_BIN_EXE_gtrace"))
        .arg(folder)
        .output()
        .unwrap();
    expect_refusal(&itself, 2, &["is gtrace itself"], folder);
    expect_status(&attach("many", folder), 2);
    // Ended, and its parent has not noticed.
    let mut child = Command::new("true").spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(300));
    expect_refusal(&attach(&child.id().to_string(), folder), 2, &["has ended already"], folder);
    child.wait().unwrap();
}

#[test]
#[ignore = "loads eBPF programs, which needs root"]
fn root_a_process_that_ends_while_it_is_attached_to_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut ended_meanwhile = false;
    // Lives from 0 to 300 ms: some of these end between the first look at them and the first record.
    for lifetime in (0..30).map(|step| step * 10) {
        let place = tempfile::tempdir_in(folder.path()).unwrap();
        let mut child = Command::new("sleep").arg(format!("0.{lifetime:03}")).spawn().unwrap();
        let pid = child.id().to_string();
        let waiter = std::thread::spawn(move || child.wait().unwrap());
        let output = gtrace()
            .args(["attach", "--no-report", "-o"])
            .arg(place.path().join("a.gtrace"))
            .arg(pid)
            .output()
            .unwrap();
        waiter.join().unwrap();
        match output.status.code() {
            // It lived long enough to be recorded, without a GPU.
            Some(3) => assert!(place.path().join("a.gtrace/meta.json").exists()),
            Some(1) => {
                expect_refusal(&output, 1, &["ended while gtrace attached"], place.path());
                ended_meanwhile = true;
            }
            Some(2) => expect_refusal(&output, 2, &["process"], place.path()),
            _ => expect_status(&output, 1),
        }
    }
    assert!(ended_meanwhile, "not one ended at the right moment");
}

#[test]
#[ignore = "loads eBPF programs, which needs root"]
fn root_a_place_that_cannot_be_written_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let there = folder.path().join("there");
    std::fs::create_dir(&there).unwrap();
    let run = |output: &Path| {
        gtrace()
            .args(["run", "--no-report", "-o"])
            .arg(output)
            .args(["--", "touch"])
            .arg(there.join("ran"))
            .output()
            .unwrap()
    };
    expect_refusal(&run(&there), 2, &["exists already"], &there);
    expect_refusal(&run(&folder.path().join("no/such/place")), 2, &["cannot be written"], &there);
    // Not even root writes here.
    expect_refusal(&run(Path::new("/proc/new.gtrace")), 1, &["/proc/new.gtrace"], &there);
    assert!(!there.join("ran").exists(), "the command did not run");
}

#[test]
#[ignore = "loads eBPF programs, which needs root"]
fn root_a_command_that_cannot_be_executed_ends_as_in_a_shell() {
    let folder = tempfile::tempdir().unwrap();
    let run = |command: &str| {
        gtrace()
            .args(["run", "--no-report", "-o"])
            .arg(folder.path().join("a.gtrace"))
            .args(["--", command])
            .output()
            .unwrap()
    };
    expect_refusal(&run("/no/such/program"), 127, &["/no/such/program"], folder.path());
    expect_refusal(&run("/etc/passwd"), 126, &["/etc/passwd"], folder.path());
}

#[test]
#[ignore = "loads eBPF programs, which needs root"]
fn root_others_are_told_to_use_sudo() {
    let folder = tempfile::tempdir().unwrap();
    let nobody = 65_534;
    std::os::unix::fs::chown(folder.path(), Some(nobody), Some(nobody)).unwrap();
    // The build's folder may not be readable by others.
    let copy = folder.path().join("gtrace");
    std::fs::copy(env!("CARGO_BIN_EXE_gtrace"), &copy).unwrap();
    let output = Command::new(&copy)
        .args(["attach", "1", "-o", "/tmp/never.gtrace"])
        .uid(nobody)
        .gid(nobody)
        .output()
        .unwrap();
    std::fs::remove_file(copy).unwrap();
    expect_refusal(&output, 1, &["only root", "sudo"], folder.path());
}
