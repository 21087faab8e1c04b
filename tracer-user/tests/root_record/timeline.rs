//! The timeline of each thread is one: its intervals are ordered and apart.

use std::collections::HashMap;

use gtrace::event::Tid;
use gtrace::store::Bundle;
use gtrace::store::schema::{OffCpu, Syscall, SyscallCount, Thread};

use crate::gtrace::{expect_status, rows, run_python};

/// Threads that hand a lock around, compute, and sleep, beside processes that come and go.
const PROGRAM: &str = r"
import os, subprocess, threading, time
lock = threading.Lock()
def work():
    for i in range(300):
        with lock:
            sum(range(500))
        if i % 50 == 0:
            time.sleep(0.001)
threads = [threading.Thread(target=work) for _ in range(6)]
for t in threads: t.start()
for i in range(5): subprocess.run(['true'])
for t in threads: t.join()
for i in range(20000): os.getppid()
";

#[test]
#[ignore = "loads eBPF programs, which needs root"]
fn root_intervals_of_a_thread_are_ordered_and_apart() {
    let folder = tempfile::tempdir().unwrap();
    let (path, output) = run_python(folder.path(), PROGRAM, &[]);
    expect_status(&output, 0);
    let bundle = Bundle::open(&path).unwrap();
    let meta = bundle.meta();
    assert_eq!(meta.ended, "target_exited");
    for (source, count) in &meta.losses {
        assert!(*count == 0 || source.starts_with("irq"), "{count} lost: {source}");
    }
    let end = meta.ended_ns.unwrap();
    let mut by_thread: HashMap<Tid, Vec<OffCpu>> = HashMap::new();
    for row in rows::<OffCpu>(&path) {
        assert!(row.off_ns.0 >= meta.started_ns && row.off_ns.0 <= end, "{row:?}");
        assert!(
            row.woken_ns.is_none_or(|woken| woken.0 <= end) && row.on_ns.is_none_or(|on| on.0 <= end),
            "{row:?}"
        );
        if let (Some(woken), Some(on)) = (row.woken_ns, row.on_ns) {
            assert!(row.off_ns <= woken && woken <= on, "{row:?}");
        }
        by_thread.entry(row.tid).or_default().push(row);
    }
    for rows in by_thread.values_mut() {
        rows.sort_by_key(|row| row.off_ns);
        for pair in rows.windows(2) {
            let on = pair[0].on_ns.unwrap_or_else(|| panic!("only the last interval is open: {:?}", pair[0]));
            assert!(on <= pair[1].off_ns, "{:?} overlaps {:?}", pair[0], pair[1]);
        }
    }
    let mut calls: HashMap<Tid, Vec<Syscall>> = HashMap::new();
    for call in rows::<Syscall>(&path) {
        calls.entry(call.tid).or_default().push(call);
    }
    for (tid, calls) in &mut calls {
        calls.sort_by_key(|call| call.start_ns);
        for pair in calls.windows(2) {
            assert!(
                pair[0].end_ns.is_some_and(|end| end <= pair[1].start_ns),
                "{:?} overlaps {:?}",
                pair[0],
                pair[1]
            );
        }
        // What a call says of its blocked time is what the intervals inside it say.
        for call in calls.iter().filter(|call| !matches!(&*call.name, "execve" | "exit_group" | "exit")) {
            let Some(call_end) = call.end_ns else { continue };
            let inside = by_thread.get(tid).map_or(0, |rows| {
                rows.iter()
                    .filter(|row| {
                        row.off_ns >= call.start_ns && row.off_ns < call_end && &*row.state != "preempted"
                    })
                    .map(|row| row.woken_ns.or(row.on_ns).map_or(0, |until| (until - row.off_ns).0))
                    .sum::<i64>()
            });
            let told = call.blocked_ns.0;
            assert!((told - inside).abs() <= 1 + inside / 1000, "{call:?}: intervals say {inside}");
        }
    }
    // Every thread of the program is there, with a beginning and an end.
    let threads: Vec<Thread> = rows(&path);
    let root = meta.root_pid.unwrap();
    let own: Vec<&Thread> = threads.iter().filter(|thread| thread.pid.0 == root).collect();
    assert!(own.len() >= 7, "{own:?}");
    assert!(own.iter().all(|thread| thread.end_ns.is_some_and(|end| end >= thread.start_ns)), "{own:?}");
    // The fast calls were counted, not written.
    let counted: i64 =
        rows::<SyscallCount>(&path).iter().filter(|row| &*row.name == "getppid").map(|row| row.calls).sum();
    let written = rows::<Syscall>(&path).iter().filter(|row| &*row.name == "getppid").count() as i64;
    assert_eq!(counted + written, 20_000);
    assert!(written < 200, "{written} written one by one");
}
