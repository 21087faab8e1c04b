//! A wait that goes through a pipe to another process and from there to the disk.

use gtrace::event::Pid;
use gtrace::store::Bundle;
use gtrace::store::schema::{BlockIo, OffCpu, Process, Syscall};

use crate::gtrace::{expect_status, rows, run_python};

/// The main process waits in `read` on a pipe for a worker, which reads a cold file; then it sleeps.
const PROGRAM: &str = r"
import os, sys, time
path = sys.argv[1]
with open(path, 'wb') as f:
    f.write(os.urandom(8 << 20)); f.flush(); os.fsync(f.fileno())
    os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
r, w = os.pipe()
worker = os.fork()
if worker == 0:
    os.close(r)
    time.sleep(0.5) # long enough for the other end of its pipe to be looked up, also on a machine under load
    fd = os.open(path, os.O_RDONLY)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
    n = 0
    for i in range(64):
        n += len(os.pread(fd, 4096, (i * 37 % 2048) * 4096))
    os.write(w, b'x')
    os._exit(0)
os.close(w)
assert os.read(r, 1) == b'x'
os.waitpid(worker, 0)
time.sleep(0.2)
print(worker)
sys.exit(7)
";

#[test]
#[ignore = "loads eBPF programs, which needs root"]
fn root_a_wait_leads_through_the_pipe_to_the_disk() {
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let path = folder.path().join("shard \u{e9} 1.bin");
    let (bundle, output) = run_python(folder.path(), PROGRAM, &[path.to_str().unwrap()]);
    expect_status(&output, 7);
    let worker = Pid(String::from_utf8(output.stdout).unwrap().trim().parse().unwrap());
    let processes: Vec<Process> = rows(&bundle);
    let main = processes.iter().find(|process| process.pid == worker).unwrap().parent.unwrap();
    let main_row = processes.iter().find(|process| process.pid == main).unwrap();
    assert!(
        main_row.comm.starts_with("python") && main_row.end_ns.is_some() && !main_row.outside,
        "{main_row:?}"
    );
    assert!(main_row.exe.as_deref().is_some_and(|exe| exe.contains("python")), "{main_row:?}");

    let started = Bundle::open(&bundle).unwrap().meta().started_ns;

    // The main thread's wait: a call on the pipe, whose other end the worker holds, ended by the worker's write.
    let calls: Vec<Syscall> = rows(&bundle);
    let read = calls
        .iter()
        .filter(|call| {
            call.pid == main && &*call.name == "read" && call.object_kind.as_deref() == Some("pipe")
        })
        // Not the one in which it was held before it became the program.
        .filter(|call| call.start_ns.0 > started)
        .max_by_key(|call| call.blocked_ns)
        .expect("the read of the pipe");
    assert!(read.blocked_ns.0 > 40_000_000, "{read:?}");
    assert!(read.object.as_deref().is_some_and(|object| object.starts_with("pipe:[")), "{read:?}");
    assert_eq!(read.peer.as_deref(), Some(format!("{worker}/{}", main_row.comm).as_str()), "{read:?}");
    let off: Vec<OffCpu> = rows(&bundle);
    let wait = off
        .iter()
        .find(|wait| {
            wait.pid == main && wait.syscall_start_ns == Some(read.start_ns) && wait.woken_ns.is_some()
        })
        .expect("its wait");
    assert_eq!((wait.waker_kind.as_deref(), wait.waker_pid), (Some("task"), Some(worker)), "{wait:?}");
    assert_eq!(wait.waker_syscall.as_deref(), Some("write"), "{wait:?}");

    // The worker's waits: reads of the file, each ended by the completion of a request for that file.
    let name = path.to_str().unwrap();
    let reads: Vec<&Syscall> = calls
        .iter()
        .filter(|call| call.pid == worker && &*call.name == "pread64" && call.blocked_ns.0 > 0)
        .collect();
    assert!(reads.len() >= 32, "{} cold reads", reads.len());
    for read in &reads {
        assert_eq!(
            (read.object_kind.as_deref(), read.object.as_deref()),
            (Some("file"), Some(name)),
            "{read:?}"
        );
        assert_eq!((read.bytes, read.result), (Some(4096), Some(4096)), "{read:?}");
        assert!(read.offset.is_some_and(|offset| offset % 4096 == 0), "{read:?}");
    }
    let requests: Vec<BlockIo> = rows(&bundle);
    let waits: Vec<&OffCpu> = off
        .iter()
        .filter(|wait| {
            wait.pid == worker && wait.syscall.as_deref() == Some("pread64") && &*wait.state != "preempted"
        })
        .collect();
    // There are kernels that report nothing while certain tasks run (see the eBPF program `sched_exit_tp`), not even the
    // interrupt that ends a wait. Such a wait must not name a waker; few are such.
    let (waits, unseen): (Vec<&OffCpu>, Vec<&OffCpu>) =
        waits.into_iter().partition(|wait| wait.waker_kind.is_some());
    assert!(unseen.len() * 8 <= waits.len(), "{} of {} ends seen: {unseen:?}", waits.len(), unseen.len());
    for wait in &waits {
        assert_eq!(
            (wait.state.as_str(), wait.waker_kind.as_deref()),
            ("uninterruptible", Some("block")),
            "{wait:?}"
        );
        let request =
            requests.iter().find(|request| Some(request.request_id) == wait.request_id).expect("its request");
        assert_eq!((request.pid, request.file.as_deref()), (Some(worker), Some(name)), "{request:?}");
        assert_eq!(
            (request.op.as_str(), Some(&request.device)),
            ("read", wait.waker_object.as_ref()),
            "{request:?}"
        );
        let device = reads[0].device.as_deref().unwrap();
        assert!(device.starts_with(&*request.device), "{device} is, or lies on, {}", request.device);
        assert!(
            request.queued_ns <= request.issued_ns && request.issued_ns < request.completed_ns,
            "{request:?}"
        );
        assert!(request.completed_ns <= wait.woken_ns.unwrap(), "{request:?} {wait:?}");
    }

    // The sleep: its own timer.
    let sleep = off
        .iter()
        .filter(|wait| {
            wait.pid == main && wait.syscall.as_deref().is_some_and(|call| call.ends_with("nanosleep"))
        })
        .max_by_key(|wait| wait.woken_ns.map_or(0, |woken| (woken - wait.off_ns).0))
        .expect("the sleep");
    assert_eq!(sleep.waker_kind.as_deref(), Some("timer"), "{sleep:?}");
    assert!((sleep.woken_ns.unwrap() - sleep.off_ns).0 >= 190_000_000, "{sleep:?}");
}
