//! Attaching to what runs already.

use gtrace::event::{MonoNs, Tid};
use gtrace::store::Bundle;
use gtrace::store::schema::{OffCpu, Process, Syscall, Thread};

use crate::gtrace::{Target, expect_status, gtrace, rows, wait_until};

/// One thread waits for a lock, the main one for a child that sleeps, and nothing of it ends.
const PROGRAM: &str = r"
import ctypes, os, threading, time
r, w = os.pipe()
if os.fork() == 0:
    ctypes.CDLL(None).prctl(1, 9) # PR_SET_PDEATHSIG: not to outlive the test
    os.close(r)
    time.sleep(1000)
lock = threading.Lock(); lock.acquire()
t = threading.Thread(target=lock.acquire, daemon=True); t.start()
os.close(w)
time.sleep(0.2)
print('ready', flush=True)
os.read(r, 1)
";

#[test]
#[ignore = "loads eBPF programs, which needs root"]
fn root_threads_blocked_all_the_time_are_in_the_timeline() {
    let mut target = Target::python(PROGRAM);
    let pid = target.pid();
    wait_until("it sleeps in read", || {
        std::fs::read_to_string(format!("/proc/{pid}/syscall")).is_ok_and(|text| text.starts_with("0 "))
    });
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.gtrace");
    let output = gtrace()
        .args(["attach", &pid.to_string(), "--no-report", "--duration", "1s", "-o"])
        .arg(&path)
        .output()
        .unwrap();
    // No GPU side: incomplete, and it says so.
    expect_status(&output, 3);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("host side attached") && said.contains("no recorded process used CUDA"), "{said}");
    assert!(target.lives());

    let meta = Bundle::open(&path).unwrap().meta().clone();
    assert_eq!((meta.ended.as_str(), meta.mode.as_str(), meta.root_pid), ("duration", "attach", Some(pid)));
    let length = meta.ended_ns.unwrap() - meta.started_ns;
    assert!((1_000_000_000..3_000_000_000).contains(&length), "{length}");

    let members: Vec<Process> =
        rows::<Process>(&path).into_iter().filter(|process| !process.outside).collect();
    assert_eq!(members.len(), 2, "{members:?}");
    assert!(
        members.iter().all(|process| process.end_ns.is_none() && process.start_ns == MonoNs(meta.started_ns))
    );
    let child = members.iter().find(|process| process.pid.0 != pid).unwrap();
    assert_eq!(child.parent.unwrap().0, pid);
    let threads: Vec<Thread> = rows::<Thread>(&path)
        .into_iter()
        .filter(|thread| members.iter().any(|member| member.pid == thread.pid))
        .collect();
    assert_eq!(threads.len(), 3, "{threads:?}");
    assert!(threads.iter().all(|thread| thread.before_attach && thread.end_ns.is_none()), "{threads:?}");

    let off: Vec<OffCpu> = rows(&path);
    let calls: Vec<Syscall> = rows(&path);
    for thread in &threads {
        let mine: Vec<&OffCpu> = off.iter().filter(|row| row.tid == thread.tid).collect();
        assert_eq!(mine.len(), 1, "{mine:?}");
        assert!(
            mine[0].before_attach && mine[0].on_ns.is_none() && mine[0].off_ns == MonoNs(meta.started_ns)
        );
        assert_eq!(mine[0].state.as_str(), "interruptible");
        let call = calls.iter().find(|call| call.tid == thread.tid).expect("the call that it is in");
        assert_eq!(mine[0].syscall.as_ref(), Some(&call.name));
        assert!(
            call.end_ns.is_none() && call.result.is_none() && call.blocked_ns.0 >= 1_000_000_000,
            "{call:?}"
        );
    }
    let call = |tid: i32| calls.iter().find(|call| call.tid == Tid(tid)).unwrap();
    assert_eq!(
        (&*call(pid).name, call(pid).object_kind.as_deref(), call(pid).fd),
        ("read", Some("pipe"), Some(3))
    );
    assert_eq!(call(child.pid.0).object_kind.as_deref(), Some("sleep"));
    let waiter = threads.iter().find(|thread| thread.pid.0 == pid && thread.tid.0 != pid).unwrap();
    assert_eq!(
        (&*call(waiter.tid.0).name, call(waiter.tid.0).object_kind.as_deref()),
        ("futex", Some("futex"))
    );
}

#[test]
#[ignore = "loads eBPF programs, which needs root"]
fn root_children_made_while_attaching_are_followed() {
    // A tree that grows all the time.
    let target = Target::python(
        "import subprocess, time\nprint('ready', flush=True)\nwhile True:\n subprocess.run(['sh', '-c', 'true; true'])\n",
    );
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.gtrace");
    let pid = target.pid().to_string();
    let output =
        gtrace().args(["attach", &pid, "--no-report", "--duration", "1s", "-o"]).arg(&path).output().unwrap();
    expect_status(&output, 3);
    let members: Vec<Process> =
        rows::<Process>(&path).into_iter().filter(|process| !process.outside).collect();
    assert!(members.len() > 5, "{members:?}");
    let shells: Vec<&Process> = members.iter().filter(|process| &*process.comm == "sh").collect();
    assert!(shells.len() > 3, "{members:?}");
    assert!(
        shells.iter().all(|shell| shell.parent.is_some_and(|parent| parent.0 == target.pid())),
        "{shells:?}"
    );
    // All but the last one ended while recorded.
    assert!(shells.iter().filter(|shell| shell.end_ns.is_none()).count() <= 1, "{shells:?}");
}
