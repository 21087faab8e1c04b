//! What processes and threads are called.

use std::collections::{BTreeMap, BTreeSet};

use super::events::Events;
use super::json::Object;
use super::tracks::{Group, Row, Track};
use super::{ExportError, Pass};
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

    fn process(&self, pid: i32) -> String {
        self.processes.get(&pid).cloned().unwrap_or_else(|| format!("process {pid}"))
    }

    fn thread(&self, pid: i32, tid: i32) -> String {
        self.threads.get(&(pid, tid)).cloned().unwrap_or_else(|| format!("thread {tid}"))
    }

    fn row(&self, group: Group, row: &Row) -> String {
        match (group, row) {
            (_, Row::Gaps) => "gaps by cause".into(),
            (_, Row::Stream { pid, context, stream }) => {
                format!("stream {stream} of {} [{pid}], context {context}", self.process(*pid))
            }
            (Group::Process(pid), Row::Thread { tid, calls }) => {
                // What tells rows apart first: viewers cut the end off.
                format!("{tid} {}: {}", if *calls { "calls" } else { "state" }, self.thread(pid, *tid))
            }
            (_, Row::Thread { tid, .. }) => format!("thread {tid}"),
            (_, Row::Overhead) => "CUPTI and driver overhead".into(),
            (_, Row::Device(name)) => name.to_string(),
            (_, Row::Source(source)) => source.to_string(),
        }
    }

    /// GPUs first, then processes (those with a GPU before the others), devices, losses.
    fn order(&self, group: Group) -> i64 {
        match group {
            Group::Gpu(device) => i64::from(device).clamp(0, 999),
            Group::Process(pid) if self.gpu_owners.contains(&pid) => 1_000,
            Group::Process(_) => 2_000,
            Group::BlockDevices => 3_000,
            Group::Losses => 4_000,
        }
    }
}

impl<W: std::io::Write> Pass<'_, W> {
    /// Names and orders the tracks in use.
    pub(super) fn track_names(&mut self) -> Result<(), ExportError> {
        let Self { tracks, names, events, bundle, .. } = self;
        for (group, pid) in tracks.groups() {
            let (name, label) = match group {
                Group::Gpu(device) => {
                    let gpu = bundle.meta().gpus.iter().find(|gpu| gpu.device == device);
                    (format!("GPU {device}"), gpu.map_or_else(String::new, |gpu| gpu.name.clone()))
                }
                Group::Process(pid) => (names.process(pid), String::new()),
                Group::BlockDevices => ("block devices".into(), String::new()),
                Group::Losses => ("lost events".into(), String::new()),
            };
            let track = Track { pid, tid: 0 };
            let mut property = |key, args| events.metadata(track, key, args).map_err(ExportError::out);
            property("process_name", Object::default().text("name", &name))?;
            property("process_sort_index", Object::default().integer("sort_index", names.order(group)))?;
            if !label.is_empty() {
                property("process_labels", Object::default().text("labels", &label))?;
            }
        }
        let mut order = 0;
        for (group, row, lane, track) in tracks.tracks() {
            order += 1;
            let mut name = names.row(group, row);
            if lane > 0 {
                name = format!("{name} ({})", lane + 1);
            }
            name_track(events, track, &name, order).map_err(ExportError::out)?;
        }
        Ok(())
    }
}

fn name_track<W: std::io::Write>(
    events: &mut Events<W>,
    track: Track,
    name: &str,
    order: i64,
) -> std::io::Result<()> {
    events.metadata(track, "thread_name", Object::default().text("name", name))?;
    events.metadata(track, "thread_sort_index", Object::default().integer("sort_index", order))
}
