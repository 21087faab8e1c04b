//! Block requests and what waits for them.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use tracer_abi::kernel::WakerKind;

use crate::harness::{Recording, Target, comm, waker_kind};

const SIZE: usize = 4 << 20;

/// `st_dev` as the kernel keeps it (`major << 20 | minor`).
fn kernel_device(path: &Path) -> u32 {
    let device = path.metadata().expect("the file").dev();
    (libc::major(device) << 20) | libc::minor(device)
}

/// A folder on a file system with a disk under it.
fn disk_folder() -> tempfile::TempDir {
    tempfile::TempDir::new_in("/var/tmp").expect("a folder")
}

#[test]
#[ignore = "loads eBPF programs: needs root"]
fn a_cold_read_names_its_request_its_file_and_its_submitter() {
    let folder = disk_folder();
    let path = folder.path().join("cold.bin");
    std::fs::write(&path, vec![7_u8; SIZE]).expect("the file");
    let program = "
fd = os.open(sys.argv[1], os.O_RDONLY)
os.fsync(fd)
os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
wait()
assert len(os.pread(fd, 1 << 20, 1 << 20)) == 1 << 20
";
    let mut target = Target::start(program, &[path.to_str().expect("UTF-8")]);
    let mut recording = Recording::of(&target);
    target.go();
    target.end();
    recording.finish();
    let inode = path.metadata().expect("the file").ino();
    let waits = recording.off_in(target.pid(), libc::SYS_pread64);
    let blocked: Vec<_> = waits.iter().filter(|off| off.off_state != 0).collect();
    assert!(!blocked.is_empty(), "the read was not cold");
    for off in blocked {
        assert_eq!(waker_kind(off), WakerKind::Block, "{off:?}");
        let request = recording.block(off.waker.request_id);
        assert_eq!(request.submitter_tid, target.pid());
        assert_eq!(comm(&request.submitter_comm), "python3");
        assert_eq!(libc::c_long::from(request.syscall_nr), libc::SYS_pread64);
        assert_eq!((request.file_inode, request.file_device), (inode, kernel_device(&path)));
        assert_eq!(request.cmd_flags & 0xff, 0, "a read");
        assert!(request.queued_ns <= request.issued_ns && request.issued_ns < request.completed_ns);
        assert!(request.completed_ns <= off.woken_ns, "{request:?} {off:?}");
        assert!(request.in_flight >= 1 && request.error == 0);
    }
    let bytes: u32 = recording
        .blocks
        .iter()
        .filter(|request| request.file_inode == inode)
        .map(|request| request.bytes)
        .sum();
    assert!(bytes >= 1 << 20, "only {bytes} bytes of the file were read");
    let call = recording.calls_of(target.pid(), libc::SYS_pread64)[0];
    assert_eq!((call.object.inode, call.object.device), (inode, kernel_device(&path)));
    assert_eq!(call.result, 1 << 20);
    assert_eq!(recording.name_of(inode), "cold.bin");
}

#[test]
#[ignore = "loads eBPF programs: needs root"]
fn a_cold_page_fault_names_its_file_though_no_call_does() {
    let folder = disk_folder();
    let path = folder.path().join("mapped.bin");
    std::fs::write(&path, vec![7_u8; SIZE]).expect("the file");
    let program = "
import mmap
fd = os.open(sys.argv[1], os.O_RDONLY)
os.fsync(fd)
os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
memory = mmap.mmap(fd, 0, prot=mmap.PROT_READ)
os.close(fd)
wait()
total = sum(memory[at] for at in range(0, len(memory), 4096))
";
    let mut target = Target::start(program, &[path.to_str().expect("UTF-8")]);
    let mut recording = Recording::of(&target);
    target.go();
    target.end();
    recording.finish();
    let inode = path.metadata().expect("the file").ino();
    let fault = recording
        .off_in(target.pid(), -1)
        .into_iter()
        .find(|off| waker_kind(off) == WakerKind::Block)
        .expect("a fault that waited for the disk");
    let request = recording.block(fault.waker.request_id);
    assert_eq!((request.file_inode, request.submitter_tid, request.syscall_nr), (inode, target.pid(), -1));
    assert_eq!(recording.name_of(inode), "mapped.bin");
}

#[test]
#[ignore = "loads eBPF programs: needs root"]
fn an_fsync_can_be_walked_to_the_disk() {
    let folder = disk_folder();
    let path = folder.path().join("synced.bin");
    let program = "
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
wait()
for _ in range(20):
    os.write(fd, bytes(1 << 20))
    os.fsync(fd)
";
    let mut target = Target::start(program, &[path.to_str().expect("UTF-8")]);
    let mut recording = Recording::of(&target);
    target.go();
    target.end();
    recording.finish();
    let waits = recording.off_in(target.pid(), libc::SYS_fsync);
    let blocked: Vec<_> = waits.into_iter().filter(|off| off.off_state != 0).collect();
    assert!(blocked.len() >= 20, "{} waits in 20 fsyncs", blocked.len());
    for off in blocked {
        let (mut at, mut hops) = (off, 0);
        // Through kernel threads (kworker, jbd2) to the interrupt of a request, or to a task that was on its CPU.
        while waker_kind(at) == WakerKind::Task {
            hops += 1;
            assert!(hops < 8, "no end: {off:?}");
            let waker = at.waker.tid;
            let woken = at.woken_ns;
            assert!(
                recording.off_cpu.iter().any(|other| other.tid == waker),
                "the waker {} ({waker}) has no timeline: {at:?}",
                comm(&at.waker.comm)
            );
            match recording
                .off_cpu
                .iter()
                .filter(|other| other.tid == waker && other.on_ns <= woken && other.on_ns > off.off_ns)
                .max_by_key(|other| other.on_ns)
            {
                Some(before) => at = before,
                None => break,
            }
        }
        if waker_kind(at) == WakerKind::Block {
            assert!(recording.block(at.waker.request_id).completed_ns <= at.woken_ns);
        } else {
            assert!(matches!(waker_kind(at), WakerKind::Task | WakerKind::None), "{at:?}");
        }
    }
    let inode = path.metadata().expect("the file").ino();
    let written: u64 = recording
        .blocks
        .iter()
        .filter(|request| request.file_inode == inode && request.cmd_flags & 0xff == 1)
        .map(|request| u64::from(request.bytes))
        .sum();
    // At most a little more: the file's own metadata is written by the same call. Perhaps less: there are kernels that
    // report nothing while certain tasks run (see `sched_exit_tp`), not even the interrupt that ends a request.
    assert!(
        (17 << 20..21 << 20).contains(&written),
        "{written} of {} bytes written are the file's",
        20 << 20
    );
}
