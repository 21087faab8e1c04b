//! What a descriptor was, though it is closed and reused at once.

use std::os::unix::fs::MetadataExt;

use tracer_abi::kernel::ObjectKind;

use crate::harness::{Recording, Target};

#[test]
#[ignore = "loads eBPF programs: needs root"]
fn a_descriptor_replaced_during_the_wait_keeps_the_waits_object() {
    let program = "
r, w = os.pipe()
inode = os.fstat(r).st_ino
def replace():
    time.sleep(0.02)
    os.dup2(os.open('/dev/null', os.O_RDONLY), r)
    os.write(w, b'x')
keep = os.dup(r)
wait()
thread = threading.Thread(target=replace)
thread.start()
os.read(r, 1)
say(r, inode)
thread.join()
";
    let mut target = Target::start(program, &[]);
    let mut recording = Recording::of(&target);
    target.go();
    let [fd, inode] = target.numbers();
    target.end();
    recording.finish();
    let read = recording
        .calls_of(target.pid(), libc::SYS_read)
        .into_iter()
        .find(|call| call.fd as u64 == fd && call.blocked_ns > 10_000_000)
        .expect("the read that waited");
    assert_eq!((read.object.kind, read.object.inode), (ObjectKind::Pipe as u32, inode));
}

#[test]
#[ignore = "loads eBPF programs: needs root"]
fn one_descriptor_number_for_many_files_names_each() {
    let folder = tempfile::TempDir::new_in("/var/tmp").expect("a folder");
    let files: Vec<_> = (0..20).map(|index| folder.path().join(format!("file-{index}"))).collect();
    for file in &files {
        std::fs::write(file, vec![1_u8; 256 << 10]).expect("a file");
    }
    let program = "
for name in sys.argv[1:]:
    fd = os.open(name, os.O_RDONLY)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)
wait()
fds = set()
for name in sys.argv[1:]:
    fd = os.open(name, os.O_RDONLY)
    os.pread(fd, 256 << 10, 0)
    os.close(fd)
    fds.add(fd)
assert len(fds) == 1
";
    let arguments: Vec<&str> = files.iter().map(|file| file.to_str().expect("UTF-8")).collect();
    let mut target = Target::start(program, &arguments);
    let mut recording = Recording::of(&target);
    target.go();
    target.end();
    recording.finish();
    let read: Vec<u64> =
        recording.calls_of(target.pid(), libc::SYS_pread64).iter().map(|call| call.object.inode).collect();
    let inodes: Vec<u64> = files.iter().map(|file| file.metadata().expect("a file").ino()).collect();
    assert_eq!(read, inodes);
    for (index, inode) in inodes.iter().enumerate() {
        assert_eq!(recording.name_of(*inode), format!("file-{index}"));
    }
}

#[test]
#[ignore = "loads eBPF programs: needs root"]
fn anonymous_files_are_told_apart_by_name() {
    let program = "
epoll = select.epoll()
event = os.eventfd(0)
epoll.register(event, select.EPOLLIN)
def write():
    time.sleep(0.02); os.eventfd_write(event, 1)
    time.sleep(0.02); os.eventfd_write(event, 1)
wait()
thread = threading.Thread(target=write)
thread.start()
epoll.poll()
os.eventfd_read(event)
os.eventfd_read(event)
thread.join()
";
    let mut target = Target::start(program, &[]);
    let mut recording = Recording::of(&target);
    target.go();
    target.end();
    recording.finish();
    let mut names: Vec<String> = recording
        .syscalls
        .iter()
        .filter(|call| call.tid == target.pid() && call.object.kind == ObjectKind::Anon as u32)
        .map(|call| {
            let key = (call.object.inode, call.object.device, call.object.generation);
            let path = recording
                .paths
                .iter()
                .find(|path| (path.object.inode, path.object.device, path.object.generation) == key)
                .expect("its name");
            crate::harness::comm(&path.components)
        })
        .collect();
    names.sort();
    names.dedup();
    assert_eq!(names, ["[eventfd]", "[eventpoll]"]);
}
