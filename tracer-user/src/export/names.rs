//! What processes and threads are called.

use std::collections::{BTreeMap, BTreeSet};

use super::tracks::{Group, Row};
use crate::event::MonoNs;
use crate::store::schema::{Process, Thread};
use crate::store::{Bundle, StoreError};

/// Names by id. Of an id used twice, the last one.
#[derive(Default)]
pub struct Names {
    processes: BTreeMap<i32, String>,
    threads: BTreeMap<(i32, i32), String>,
    /// When each thread began and ended.
    lives: BTreeMap<(i32, i32), (MonoNs, Option<MonoNs>)>,
    gpu_owners: BTreeSet<i32>,
}

impl Names {
    /// Reads them.
    pub fn load(bundle: &Bundle) -> Result<Self, StoreError> {
        let mut names = Self::default();
        for process in bundle.scan::<Process>()? {
            let process = process?;
            let outside = if process.outside { " (outside)" } else { "" };
            names.processes.insert(process.pid.0, format!("{}{outside}", process.comm));
            if process.owns_gpu {
                names.gpu_owners.insert(process.pid.0);
            }
        }
        for thread in bundle.scan::<Thread>()? {
            let thread = thread?;
            let name = match &thread.role {
                Some(role) => format!("{} ({role})", thread.comm),
                None => thread.comm.to_string(),
            };
            names.threads.insert((thread.pid.0, thread.tid.0), name);
            names.lives.insert((thread.pid.0, thread.tid.0), (thread.start_ns, thread.end_ns));
        }
        Ok(names)
    }

    /// How many threads there are.
    pub fn threads(&self) -> usize {
        self.threads.len()
    }

    /// When a thread began, or the recording did.
    pub fn started(&self, pid: i32, tid: i32) -> Option<MonoNs> {
        self.lives.get(&(pid, tid)).map(|life| life.0)
    }

    /// When a thread ended, if it did.
    pub fn ended(&self, pid: i32, tid: i32) -> Option<MonoNs> {
        self.lives.get(&(pid, tid)).and_then(|life| life.1)
    }

    /// What a process is called.
    pub fn process(&self, pid: i32) -> String {
        self.processes.get(&pid).cloned().unwrap_or_else(|| format!("process {pid}"))
    }

    /// What a thread is called.
    pub fn thread(&self, pid: i32, tid: i32) -> String {
        self.threads.get(&(pid, tid)).cloned().unwrap_or_else(|| format!("thread {tid}"))
    }

    /// What a row is called. What tells rows apart comes first: viewers cut the end off.
    pub fn row(&self, group: Group, row: &Row) -> String {
        match (group, row) {
            (_, Row::Gaps) => "gaps by cause".into(),
            (_, Row::Stream { pid, context, stream }) => {
                format!("stream {stream} of {} [{pid}], context {context}", self.process(*pid))
            }
            (Group::Process(pid), Row::Thread { tid, calls }) => {
                format!("{tid} {}: {}", if *calls { "calls" } else { "state" }, self.thread(pid, *tid))
            }
            (_, Row::Thread { tid, .. }) => format!("thread {tid}"),
            (_, Row::Overhead) => "CUPTI and driver overhead".into(),
            (_, Row::Counter(counter, Some(device))) => format!("{device}: {}", counter.name()),
            (_, Row::Counter(counter, None)) => counter.name().into(),
            (_, Row::Device(name)) => name.to_string(),
            (_, Row::Source(source)) => source.to_string(),
        }
    }

    /// GPUs first, then processes (those with a GPU before the others), devices, losses.
    pub fn order(&self, group: Group) -> i32 {
        match group {
            Group::Gpu(device) => device.clamp(0, 999),
            Group::Process(pid) if self.gpu_owners.contains(&pid) => 1_000,
            Group::Process(_) => 2_000,
            Group::BlockDevices => 3_000,
            Group::Losses => 4_000,
        }
    }
}
