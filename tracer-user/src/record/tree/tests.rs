use tracer_abi::kernel::{ExecRecord, ExitRecord, ForkRecord, RecordHeader, RecordKind, ThreadState};

use super::*;

fn comm(name: &str) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..name.len()].copy_from_slice(name.as_bytes());
    bytes
}

fn header(kind: RecordKind, time_ns: u64) -> RecordHeader {
    RecordHeader { kind: kind as u32, cpu: 0, time_ns }
}

fn fork(time_ns: u64, parent: u32, thread: u32, process: u32) -> ForkRecord {
    ForkRecord {
        header: header(RecordKind::Fork, time_ns),
        parent_tid: parent,
        parent_tgid: parent,
        child_tid: thread,
        child_tgid: process,
        comm: comm("python3"),
    }
}

fn exit(time_ns: u64, thread: u32, process: u32, last: u32, name: &str) -> ExitRecord {
    ExitRecord {
        header: header(RecordKind::Exit, time_ns),
        tid: thread,
        tgid: process,
        process_ended: last,
        reserved: 0,
        comm: comm(name),
    }
}

/// Ids that no live process can have: `pid_max` is at most 4 Mi.
const A: u32 = 5_000_000;
const B: u32 = 5_000_001;
const C: u32 = 5_000_002;

#[test]
fn a_thread_gets_its_last_name_at_its_exit() {
    let mut tree = Tree::new(MonoNs(0));
    tree.forked(&fork(10, A, B, B));
    tree.forked(&fork(20, B, C, B));
    tree.exited(&exit(30, C, B, 0, "pin_memory"));
    assert!(tree.is_member(Pid(B as i32)) && !tree.lives(Tid(C as i32)));
    tree.exited(&exit(40, B, B, 1, "worker"));
    let (processes, threads) = tree.take_ended();
    assert_eq!(processes.len(), 1);
    assert_eq!((processes[0].start_ns, processes[0].end_ns), (MonoNs(10), Some(MonoNs(40))));
    assert_eq!(processes[0].parent, Some(Pid(A as i32)));
    let names: Vec<&str> = threads.iter().map(|thread| thread.comm.as_str()).collect();
    assert_eq!(names, ["pin_memory", "worker"]);
    assert_eq!(tree.members().count(), 0);
}

#[test]
fn an_id_used_again_is_another_thread() {
    let mut tree = Tree::new(MonoNs(0));
    tree.forked(&fork(10, A, B, B));
    // Its exit was lost; two seconds later the id comes back.
    tree.forked(&fork(2_000_000_010, A, B, B));
    let (processes, threads) = tree.take_ended();
    assert_eq!((processes.len(), threads.len()), (1, 1));
    assert_eq!(processes[0].end_ns, Some(MonoNs(2_000_000_010)));
    assert!(tree.is_member(Pid(B as i32)));
}

#[test]
fn exec_by_another_thread_makes_it_the_leader() {
    let mut tree = Tree::new(MonoNs(0));
    tree.forked(&fork(10, A, B, B));
    tree.forked(&fork(20, B, C, B));
    let record =
        ExecRecord { header: header(RecordKind::Exec, 30), tgid: B, old_tid: C, comm: comm("train") };
    tree.executed(&record);
    assert!(tree.lives(Tid(B as i32)) && !tree.lives(Tid(C as i32)));
    assert_eq!(tree.label(Pid(B as i32)).as_str(), format!("{B}/train"));
}

#[test]
fn the_last_exit_ends_threads_whose_own_exit_was_lost() {
    let mut tree = Tree::new(MonoNs(0));
    tree.forked(&fork(10, A, B, B));
    tree.forked(&fork(20, B, C, B));
    tree.exited(&exit(40, B, B, 1, "worker"));
    assert_eq!(tree.take_ended().1.len(), 2);
    assert!(!tree.lives(Tid(C as i32)));
}

#[test]
fn outsiders_are_named_but_no_members() {
    let mut tree = Tree::new(MonoNs(0));
    tree.met(Pid(2), Tid(2), &Text::from("kthreadd"), true, MonoNs(5));
    tree.met(Pid(0), Tid(0), &Text::from("swapper"), true, MonoNs(5));
    assert!(!tree.is_member(Pid(2)));
    assert_eq!(tree.members().count(), 0);
    let (processes, _) = tree.living();
    assert_eq!(processes.len(), 1);
    assert!(processes[0].outside && processes[0].kernel);
    // One that is gone is ended, and its id may come back; one that lives stays.
    let gone = Text::from("cc1");
    tree.met(Pid(A as i32), Tid(A as i32), &gone, false, MonoNs(5));
    assert_eq!(tree.living().0.len(), 2);
    tree.prune_outsiders(MonoNs(9));
    assert_eq!(tree.living().0.len(), 1);
    assert_eq!(tree.take_ended().0[0].end_ns, Some(MonoNs(9)));
    tree.met(Pid(A as i32), Tid(A as i32), &gone, false, MonoNs(15));
    assert!(tree.lives(Tid(A as i32)));
}

#[test]
fn a_late_record_does_not_bring_the_dead_back() {
    let mut tree = Tree::new(MonoNs(0));
    tree.forked(&fork(10, A, B, B));
    tree.exited(&exit(40, B, B, 1, "worker"));
    tree.met(Pid(B as i32), Tid(B as i32), &Text::from("worker"), false, MonoNs(50));
    assert!(tree.living().0.is_empty() && tree.living().1.is_empty());
    tree.forked(&fork(60, A, B, B));
    assert!(tree.is_member(Pid(B as i32)) && tree.lives(Tid(B as i32)));
}

#[derive(Default)]
struct Followed {
    processes: Vec<Pid>,
    blocked: Vec<(Tid, ThreadState)>,
}

impl Follow for Followed {
    type Error = std::convert::Infallible;
    fn follow(&mut self, pid: Pid) -> Result<(), Self::Error> {
        self.processes.push(pid);
        Ok(())
    }
    fn insert_blocked(&mut self, tid: Tid, state: &ThreadState) -> Result<(), Self::Error> {
        assert!(
            self.processes.contains(&Pid(state.tgid as i32)),
            "a thread is looked at after its process is followed"
        );
        self.blocked.push((tid, *state));
        Ok(())
    }
}

#[test]
fn a_living_tree_is_taken_in_with_its_sleepers() {
    let mut shell =
        std::process::Command::new("sh").args(["-c", "sleep 60 & sleep 60; true"]).spawn().expect("a shell");
    let root = Pid(shell.id() as i32);
    let both = |_: &i32| descendants(root).len() == 3;
    (0..300)
        .inspect(|_| std::thread::sleep(std::time::Duration::from_millis(10)))
        .find(both)
        .expect("both children");
    std::thread::sleep(std::time::Duration::from_millis(100));
    let mut tree = Tree::new(super::super::clocks::monotonic());
    let mut probes = Followed::default();
    attach_to(&mut tree, &mut probes, root, MonoNs(1)).expect("it lives");
    let sleepers = tree.members().filter(|pid| *pid != root).collect::<Vec<_>>();
    for pid in &sleepers {
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid.0), nix::sys::signal::Signal::SIGKILL)
            .expect("ours");
    }
    shell.kill().expect("ours");
    shell.wait().expect("ours");
    assert_eq!(sleepers.len(), 2);
    assert_eq!(probes.processes.len(), 3);
    let sleeping =
        probes.blocked.iter().filter(|(tid, state)| tid.0 != root.0 && state.syscall_nr >= 0).count();
    assert_eq!(sleeping, 2);
    assert!(probes.blocked.iter().all(|(_, state)| state.off_ns == 1 && state.off_state == 1));
    assert!(tree.living().1.iter().all(|thread| thread.before_attach));
}

#[test]
fn a_process_that_is_gone_is_refused() {
    let mut tree = Tree::new(MonoNs(0));
    let outcome = attach_to(&mut tree, &mut Followed::default(), Pid(A as i32), MonoNs(1));
    assert!(matches!(outcome, Err(SnapshotError::Ended(_))));
}
