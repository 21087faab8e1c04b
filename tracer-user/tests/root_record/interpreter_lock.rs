//! A thread that waits for Python's interpreter lock is seen to, and the one that holds it ends the wait.

use std::collections::BTreeMap;
use std::path::Path;

use gtrace::event::Tid;
use gtrace::store::Bundle;
use gtrace::store::schema::{OffCpu, Syscall};

use crate::gtrace::{expect_status, gtrace, python, rows};

/// The main thread gives the lock away for a moment; another thread takes it, and holds it for long in one call. A third
/// thread waits for a lock of the program's own.
const PROGRAM: &str = r"
import threading, time
own = threading.Lock()
own.acquire()
go = threading.Semaphore(0)
def hold():
    for _ in range(10):
        go.acquire()
        sum(range(2_000_000))
def wait():
    own.acquire()
holder = threading.Thread(target=hold)
waiter = threading.Thread(target=wait)
holder.start(); waiter.start()
for _ in range(10):
    time.sleep(0.01)
    go.release()
    time.sleep(0.0001)
own.release()
holder.join(); waiter.join()
time.sleep(1.5) # long enough for its memory to be looked at, also on a machine under load
print(holder.native_id, waiter.native_id)
";

#[test]
#[ignore = "loads eBPF programs, which needs root"]
fn root_waits_for_the_interpreter_lock_are_told_from_other_locks() {
    check(&python());
}

/// Every other version that pyenv has here.
#[test]
#[ignore = "loads eBPF programs, which needs root"]
fn root_the_interpreter_lock_is_found_in_every_version() {
    let Some(home) = std::env::var_os("HOME") else { return };
    let versions = std::fs::read_dir(Path::new(&home).join(".pyenv/versions"));
    for version in versions.into_iter().flatten().flatten() {
        let name = version.file_name();
        let minor = name.to_str().and_then(|name| name.strip_prefix("3.")?.split('.').next()?.parse().ok());
        if minor.is_some_and(|minor: u32| (8..=14).contains(&minor)) {
            check(&version.path().join("bin/python3"));
        }
    }
}

fn check(python: &Path) {
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("run.gtrace");
    let run = ["run", "--no-report", "-o"];
    let output =
        gtrace().args(run).arg(&bundle).arg("--").arg(python).args(["-c", PROGRAM]).output().unwrap();
    expect_status(&output, 0);
    let told = String::from_utf8(output.stdout).unwrap();
    let tids: Vec<i32> = told.split_whitespace().map(|tid| tid.parse().unwrap()).collect();
    let (holder, waiter) = (Tid(tids[0]), Tid(tids[1]));

    let calls: Vec<Syscall> = rows(&bundle);
    let locks: BTreeMap<(Tid, i64), &Syscall> = calls
        .iter()
        .filter(|call| call.object_kind.as_deref() == Some("gil"))
        .map(|call| ((call.tid, call.start_ns.0), call))
        .collect();
    let object = "GIL of CPython 3.";
    for call in locks.values() {
        assert!(call.object.as_deref().is_some_and(|name| name.starts_with(object)), "{call:?}");
        assert!(matches!(&*call.name, "futex"), "{call:?}");
    }
    // The main thread's waits for it, ended by the holder.
    let waits: Vec<OffCpu> = rows(&bundle);
    let by_holder = waits
        .iter()
        .filter(|wait| wait.tid.0 == wait.pid.0 && wait.waker_tid == Some(holder))
        .filter(|wait| wait.syscall_start_ns.is_some_and(|start| locks.contains_key(&(wait.tid, start.0))))
        .count();
    assert!(
        by_holder >= 5,
        "{by_holder} of 10 holds, {} waits for the lock: {}",
        locks.len(),
        python.display()
    );
    // The program's own lock is no interpreter lock.
    let own = calls
        .iter()
        .filter(|call| call.tid == waiter && call.object_kind.as_deref() == Some("futex"))
        .map(|call| call.blocked_ns)
        .max();
    assert!(own.is_some_and(|blocked| blocked.0 > 50_000_000), "{own:?}");
    let interpreters = Bundle::open(&bundle).unwrap().meta().interpreters.clone();
    assert_eq!(interpreters.len(), 1, "{interpreters:?}");
    assert!(interpreters.keys().all(|version| version.starts_with("3.")), "{interpreters:?}");
}
