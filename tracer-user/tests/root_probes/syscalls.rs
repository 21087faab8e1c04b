//! System calls: counts of fast ones, ready descriptors, 32-bit calls.

use tracer_abi::kernel::syscall_flags;

use crate::harness::{Recording, Target};

fn calls(recording: &Recording, pid: u32, nr: libc::c_long) -> u64 {
    let counted: u64 = recording
        .counts(pid)
        .iter()
        .filter(|(key, _)| libc::c_long::from(key.syscall_nr) == nr)
        .map(|(_, value)| value.calls)
        .sum();
    counted + recording.calls_of(pid, nr).len() as u64
}

#[test]
#[ignore = "loads eBPF programs: needs root"]
fn fast_calls_are_counted_exactly() {
    // Other calls whose numbers share a place in the thread's cache come in between.
    let program = "
wait()
for i in range(1000):
    os.getppid()
    if i % 10 == 0: os.getpgid(0); os.getsid(0); os.sched_getscheduler(0); os.umask(0); os.getuid()
";
    let mut target = Target::start(program, &[]);
    let mut recording = Recording::of(&target);
    target.go();
    target.end();
    recording.finish();
    let pid = target.pid();
    assert_eq!(calls(&recording, pid, libc::SYS_getppid), 1000);
    for nr in [libc::SYS_getpgid, libc::SYS_getsid, libc::SYS_sched_getscheduler, libc::SYS_umask] {
        assert_eq!(calls(&recording, pid, nr), 100, "call {nr}");
    }
    let counts = recording.counts(pid);
    let (_, getppid) = counts
        .iter()
        .find(|(key, _)| libc::c_long::from(key.syscall_nr) == libc::SYS_getppid)
        .expect("counted");
    assert!(getppid.total_ns / getppid.calls < 10_000 && getppid.max_ns <= getppid.total_ns);
    assert!(getppid.first_ns < getppid.last_ns && getppid.errors == 0);
    assert_eq!(getppid.result_sum, getppid.calls * u64::from(std::process::id()), "its results");
}

#[test]
#[ignore = "loads eBPF programs: needs root"]
fn a_live_threads_counts_are_in_the_final_sum() {
    let mut target = Target::start("wait()\nfor _ in range(500): os.getppid()\nwait()", &[]);
    let mut recording = Recording::of(&target);
    target.go();
    assert_eq!(target.line(), "ready");
    recording.finish();
    assert_eq!(calls(&recording, target.pid(), libc::SYS_getppid), 500);
    assert!(
        recording
            .probes
            .take_syscall_counts()
            .expect("the counts")
            .iter()
            .all(|(key, _)| key.tgid != target.pid())
    );
}

#[test]
#[ignore = "loads eBPF programs: needs root"]
fn a_poll_names_the_ready_descriptor() {
    let program = "
pipes = [os.pipe() for _ in range(5)]
def write():
    time.sleep(0.02)
    os.write(pipes[3][1], b'x')
    time.sleep(0.02)
    os.write(pipes[2][1], b'x')
wait()
thread = threading.Thread(target=write)
thread.start()
poll = select.poll()
for r, _ in pipes: poll.register(r, select.POLLIN)
assert poll.poll() == [(pipes[3][0], select.POLLIN)]
os.read(pipes[3][0], 1)
assert select.select([r for r, _ in pipes], [], [])[0] == [pipes[2][0]]
say(pipes[3][0], os.fstat(pipes[3][0]).st_ino, pipes[2][0], os.fstat(pipes[2][0]).st_ino)
thread.join()
";
    let mut target = Target::start(program, &[]);
    let mut recording = Recording::of(&target);
    target.go();
    let [polled, polled_inode, selected, selected_inode] = target.numbers();
    target.end();
    recording.finish();
    let ready: Vec<_> = recording
        .syscalls
        .iter()
        .filter(|call| call.tid == target.pid() && call.flags & syscall_flags::READY_FD != 0)
        .map(|call| (call.ready_fd as u64, call.object.inode))
        .collect();
    assert_eq!(ready, [(polled, polled_inode), (selected, selected_inode)]);
}

/// i386's 20 is `getpid`, x86-64's is `writev`: a call through `int 0x80` must not be read as the latter.
#[cfg(target_arch = "x86_64")]
#[test]
#[ignore = "loads eBPF programs: needs root"]
fn a_32_bit_call_is_not_misread() {
    use tracer_abi::kernel::COMPAT_CALL;
    let program = "
import ctypes, mmap
code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write(bytes.fromhex('b814000000cd80c3'))
call = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
wait()
say(sum(call() == os.getpid() for _ in range(100)))
";
    let mut target = Target::start(program, &[]);
    let mut recording = Recording::of(&target);
    target.go();
    let [right] = target.numbers();
    target.end();
    recording.finish();
    assert_eq!(right, 100, "this kernel runs no 32-bit calls (CONFIG_IA32_EMULATION)");
    assert_eq!(calls(&recording, target.pid(), libc::c_long::from(COMPAT_CALL)), 100);
    assert_eq!(calls(&recording, target.pid(), libc::SYS_writev), 0);
}
