//! Who is who: the recorded processes and threads, and those outside that took part in a wait.
//!
//! Members come from a snapshot of `/proc` and from then on from the kernel's fork, exec and exit records. An id that is
//! used again (its exit was lost, or it is a new task) ends the old entry and begins another.

mod entry;
mod snapshot;

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use tracer_abi::kernel::{ExecRecord, ExitRecord, ForkRecord};

pub use entry::comm_text;
pub use snapshot::{Follow, SnapshotError, attach_to, descendants};

use super::procfs;
use crate::event::{MonoNs, Pid, Text, Tid};
use crate::store::schema::{Process, Thread};
use entry::{BootClock, RecentTids, plain_comm};

/// Most processes outside the tree that are named: on a busy machine thousands may take a CPU for a moment.
const MAX_OUTSIDERS: usize = 1 << 15;

/// The processes and threads of a recording.
pub struct Tree {
    started: MonoNs,
    boot_clock: BootClock,
    processes: HashMap<Pid, Process>,
    threads: HashMap<Tid, Thread>,
    outsiders: usize,
    ended_processes: Vec<Process>,
    ended_threads: Vec<Thread>,
    /// Members that ended, the last ones: records that name them may still come, since an interval is written when it
    /// ends and not when its wake-up came.
    gone: RecentTids,
}

impl Tree {
    /// An empty tree of a recording that began at `started`.
    #[must_use]
    pub fn new(started: MonoNs) -> Self {
        Self {
            started,
            boot_clock: BootClock::now(),
            processes: HashMap::new(),
            threads: HashMap::new(),
            outsiders: 0,
            ended_processes: Vec::new(),
            ended_threads: Vec::new(),
            gone: RecentTids::default(),
        }
    }

    /// Takes in a process that lives already, with its threads. Returns its threads; empty if it is gone.
    pub fn add_existing(&mut self, pid: Pid) -> Vec<Tid> {
        let Some(stat) = procfs::stat(pid) else { return Vec::new() };
        let details = procfs::details(pid);
        let start_ns = self.boot_clock.monotonic(stat.start_ticks).max(self.started);
        let row = Process {
            pid,
            parent: (stat.parent > 0).then_some(Pid(stat.parent)),
            start_ns,
            end_ns: None,
            comm: stat.comm,
            exe: details.exe,
            cmdline: details.cmdline,
            cgroup: details.cgroup,
            container: details.container,
            owns_gpu: false,
            outside: false,
            kernel: stat.kernel,
        };
        match self.processes.entry(pid) {
            // Known from a fork record that came while the snapshot was taken: its beginning is the exact one.
            Entry::Occupied(mut known) if !known.get().outside => {
                let (start_ns, owns_gpu) = (known.get().start_ns, known.get().owns_gpu);
                known.insert(Process { start_ns, owns_gpu, ..row });
            }
            Entry::Occupied(mut outsider) => {
                outsider.insert(row);
                self.outsiders -= 1;
            }
            Entry::Vacant(vacant) => {
                vacant.insert(row);
            }
        }
        let tids = procfs::threads(pid);
        for &tid in &tids {
            let Some(stat) = procfs::thread_stat(pid, tid) else { continue };
            let began = self.boot_clock.monotonic(stat.start_ticks);
            self.threads.entry(tid).or_insert_with(|| Thread {
                pid,
                tid,
                comm: stat.comm,
                start_ns: began.max(self.started),
                end_ns: None,
                before_attach: began < self.started,
                role: None,
            });
        }
        tids
    }

    /// A member made a thread or process.
    pub fn forked(&mut self, record: &ForkRecord) {
        let now = MonoNs(record.header.time_ns as i64);
        let (pid, tid) = (Pid(record.child_tgid as i32), Tid(record.child_tid as i32));
        let comm = comm_text(&record.comm);
        let new_process = record.child_tgid != record.parent_tgid;
        // A snapshot may have seen the child before its fork record was read: the same thread, not a reuse.
        if self.seen_by_snapshot(pid, tid, now)
            && let Some(thread) = self.threads.get_mut(&tid)
        {
            thread.start_ns = now;
            thread.before_attach = false;
            if let Some(process) = self.processes.get_mut(&pid)
                && new_process
            {
                process.start_ns = now;
            }
            return;
        }
        self.end_thread(tid, now, None);
        self.gone.remove(tid);
        self.threads.insert(
            tid,
            Thread {
                pid,
                tid,
                comm: comm.clone(),
                start_ns: now,
                end_ns: None,
                before_attach: false,
                role: None,
            },
        );
        if !new_process {
            return;
        }
        self.end_process(pid, now);
        let parent = Pid(record.parent_tgid as i32);
        // Until it executes something the child is its parent's program.
        let model = self.processes.get(&parent);
        let row = Process {
            pid,
            parent: Some(parent),
            start_ns: now,
            end_ns: None,
            comm,
            exe: model.and_then(|parent| parent.exe.clone()),
            cmdline: model.and_then(|parent| parent.cmdline.clone()),
            cgroup: model.and_then(|parent| parent.cgroup.clone()),
            container: model.and_then(|parent| parent.container.clone()),
            owns_gpu: false,
            outside: false,
            kernel: false,
        };
        self.processes.insert(pid, row);
    }

    /// Whether a thread forked at `now` is one that a snapshot took in meanwhile.
    fn seen_by_snapshot(&self, pid: Pid, tid: Tid, now: MonoNs) -> bool {
        // `/proc` counts in ticks of 10 ms, and the snapshot reads it within a second of the fork.
        const SNAPSHOT_NS: u64 = 1_000_000_000;
        self.is_member(pid)
            && self
                .threads
                .get(&tid)
                .is_some_and(|thread| thread.pid == pid && now.0.abs_diff(thread.start_ns.0) < SNAPSHOT_NS)
    }

    /// A member executed a program. What `/proc` says of it now is that program, or a later one if it was quick.
    pub fn executed(&mut self, record: &ExecRecord) {
        let now = MonoNs(record.header.time_ns as i64);
        let (pid, leader, old) =
            (Pid(record.tgid as i32), Tid(record.tgid as i32), Tid(record.old_tid as i32));
        let comm = comm_text(&record.comm);
        if old != leader {
            self.end_thread(old, now, None);
        }
        let details = procfs::details(pid);
        let started = self.started;
        let thread = self.threads.entry(leader).or_insert_with(|| Thread {
            pid,
            tid: leader,
            comm: comm.clone(),
            start_ns: now.max(started),
            end_ns: None,
            before_attach: false,
            role: None,
        });
        thread.comm = comm.clone();
        let process = self.processes.entry(pid).or_insert_with(|| Process {
            pid,
            parent: None,
            start_ns: now.max(started),
            end_ns: None,
            comm: comm.clone(),
            exe: None,
            cmdline: None,
            cgroup: None,
            container: None,
            owns_gpu: false,
            outside: false,
            kernel: false,
        });
        process.comm = comm;
        process.exe = details.exe;
        process.cmdline = details.cmdline;
        if details.cgroup.is_some() {
            process.cgroup = details.cgroup;
            process.container = details.container;
        }
    }

    /// A thread ended.
    pub fn exited(&mut self, record: &ExitRecord) {
        let now = MonoNs(record.header.time_ns as i64);
        self.end_thread(Tid(record.tid as i32), now, Some(comm_text(&record.comm)));
        if record.process_ended != 0 {
            let pid = Pid(record.tgid as i32);
            // The last thread's exit ends all of them, also one whose own exit record was lost.
            let left: Vec<Tid> =
                self.threads.values().filter(|thread| thread.pid == pid).map(|thread| thread.tid).collect();
            for tid in left {
                self.end_thread(tid, now, None);
            }
            self.end_process(pid, now);
        }
    }

    fn end_thread(&mut self, tid: Tid, now: MonoNs, comm: Option<Text>) {
        if let Some(mut thread) = self.threads.remove(&tid) {
            thread.end_ns = Some(now.max(thread.start_ns));
            if let Some(comm) = comm {
                thread.comm = comm;
            }
            self.ended_threads.push(thread);
            self.gone.insert(tid);
        }
    }

    fn end_process(&mut self, pid: Pid, now: MonoNs) {
        if let Some(mut process) = self.processes.remove(&pid) {
            self.outsiders -= usize::from(process.outside);
            process.end_ns = Some(now.max(process.start_ns));
            self.ended_processes.push(process);
        }
    }

    /// Names a task that took part in a wait, or held a CPU that a member wanted, if it is not known yet. `comm` may be
    /// empty where the record does not have it.
    pub fn met(&mut self, pid: Pid, tid: Tid, comm: &Text, kernel: bool, now: MonoNs) {
        if pid.0 <= 0 || tid.0 <= 0 || self.threads.contains_key(&tid) || self.gone.contains(tid) {
            return;
        }
        if !self.processes.contains_key(&pid) {
            if self.outsiders >= MAX_OUTSIDERS {
                return;
            }
            self.outsiders += 1;
            let row = self.outsider(pid, comm, kernel, now);
            self.processes.insert(pid, row);
        }
        let member = self.is_member(pid);
        let stat = procfs::thread_stat(pid, tid);
        let began = self.boot_clock.began(stat.as_ref()).unwrap_or(now);
        let comm = match stat {
            Some(stat) if comm.is_empty() => plain_comm(stat.comm),
            _ => comm.clone(),
        };
        self.threads.insert(
            tid,
            Thread {
                pid,
                tid,
                comm,
                start_ns: if member { self.started } else { began.max(self.started) },
                end_ns: None,
                before_attach: began < self.started,
                role: None,
            },
        );
    }

    fn outsider(&self, pid: Pid, comm: &Text, kernel: bool, now: MonoNs) -> Process {
        let stat = procfs::stat(pid);
        let kernel = kernel || stat.as_ref().is_some_and(|stat| stat.kernel);
        let mut details =
            if kernel || stat.is_none() { procfs::ProcessDetails::default() } else { procfs::details(pid) };
        // Arguments hold secrets at times, and a recording is passed on: those of programs that nobody asked to record
        // stay out of it.
        details.cmdline = None;
        let began = self.boot_clock.began(stat.as_ref()).unwrap_or(now);
        Process {
            pid,
            parent: stat.as_ref().map(|stat| Pid(stat.parent)).filter(|parent| parent.0 > 0),
            start_ns: began.max(self.started),
            end_ns: None,
            comm: match stat {
                Some(stat) if !kernel || comm.is_empty() => plain_comm(stat.comm),
                _ => comm.clone(),
            },
            exe: details.exe,
            cmdline: details.cmdline,
            cgroup: details.cgroup,
            container: details.container,
            owns_gpu: false,
            outside: true,
            kernel,
        }
    }

    /// Ends those outside the tree that are gone: no record tells of it, and on a busy machine they would only become more.
    pub fn prune_outsiders(&mut self, now: MonoNs) {
        let outside = |pid: &Pid| self.processes.get(pid).is_some_and(|process| process.outside);
        let gone: Vec<Tid> = self
            .threads
            .values()
            .filter(|thread| outside(&thread.pid))
            .filter(|thread| procfs::thread_stat(thread.pid, thread.tid).is_none())
            .map(|thread| thread.tid)
            .collect();
        let empty: Vec<Pid> = self
            .processes
            .values()
            .filter(|process| process.outside && procfs::stat(process.pid).is_none())
            .map(|process| process.pid)
            .collect();
        for tid in gone {
            self.end_thread(tid, now, None);
            // Unlike a member's, its end is long past: a record that names the id means another thread.
            self.gone.remove(tid);
        }
        for pid in empty {
            self.end_process(pid, now);
        }
    }

    /// The shim of this process saw it make a CUDA context.
    pub fn owns_gpu(&mut self, pid: Pid) {
        if let Some(process) = self.processes.get_mut(&pid) {
            process.owns_gpu = true;
        }
    }

    /// Whether a process belongs to the recorded tree and lives.
    #[must_use]
    pub fn is_member(&self, pid: Pid) -> bool {
        self.processes.get(&pid).is_some_and(|process| !process.outside)
    }

    /// Whether a thread is known and lives.
    #[must_use]
    pub fn lives(&self, tid: Tid) -> bool {
        self.threads.contains_key(&tid)
    }

    /// The living members.
    pub fn members(&self) -> impl Iterator<Item = Pid> {
        self.processes.values().filter(|process| !process.outside).map(|process| process.pid)
    }

    /// `pid/name` of a process, as the column `peer` shows it.
    #[must_use]
    pub fn label(&self, pid: Pid) -> Text {
        let comm = match self.processes.get(&pid) {
            Some(process) => process.comm.clone(),
            None => procfs::stat(pid).map(|stat| stat.comm).unwrap_or_default(),
        };
        Text::from(format!("{pid}/{comm}"))
    }

    /// The rows of those that ended since the last call.
    pub fn take_ended(&mut self) -> (Vec<Process>, Vec<Thread>) {
        (std::mem::take(&mut self.ended_processes), std::mem::take(&mut self.ended_threads))
    }

    /// The rows of those that live. Names are read again: most threads get theirs after they were made.
    pub fn living(&mut self) -> (Vec<Process>, Vec<Thread>) {
        for thread in self.threads.values_mut() {
            let kernel = self.processes.get(&thread.pid).is_some_and(|process| process.kernel);
            if kernel {
                continue; // `/proc` appends what a kworker works on to its name
            }
            if let Some(stat) = procfs::thread_stat(thread.pid, thread.tid) {
                if thread.tid.0 == thread.pid.0
                    && let Some(process) = self.processes.get_mut(&thread.pid)
                {
                    process.comm = stat.comm.clone();
                }
                thread.comm = stat.comm;
            }
        }
        (self.processes.values().cloned().collect(), self.threads.values().cloned().collect())
    }
}

#[cfg(test)]
mod tests;
