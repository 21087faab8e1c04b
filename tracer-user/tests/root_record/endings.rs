//! How recordings end.

use std::process::{Command, Stdio};
use std::time::Duration;

use gtrace::store::Bundle;
use gtrace::store::schema::{OffCpu, Process, Thread};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::gtrace::{Target, expect_status, gtrace, rows, wait_until};

const LOOP: &str = "import time\nprint('ready', flush=True)\nwhile True: time.sleep(0.001)\n";

#[test]
#[ignore = "loads eBPF programs, which needs root"]
fn root_a_signal_ends_an_attach_and_leaves_the_target_alone() {
    let mut target = Target::python(LOOP);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.gtrace");
    let recorder = gtrace()
        .args(["attach", &target.pid().to_string(), "--no-report", "-o"])
        .arg(&path)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until("the bundle is there", || path.join("meta.json").exists());
    std::thread::sleep(Duration::from_millis(500));
    kill(Pid::from_raw(recorder.id() as i32), Signal::SIGINT).unwrap();
    expect_status(&recorder.wait_with_output().unwrap(), 3);
    assert_eq!(Bundle::open(&path).unwrap().meta().ended, "interrupted");
    assert!(rows::<OffCpu>(&path).iter().filter(|row| row.pid.0 == target.pid()).count() > 50);
    assert!(target.lives());
}

#[test]
#[ignore = "loads eBPF programs, which needs root"]
fn root_a_killed_recorder_leaves_a_bundle_that_opens() {
    let mut target = Target::python(LOOP);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.gtrace");
    let mut recorder = gtrace()
        .args(["attach", &target.pid().to_string(), "--no-report", "-o"])
        .arg(&path)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let written =
        || Bundle::open(&path).is_ok_and(|bundle| bundle.read::<OffCpu>().is_ok_and(|rows| rows.len() > 100));
    wait_until("parts are sealed", || path.join("meta.json").exists() && written());
    recorder.kill().unwrap();
    recorder.wait().unwrap();
    let meta = Bundle::open(&path).unwrap().meta().clone();
    assert_eq!((meta.ended.as_str(), meta.ended_ns), ("running", None));
    let own: Vec<Process> =
        rows::<Process>(&path).into_iter().filter(|row| row.pid.0 == target.pid()).collect();
    assert_eq!(own.len(), 1, "who lived is in it: {own:?}");
    assert_eq!(rows::<Thread>(&path).iter().filter(|row| row.tid.0 == target.pid()).count(), 1);
    assert!(target.lives());
}

#[test]
#[ignore = "loads eBPF programs, which needs root"]
fn root_a_command_keeps_its_input_output_status_and_signals() {
    let folder = tempfile::tempdir().unwrap();
    let run = |name: &str, script: &str| {
        let mut command = gtrace();
        command.args(["--quiet", "run", "--no-report", "-o"]).arg(folder.path().join(name));
        command.args(["--", "sh", "-c", script]);
        command
    };
    let mut cat = run("cat", "cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut cat.stdin.take().unwrap(), b"through and through").unwrap();
    let output = cat.wait_with_output().unwrap();
    expect_status(&output, 0);
    assert_eq!(output.stdout, b"through and through");
    expect_status(&run("status", "exit 42").output().unwrap(), 42);
    expect_status(&run("killed", "kill -KILL $$").output().unwrap(), 128 + 9);

    // A signal for gtrace alone is handed to the command.
    let script = "trap 'echo caught; exit 5' TERM; echo ready; while :; do sleep 0.05; done";
    let mut child = run("term", script).stdout(Stdio::piped()).spawn().unwrap();
    let mut reader = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut reader, &mut line).unwrap();
    kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM).unwrap();
    std::io::BufRead::read_line(&mut reader, &mut line).unwrap();
    assert_eq!(line, "ready\ncaught\n");
    assert_eq!(child.wait().unwrap().code(), Some(5));

    // The command goes on after the recording.
    let output = run("short", "sleep 1; echo after").args([] as [&str; 0]).output().unwrap();
    expect_status(&output, 0);
    let mut short = gtrace();
    short.args(["run", "--no-report", "--duration", "200ms", "-o"]).arg(folder.path().join("shorter"));
    let output = short.args(["--", "sh", "-c", "sleep 1; echo after; exit 3"]).output().unwrap();
    expect_status(&output, 3);
    assert_eq!(output.stdout, b"after\n");
    assert_eq!(Bundle::open(&folder.path().join("shorter")).unwrap().meta().ended, "duration");
}

/// A file system of a few megabytes, unmounted at the end.
struct Small {
    folder: tempfile::TempDir,
}

impl Small {
    fn mount() -> Self {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let image = folder.path().join("image");
        std::fs::File::create(&image).unwrap().set_len(16 << 20).unwrap();
        let point = folder.path().join("mnt");
        std::fs::create_dir(&point).unwrap();
        let made = Command::new("mkfs.ext4").args(["-q", "-F", "-m", "0"]).arg(&image).status().unwrap();
        assert!(made.success());
        let mounted = Command::new("mount").args(["-o", "loop"]).arg(&image).arg(&point).status().unwrap();
        assert!(mounted.success());
        Self { folder }
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.folder.path().join("mnt")).status();
    }
}

#[test]
#[ignore = "loads eBPF programs, which needs root"]
fn root_a_full_disk_ends_the_recording_and_not_the_target() {
    let disk = Small::mount();
    // Many threads that wake each other: the space is full within some rounds of writing, and not in the first.
    let mut target = Target::python(
        "import threading, time\nprint('ready', flush=True)\ndef f():\n while True: time.sleep(0.002)\n\
         for i in range(8): threading.Thread(target=f).start()\n",
    );
    let path = disk.folder.path().join("mnt/full.gtrace");
    // All of the disk but a little is taken already.
    let point = disk.folder.path().join("mnt");
    let space = nix::sys::statvfs::statvfs(&point).unwrap();
    let free = space.blocks_available() * space.fragment_size();
    std::fs::write(point.join("filler"), vec![7_u8; free as usize - (1200 << 10)]).unwrap();
    let output = gtrace()
        .args(["attach", &target.pid().to_string(), "--no-report", "--duration", "60s", "-o"])
        .arg(&path)
        .output()
        .unwrap();
    expect_status(&output, 1);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("no space left") && said.contains("readable"), "{said}");
    assert!(target.lives());
    let bundle = Bundle::open(&path).unwrap();
    assert_eq!(bundle.meta().ended, "disk_full");
    assert!(bundle.meta().losses.iter().any(|(source, count)| source.starts_with("store.") && *count > 0));
    assert!(!rows::<OffCpu>(&path).is_empty());
}
