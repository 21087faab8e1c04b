//! Forks, execs and exits.

use crate::harness::{Recording, Target, comm};

#[test]
#[ignore = "loads eBPF programs: needs root"]
fn a_child_is_followed_from_its_fork_to_its_end() {
    let program = "
wait()
child = os.fork()
if child == 0:
    os.execv('/bin/sleep', ['sleep', '0.05'])
say(child)
os.waitpid(child, 0)
";
    let mut target = Target::start(program, &[]);
    let mut recording = Recording::of(&target);
    target.go();
    let [child] = target.numbers();
    let child = child as u32;
    target.end();
    recording.finish();
    let fork = recording.forks.iter().find(|fork| fork.child_tid == child).expect("the fork");
    assert_eq!((fork.parent_tgid, fork.child_tgid), (target.pid(), child));
    let exec = recording.execs.iter().find(|exec| exec.tgid == child).expect("the exec");
    assert_eq!(comm(&exec.comm), "sleep");
    let exit = recording.exits.iter().find(|exit| exit.tid == child).expect("the exit");
    assert_eq!((exit.tgid, exit.process_ended), (child, 1));
    assert!(fork.header.time_ns < exec.header.time_ns && exec.header.time_ns < exit.header.time_ns);
    // Runnable from its fork on, woken by its parent.
    let first = recording.off_cpu.iter().find(|off| off.tid == child).expect("its first interval");
    assert_eq!((first.off_ns, first.waker.tid), (first.woken_ns, target.pid()), "{first:?}");
    let slept = recording.longest_off_in(child, libc::SYS_clock_nanosleep);
    // The thread leaves its CPU a moment after it has asked for 50 ms: a busy CPU makes that moment long.
    assert!(slept.on_ns - slept.off_ns >= 25_000_000, "{slept:?}");
    assert!(!recording.probes.is_tracked(child) && !recording.probes.is_tracked(target.pid()));
    let alive = recording.probes.threads().expect("the threads");
    assert!(alive.iter().all(|(tid, _)| *tid != child && *tid != target.pid()), "an ended thread is kept");
}

#[test]
#[ignore = "loads eBPF programs: needs root"]
fn an_exec_by_another_thread_keeps_the_process() {
    let program = "
wait()
thread = threading.Thread(target=lambda: os.execv('/bin/sleep', ['sleep', '0.05']))
thread.start()
time.sleep(10)
";
    let mut target = Target::start(program, &[]);
    let mut recording = Recording::of(&target);
    target.go();
    target.end();
    recording.finish();
    let exec = recording.execs.iter().find(|exec| exec.tgid == target.pid()).expect("the exec");
    assert_ne!(exec.old_tid, target.pid(), "another thread did it");
    let slept = recording
        .off_in(target.pid(), libc::SYS_clock_nanosleep)
        .into_iter()
        .filter(|off| off.off_ns > exec.header.time_ns)
        .max_by_key(|off| off.on_ns - off.off_ns)
        .expect("the new program's sleep, under the process's own number");
    // The thread leaves its CPU a moment after it has asked for 50 ms: a busy CPU makes that moment long.
    assert!(slept.on_ns - slept.off_ns >= 25_000_000, "{slept:?}");
    let threads = recording.probes.threads().expect("the threads");
    assert!(threads.iter().all(|(_, state)| state.tgid != target.pid()), "an ended thread is kept");
}

#[test]
#[ignore = "loads eBPF programs: needs root"]
fn a_ring_is_announced_by_its_memfds_name() {
    let program = "
wait()
os.memfd_create('other')
say(os.memfd_create('gtrace-ring'))
";
    let mut target = Target::start(program, &[]);
    let mut recording = Recording::of(&target);
    target.go();
    let [fd] = target.numbers();
    target.end();
    recording.finish();
    let mut announcements = recording.probes.take_ring_announcements().expect("nobody took it");
    let memfds: Vec<_> = std::iter::from_fn(|| announcements.next_memfd())
        .map(|memfd| (memfd.tgid, memfd.fd as u64))
        .collect();
    assert_eq!(memfds, [(target.pid(), fd)]);
}
