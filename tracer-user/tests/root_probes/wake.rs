//! Wake edges of timers and tasks.

use tracer_abi::kernel::{WakerKind, off_cpu_flags, syscall_flags};

use crate::harness::{Recording, Target, waker_kind};

#[test]
#[ignore = "loads eBPF programs: needs root"]
fn a_sleep_ends_by_its_timer() {
    let mut target = Target::start("wait(); time.sleep(0.05)", &[]);
    let mut recording = Recording::of(&target);
    target.go();
    target.end();
    recording.finish();
    let off = recording.longest_off_in(target.pid(), libc::SYS_clock_nanosleep);
    assert_eq!(waker_kind(off), WakerKind::Timer, "{off:?}");
    assert_ne!(off.waker.function, 0);
    let slept = off.woken_ns - off.off_ns;
    assert!((49_000_000..80_000_000).contains(&slept), "slept {slept} ns");
    let call = recording.calls_of(target.pid(), libc::SYS_clock_nanosleep)[0];
    assert_eq!(call.start_ns, off.syscall_start_ns);
    assert_eq!(call.blocked_ns, slept);
}

#[test]
#[ignore = "loads eBPF programs: needs root"]
fn a_pipe_reader_is_woken_by_the_writer_in_its_write() {
    let program = "
r, w = os.pipe()
wait()
child = os.fork()
if child == 0:
    time.sleep(0.03)
    os.write(w, b'x')
    os._exit(0)
os.read(r, 1)
say(child, os.fstat(r).st_ino)
os.waitpid(child, 0)
";
    let mut target = Target::start(program, &[]);
    let mut recording = Recording::of(&target);
    target.go();
    let [child, pipe] = target.numbers();
    target.end();
    recording.finish();
    let off = recording.longest_off_in(target.pid(), libc::SYS_read);
    assert_eq!(waker_kind(off), WakerKind::Task, "{off:?}");
    assert_eq!(u64::from(off.waker.tid), child);
    assert_eq!(libc::c_long::from(off.waker.syscall_nr), libc::SYS_write);
    let read = recording
        .calls_of(target.pid(), libc::SYS_read)
        .into_iter()
        .find(|call| call.object.inode == pipe)
        .expect("the read is recorded with its pipe");
    assert!(read.blocked_ns > 20_000_000, "{read:?}");
}

#[test]
#[ignore = "loads eBPF programs: needs root"]
fn a_lock_waiter_is_woken_by_the_thread_that_releases() {
    let program = "
lock = threading.Lock()
lock.acquire()
def holder():
    time.sleep(0.03)
    lock.release()
wait()
thread = threading.Thread(target=holder)
thread.start()
lock.acquire()
say(thread.native_id)
thread.join()
";
    let mut target = Target::start(program, &[]);
    let mut recording = Recording::of(&target);
    target.go();
    let [holder] = target.numbers();
    target.end();
    recording.finish();
    let off = recording.longest_off_in(target.pid(), libc::SYS_futex);
    assert_eq!(waker_kind(off), WakerKind::Task, "{off:?}");
    assert_eq!(u64::from(off.waker.tid), holder);
    assert_eq!(libc::c_long::from(off.waker.syscall_nr), libc::SYS_futex);
}

#[test]
#[ignore = "loads eBPF programs: needs root"]
fn a_thread_blocked_before_attach_is_in_the_timeline() {
    let mut target = Target::start("wait(); wait()", &[]);
    let mut recording = Recording::of(&target);
    let started = recording_start();
    recording.probes.insert_blocked_thread(target.pid(), blocked(target.pid(), started)).expect("a place");
    assert!(open_intervals(&recording).contains(&(target.pid(), started)), "not among the open intervals");
    target.go();
    assert_eq!(target.line(), "ready");
    // Until the target sleeps in its second wait.
    std::thread::sleep(std::time::Duration::from_millis(50));
    recording.finish();
    let off = recording.off_cpu.iter().find(|off| off.tid == target.pid()).expect("an interval");
    assert_ne!(off.flags & off_cpu_flags::BEFORE_ATTACH, 0, "{off:?}");
    assert_eq!(off.off_ns, started);
    assert_eq!(waker_kind(off), WakerKind::Task);
    assert_eq!(off.waker.tgid, std::process::id());
    let call = recording.calls_of(target.pid(), libc::SYS_read)[0];
    assert_eq!((call.start_ns, call.flags), (started, syscall_flags::BEFORE_ATTACH), "{call:?}");
    assert_eq!(call.blocked_ns, off.woken_ns - started);
    // And at the end it is off again, seen by the kernel this time.
    let open = open_intervals(&recording);
    let (_, off_ns) = open.iter().find(|(tid, _)| *tid == target.pid()).expect("still off the CPU");
    assert!(*off_ns >= off.on_ns);
    target.go();
    target.end();
}

fn open_intervals(recording: &Recording) -> Vec<(u32, u64)> {
    let threads = recording.probes.threads().expect("the threads");
    threads
        .into_iter()
        .filter(|(_, state)| state.off_ns != 0)
        .map(|(tid, state)| (tid, state.off_ns))
        .collect()
}

fn recording_start() -> u64 {
    let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC).expect("a clock");
    now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64
}

fn blocked(pid: u32, started: u64) -> tracer_abi::kernel::ThreadState {
    use tracer_abi::kernel::{ObjectId, SocketAddresses, ThreadState, Waker};
    ThreadState {
        off_ns: started,
        syscall_start_ns: started,
        syscall_blocked_ns: 0,
        args: [0; 6],
        waker: Waker {
            kind: WakerKind::None as u32,
            tid: 0,
            tgid: 0,
            syscall_nr: -1,
            cpu: 0,
            irq: 0,
            request_id: 0,
            function: 0,
            socket: SocketAddresses::NONE,
            comm: [0; 16],
        },
        woken_ns: 0,
        dirty_ns: 0,
        syscall_nr: libc::SYS_read as i32,
        tgid: pid,
        off_state: 1,
        flags: off_cpu_flags::BEFORE_ATTACH,
        off_cpu: 0,
        tid: pid,
        object: ObjectId::NONE,
    }
}
