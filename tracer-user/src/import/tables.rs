//! Where imported rows go: ids, threads, processes and the span of time are kept here, whatever the format.

use std::collections::HashMap;
use std::path::Path;

use foldhash::fast::RandomState;

use super::error::ImportError;
use super::intern::Interner;
use super::losses::Losses;
use crate::event::{DurationNs, Interval, MonoNs, OpId, Pid, RowId, Text, Tid};
use crate::store::schema::{
    Collective, CudaApi, CudaOverhead, CudaSync, GpuOp, Loss, Marker, OffCpu, Process, Syscall, Thread,
};
use crate::store::writer::SealPolicy;
use crate::store::{BundleWriter, Meta, Table};

/// Rows that collect before they are handed to the writer.
const AT_ONCE: usize = 8_192;
/// Ops that wait for the process that launched them to become known.
const OPS_WAITING: usize = 1 << 16;

/// A device's number. Traces write −1 where there is none.
pub fn number_of_device(number: i64) -> Option<i32> {
    i32::try_from(number).ok().filter(|&device| device >= 0)
}

/// What is known of a thread.
#[derive(Clone, Copy, Debug)]
struct Seen {
    pid: Pid,
    tid: Tid,
    start: MonoNs,
    end: MonoNs,
}

/// The bundle that is being made.
pub struct Tables {
    writer: BundleWriter,
    /// Names made once.
    pub names: Interner,
    /// What was refused.
    pub losses: Losses,
    /// The process whose ops they are, once it is known.
    pub gpu_process: Option<Pid>,
    /// Names of threads, where the trace says them.
    pub thread_names: HashMap<(Pid, Tid), Text, RandomState>,
    /// Names of processes.
    pub process_names: HashMap<Pid, Text, RandomState>,
    ops: Vec<GpuOp>,
    op_count: i64,
    api: Ids<CudaApi>,
    syncs: Ids<CudaSync>,
    overheads: Ids<CudaOverhead>,
    markers: Ids<Marker>,
    syscalls: Ids<Syscall>,
    off_cpu: Ids<OffCpu>,
    collectives: Vec<Collective>,
    span: Option<Interval>,
    threads: Vec<Seen>,
    thread_places: HashMap<(Pid, Tid), usize, RandomState>,
    last_thread: usize,
}

/// Rows of one table that wait, and how many there were.
struct Ids<T> {
    rows: Vec<T>,
    next: i64,
}

impl<T: Table> Ids<T> {
    fn new() -> Self {
        Self { rows: Vec::with_capacity(AT_ONCE), next: 0 }
    }

    #[inline]
    fn push(&mut self, writer: &mut BundleWriter, row: T) {
        self.next += 1;
        self.rows.push(row);
        if self.rows.len() == AT_ONCE {
            writer.append(std::mem::replace(&mut self.rows, Vec::with_capacity(AT_ONCE)));
        }
    }
}

/// How much was imported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// GPU ops.
    pub ops: i64,
    /// CUDA calls.
    pub calls: i64,
    /// All rows.
    pub rows: i64,
}

impl Tables {
    /// A new bundle in the folder `output`.
    ///
    /// # Errors
    /// It exists already or cannot be made.
    pub fn create(output: &Path, meta: Meta) -> Result<Self, ImportError> {
        // One row group a part; little waits, so that memory stays small when the disk is slow.
        let policy = SealPolicy { rows: 64 * 1024, queued: 2, ..SealPolicy::default() };
        Ok(Self {
            writer: BundleWriter::create_with(output, meta, None, policy)?,
            names: Interner::default(),
            losses: Losses::default(),
            gpu_process: None,
            thread_names: HashMap::default(),
            process_names: HashMap::default(),
            ops: Vec::new(),
            op_count: 0,
            api: Ids::new(),
            syncs: Ids::new(),
            overheads: Ids::new(),
            markers: Ids::new(),
            syscalls: Ids::new(),
            off_cpu: Ids::new(),
            collectives: Vec::new(),
            span: None,
            threads: Vec::new(),
            thread_places: HashMap::default(),
            last_thread: 0,
        })
    }

    #[inline]
    fn saw(&mut self, time: Interval) {
        self.span = Some(match self.span {
            Some(span) => Interval { start: span.start.min(time.start), end: span.end.max(time.end) },
            None => time,
        });
    }

    #[inline]
    fn saw_thread(&mut self, pid: Pid, tid: Tid, time: Interval) {
        self.saw(time);
        let place = match self.threads.get(self.last_thread) {
            Some(last) if (last.pid, last.tid) == (pid, tid) => self.last_thread,
            _ => *self.thread_places.entry((pid, tid)).or_insert_with(|| {
                self.threads.push(Seen { pid, tid, start: time.start, end: time.end });
                self.threads.len() - 1
            }),
        };
        self.last_thread = place;
        if let Some(thread) = self.threads.get_mut(place) {
            thread.start = thread.start.min(time.start);
            thread.end = thread.end.max(time.end);
        }
    }

    /// Adds a GPU op and returns its id. Its process is set once it is known, if it is 0.
    pub fn gpu_op(&mut self, mut row: GpuOp) -> OpId {
        self.saw(Interval { start: row.start_ns, end: row.end_ns });
        row.op_id = OpId(self.op_count);
        self.op_count += 1;
        let id = row.op_id;
        self.ops.push(row);
        if self.ops.len() >= AT_ONCE && (self.gpu_process.is_some() || self.ops.len() >= OPS_WAITING) {
            self.flush_ops();
        }
        id
    }

    fn flush_ops(&mut self) {
        let pid = self.gpu_process.unwrap_or_default();
        for op in &mut self.ops {
            if op.pid == Pid(0) {
                op.pid = pid;
            }
        }
        self.writer.append(std::mem::take(&mut self.ops));
    }

    /// Adds a CUDA call.
    #[inline]
    pub fn cuda_api(&mut self, mut row: CudaApi) {
        self.saw_thread(row.pid, row.tid, Interval { start: row.start_ns, end: row.end_ns });
        row.id = RowId(self.api.next);
        self.api.push(&mut self.writer, row);
    }

    /// Adds a synchronisation.
    pub fn cuda_sync(&mut self, mut row: CudaSync) {
        self.saw(Interval { start: row.start_ns, end: row.end_ns });
        row.id = RowId(self.syncs.next);
        self.syncs.push(&mut self.writer, row);
    }

    /// Adds time that CUPTI or the driver needed for itself.
    pub fn cuda_overhead(&mut self, mut row: CudaOverhead) {
        self.saw(Interval { start: row.start_ns, end: row.end_ns });
        row.id = RowId(self.overheads.next);
        self.overheads.push(&mut self.writer, row);
    }

    /// Adds a range.
    #[inline]
    pub fn marker(&mut self, mut row: Marker) {
        self.saw_thread(row.pid, row.tid, Interval { start: row.start_ns, end: row.end_ns });
        row.id = RowId(self.markers.next);
        self.markers.push(&mut self.writer, row);
    }

    /// Adds a call of the operating system.
    pub fn syscall(&mut self, mut row: Syscall) {
        let end = row.end_ns.unwrap_or(row.start_ns);
        self.saw_thread(row.pid, row.tid, Interval { start: row.start_ns, end });
        row.id = RowId(self.syscalls.next);
        self.syscalls.push(&mut self.writer, row);
    }

    /// Adds an interval off the CPU.
    pub fn off_cpu(&mut self, mut row: OffCpu) {
        let end = row.on_ns.unwrap_or(row.off_ns);
        self.saw_thread(row.pid, row.tid, Interval { start: row.off_ns, end });
        row.id = RowId(self.off_cpu.next);
        self.off_cpu.push(&mut self.writer, row);
    }

    /// Adds a collective; position and rank are filled in at the end.
    pub fn collective(&mut self, row: Collective) {
        self.collectives.push(row);
    }

    /// Part of the file is missing, and it may have been work at any time.
    pub fn lose_everything(&mut self, why: &str) {
        let everywhere = Interval { start: MonoNs(0), end: MonoNs(i64::MAX) };
        self.losses.hide("import.cut", why, everywhere, 1);
    }

    /// How much there is.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let others = self.syncs.next
            + self.overheads.next
            + self.markers.next
            + self.syscalls.next
            + self.off_cpu.next;
        Counts { ops: self.op_count, calls: self.api.next, rows: self.op_count + self.api.next + others }
    }

    /// From the first to the last event; `None` if there was none.
    #[must_use]
    pub fn span(&self) -> Option<Interval> {
        self.span
    }

    /// Ends the bundle. `rank` is this process's place in its job.
    ///
    /// # Errors
    /// It could not be written.
    pub fn finish(mut self, mut meta: Meta, rank: Option<i32>) -> Result<Meta, ImportError> {
        let recording = self.span.unwrap_or_default();
        "imported".clone_into(&mut meta.ended);
        meta.started_ns = recording.start.0;
        meta.ended_ns = Some(recording.end.0);
        meta.root_pid = meta.root_pid.or(self.gpu_process.map(|pid| pid.0));
        self.flush_ops();
        self.write_collectives(rank);
        self.write_threads(recording);
        meta.losses = self
            .losses
            .by_source()
            .into_iter()
            .map(|(source, count)| (source.to_owned(), count as u64))
            .collect();
        self.writer.append::<Loss>(self.losses.rows(recording));
        self.writer.append(self.api.rows);
        self.writer.append(self.syncs.rows);
        self.writer.append(self.overheads.rows);
        self.writer.append(self.markers.rows);
        self.writer.append(self.syscalls.rows);
        self.writer.append(self.off_cpu.rows);
        Ok(self.writer.finish(meta)?)
    }

    fn write_collectives(&mut self, rank: Option<i32>) {
        let mut rows = std::mem::take(&mut self.collectives);
        rows.sort_by_key(|row| (row.device, row.stream, row.start_ns, row.op_id));
        let mut place = None;
        let mut sequence = 0;
        for row in &mut rows {
            if place.replace((row.device, row.stream)) != Some((row.device, row.stream)) {
                sequence = 0;
            }
            row.sequence = sequence;
            sequence += 1;
            row.rank = rank;
            if row.pid == Pid(0) {
                row.pid = self.gpu_process.unwrap_or_default();
            }
        }
        self.writer.append(rows);
    }

    fn write_threads(&mut self, recording: Interval) {
        let mut processes: Vec<Pid> =
            self.threads.iter().map(|thread| thread.pid).chain(self.gpu_process).collect();
        processes.sort_unstable();
        processes.dedup();
        let names = &self.process_names;
        let processes = processes.into_iter().map(|pid| Process {
            pid,
            parent: None,
            start_ns: recording.start,
            end_ns: None,
            comm: names.get(&pid).cloned().unwrap_or_default(),
            exe: names.get(&pid).cloned(),
            cmdline: None,
            cgroup: None,
            container: None,
            owns_gpu: self.gpu_process == Some(pid),
            outside: false,
            kernel: false,
        });
        self.writer.append(processes.collect());
        let threads = self.threads.iter().map(|thread| Thread {
            pid: thread.pid,
            tid: thread.tid,
            comm: self
                .thread_names
                .get(&(thread.pid, thread.tid))
                .or_else(|| names.get(&thread.pid))
                .cloned()
                .unwrap_or_default(),
            start_ns: thread.start,
            end_ns: None,
            before_attach: true,
            role: None,
        });
        self.writer.append(threads.collect());
    }
}

/// A system call whose object is not known.
#[must_use]
pub fn bare_syscall(pid: Pid, tid: Tid, name: Text, time: Interval) -> Syscall {
    Syscall {
        id: RowId(0),
        pid,
        tid,
        name,
        start_ns: time.start,
        end_ns: Some(time.end),
        result: None,
        blocked_ns: DurationNs(0),
        fd: None,
        object_kind: None,
        object: None,
        device: None,
        peer: None,
        offset: None,
        bytes: None,
    }
}
