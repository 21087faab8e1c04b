//! What the kernel itself does to a program: it frees memory in the program's time, holds its reads back, slows its writes
//! down, sends its segments again; and which file direct I/O was for.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use gtrace::store::schema::{BlockIo, MemoryStall, OffCpu, Process, Retransmit, Syscall};

use crate::group::GroupFolder;
use crate::gtrace::{expect_status, python, rows, run_python};

/// A control group of one controller, removed at the end.
struct Group(GroupFolder);

impl Group {
    /// Of whichever version has the controller here; with the file of its limit in version 1 and in version 2.
    fn make(controller: &str, v1: (&str, &str), v2: (&str, &str)) -> Self {
        let name = format!("gtrace-test-{}-{controller}", std::process::id());
        let old = Path::new("/sys/fs/cgroup").join(controller);
        let (folder, (file, limit)) = if old.join("cgroup.procs").exists() {
            (old.join(name), v1)
        } else {
            let root = Path::new("/sys/fs/cgroup");
            let word = if controller == "blkio" { "+io" } else { "+memory" };
            // Fails where it is given to the groups below already, or where that is not allowed: then writing the limit does.
            let _ = std::fs::write(root.join("cgroup.subtree_control"), word);
            (root.join(name), v2)
        };
        std::fs::create_dir(&folder).unwrap();
        let group = Self(GroupFolder(folder));
        std::fs::write(group.0.0.join(file), limit).unwrap();
        group
    }

    fn processes(&self) -> String {
        self.0.0.join("cgroup.procs").display().to_string()
    }
}

/// The recorded program's process.
fn program(bundle: &Path) -> i32 {
    let name = python();
    let processes: Vec<Process> = rows(bundle);
    let own = processes.iter().find(|process| {
        !process.outside
            && process.exe.as_deref().is_some_and(|exe| Path::new(exe).file_name() == name.file_name())
    });
    own.or_else(|| processes.iter().find(|process| !process.outside && !process.kernel)).unwrap().pid.0
}

#[test]
#[ignore = "loads eBPF programs, which needs root"]
fn root_memory_that_a_group_must_free_first_is_seen_in_the_thread_that_frees_it() {
    const LIMIT: &str = "67108864";
    let group = Group::make("memory", ("memory.limit_in_bytes", LIMIT), ("memory.max", LIMIT));
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let file = folder.path().join("larger than the limit");
    let program_text = r"
import os, sys
open(sys.argv[1], 'w').write(str(os.getpid()))
with open(sys.argv[2], 'wb') as f:
    for i in range(160): f.write(bytes(1 << 20))
    f.flush(); os.fsync(f.fileno())
with open(sys.argv[2], 'rb', buffering=0) as f:
    while f.read(1 << 20): pass
";
    let arguments = [group.processes(), file.display().to_string()];
    let (bundle, output) =
        run_python(folder.path(), program_text, &[arguments[0].as_str(), arguments[1].as_str()]);
    expect_status(&output, 0);
    let pid = program(&bundle);
    let stalls: Vec<MemoryStall> = rows(&bundle);
    let freed: i64 = stalls
        .iter()
        .filter(|stall| stall.pid.0 == pid && &*stall.kind == "group_reclaim")
        .filter_map(|stall| stall.pages)
        .sum();
    // 320 MiB went through 64: at the least 200 MiB of them were freed in its own time, or by its group's own helper.
    assert!(freed > 1_000, "{freed} pages freed in {} stalls", stalls.len());
    assert!(stalls.iter().any(|stall| stall.syscall.as_deref() == Some("read")), "{stalls:?}");
    for stall in &stalls {
        assert!(stall.start_ns <= stall.end_ns, "{stall:?}");
    }
}

#[test]
#[ignore = "loads eBPF programs, which needs root"]
fn root_a_read_that_a_limit_held_back_is_told_from_a_slow_device() {
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let file = folder.path().join("held back");
    std::fs::write(&file, vec![7; 6 << 20]).unwrap();
    std::fs::File::open(&file).unwrap().sync_all().unwrap();
    let device = std::fs::metadata(&file).unwrap().dev();
    let (major, minor) = (libc::major(device), libc::minor(device));
    let v1 = format!("{major}:{minor} 4194304");
    let v2 = format!("{major}:{minor} rbps=4194304");
    let group = Group::make("blkio", ("blkio.throttle.read_bps_device", &v1), ("io.max", &v2));
    let program_text = r"
import os, sys
fd = os.open(sys.argv[2], os.O_RDONLY)
os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
open(sys.argv[1], 'w').write(str(os.getpid()))
while os.read(fd, 1 << 20): pass
";
    let arguments = [group.processes(), file.display().to_string()];
    let (bundle, output) =
        run_python(folder.path(), program_text, &[arguments[0].as_str(), arguments[1].as_str()]);
    expect_status(&output, 0);
    let requests: Vec<BlockIo> = rows(&bundle);
    let of_file: Vec<&BlockIo> = requests
        .iter()
        .filter(|request| request.file.as_deref() == Some(file.to_str().unwrap()) && &*request.op == "read")
        .collect();
    let held: i64 =
        of_file.iter().filter(|request| request.throttled == Some(true)).map(|request| request.bytes).sum();
    assert!(held > 4 << 20, "{of_file:?}");
    // Others are not held back.
    let innocent = requests.iter().filter(|request| request.throttled == Some(true));
    for request in innocent {
        assert_eq!(request.file.as_deref(), Some(file.to_str().unwrap()), "{request:?}");
    }
}

/// A file system on a loop device, unmounted at the end.
struct LoopMount(tempfile::TempDir);

impl LoopMount {
    fn make() -> Self {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let script =
            "truncate -s 256M image && mkfs.ext4 -q image && mkdir there && mount -o loop image there";
        let made = Command::new("sh").args(["-ec", script]).current_dir(folder.path()).status().unwrap();
        assert!(made.success());
        Self(folder)
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("there")
    }
}

impl Drop for LoopMount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.path()).status();
    }
}

#[test]
#[ignore = "loads eBPF programs, which needs root"]
fn root_a_writer_that_is_slowed_down_is_told_from_one_that_sleeps() {
    let mount = LoopMount::make();
    let device = std::fs::metadata(mount.path()).unwrap().dev();
    let own = PathBuf::from(format!("/sys/class/bdi/{}:{}", libc::major(device), libc::minor(device)));
    let limit = |file: &str, value: &str| std::fs::write(own.join(file), value);
    if limit("strict_limit", "1").and_then(|()| limit("max_bytes", "4194304")).is_err() {
        eprintln!("not run: this kernel has no limit of dirty pages for one device (6.2 and later)");
        return;
    }
    let program_text = r"
import os, sys, time
time.sleep(0.05)
with open(sys.argv[1], 'wb') as f:
    for i in range(32): f.write(bytes(1 << 20))
";
    let folder = tempfile::tempdir().unwrap();
    let file = mount.path().join("out");
    let (bundle, output) = run_python(folder.path(), program_text, &[file.to_str().unwrap()]);
    expect_status(&output, 0);
    let pid = program(&bundle);
    let waits: Vec<OffCpu> = rows(&bundle);
    let waits: Vec<&OffCpu> = waits.iter().filter(|wait| wait.pid.0 == pid).collect();
    let throttled: Vec<&&OffCpu> = waits.iter().filter(|wait| wait.throttled == Some(true)).collect();
    let timed = throttled.iter().filter(|wait| wait.waker_kind.as_deref() == Some("timer")).count();
    assert!(timed > 0, "{waits:?}");
    assert!(throttled.iter().all(|wait| wait.syscall.as_deref() == Some("write")), "{throttled:?}");
    let slept = waits.iter().find(|wait| wait.syscall.as_deref() == Some("clock_nanosleep"));
    assert_eq!(slept.and_then(|wait| wait.throttled), Some(false), "{slept:?}");
}

#[test]
#[ignore = "loads eBPF programs, which needs root"]
fn root_direct_io_is_for_the_file_that_was_asked_for_whatever_it_reads_into() {
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let file = folder.path().join("direct");
    std::fs::write(&file, vec![7; 4 << 20]).unwrap();
    std::fs::File::open(&file).unwrap().sync_all().unwrap();
    // Into shared memory (pages of a file of the kernel's own) and private memory, and through AIO.
    let program_text = r"
import ctypes, mmap, os, struct, sys
fd = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT)
shared = mmap.mmap(-1, 1 << 20)
private = mmap.mmap(-1, 1 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
assert os.preadv(fd, [shared], 0) == os.preadv(fd, [private], 1 << 20) == 1 << 20
libc = ctypes.CDLL(None, use_errno=True)
setup, getevents, submit = map(int, sys.argv[2:])
context = ctypes.c_ulong(0)
assert libc.syscall(setup, 8, ctypes.byref(context)) == 0
address = ctypes.addressof(ctypes.c_char.from_buffer(shared))
request = struct.pack('QIIHhIQQqQII', 7, 0, 0, 0, 0, fd, address, 1 << 20, 2 << 20, 0, 0, 0)
request = ctypes.create_string_buffer(request)
requests = (ctypes.c_void_p * 1)(ctypes.addressof(request))
one = ctypes.c_long(1)
assert libc.syscall(submit, context, one, requests) == 1
assert libc.syscall(getevents, context, one, one, ctypes.create_string_buffer(32), None) == 1
";
    let numbers = [libc::SYS_io_setup, libc::SYS_io_getevents, libc::SYS_io_submit].map(|nr| nr.to_string());
    let arguments = [file.to_str().unwrap(), &numbers[0], &numbers[1], &numbers[2]];
    let (bundle, output) = run_python(folder.path(), program_text, &arguments);
    expect_status(&output, 0);
    let pid = program(&bundle);
    let requests: Vec<BlockIo> = rows(&bundle);
    let own = requests.iter().filter(|request| request.pid.is_some_and(|own| own.0 == pid));
    let bytes: i64 = own
        .clone()
        .filter(|request| request.file.as_deref() == Some(file.to_str().unwrap()))
        .map(|request| request.bytes)
        .sum();
    assert!(bytes >= 3 << 20, "{:?}", own.collect::<Vec<_>>());
    let wrong = own.clone().find(|request| request.file.as_deref().is_some_and(|name| name.contains("zero")));
    assert!(wrong.is_none(), "{wrong:?}");
}

#[test]
#[ignore = "loads eBPF programs, which needs root"]
fn root_segments_that_are_sent_again_are_told_with_their_connection() {
    // A network of its own, whose other end never answers.
    let program_text = r"
import ctypes, fcntl, os, socket, struct, subprocess
assert ctypes.CDLL(None).unshare(0x40000000) == 0 # CLONE_NEWNET
tun = os.open('/dev/net/tun', os.O_RDWR)
fcntl.ioctl(tun, 0x400454ca, struct.pack('16sH22x', b'gt0', 0x1001)) # TUNSETIFF: a TUN without packet information
subprocess.run('ip addr add 10.77.0.1/24 dev gt0 && ip link set gt0 up', shell=True, check=True)
s = socket.socket()
s.setsockopt(socket.IPPROTO_TCP, 18, 1500) # TCP_USER_TIMEOUT
s.setsockopt(socket.IPPROTO_TCP, socket.TCP_SYNCNT, 1)
try:
    s.connect(('10.77.0.2', 9000))
except OSError:
    pass
";
    if !Path::new("/dev/net/tun").exists() || Command::new("ip").arg("-V").output().is_err() {
        eprintln!("not run: this machine has no TUN devices, or no ip command");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (bundle, output) = run_python(folder.path(), program_text, &[]);
    expect_status(&output, 0);
    let pid = program(&bundle);
    let calls: Vec<Syscall> = rows(&bundle);
    let connect = calls
        .iter()
        .filter(|call| call.pid.0 == pid && &*call.name == "connect")
        .max_by_key(|call| call.blocked_ns)
        .expect("the call");
    let connection = connect.object.as_deref().expect("its connection");
    assert!(
        connection.starts_with("10.77.0.1:") && connection.ends_with(" -> 10.77.0.2:9000"),
        "{connect:?}"
    );
    let again: Vec<Retransmit> = rows(&bundle);
    let own: Vec<&Retransmit> = again.iter().filter(|sent| &*sent.connection == connection).collect();
    assert!(!own.is_empty(), "{again:?}");
    for sent in own {
        assert!(
            sent.time_ns > connect.start_ns && connect.end_ns.is_none_or(|end| sent.time_ns <= end),
            "{sent:?}"
        );
    }
}
