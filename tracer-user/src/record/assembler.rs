//! Takes the kernel side's records one by one and makes rows of them.

use std::collections::BTreeMap;

use tracer_abi::kernel::{
    CudaCallRecord, OffCpuRecord, SyscallRecord, ThreadState, WakerKind, off_cpu_flags,
};

use super::objects::Objects;
use super::probes::RawRecord;
use super::rows::{
    KernelSymbols, RecentRequests, RowIds, block_io_row, interrupt_row, memory_stall_row, off_cpu_row,
    retransmit_row, still_off_row, still_running_row, syscall_row,
};
use super::tree::{Tree, comm_text};
use crate::event::{DurationNs, MonoNs, Pid, Text, Tid};
use crate::store::BundleWriter;
use crate::store::schema::OffCpu;

const TASK: u32 = WakerKind::Task as u32;
const NET: u32 = WakerKind::Net as u32;

/// Everything that a row needs beside its record.
pub struct Assembler {
    started: MonoNs,
    tree: Tree,
    objects: Objects,
    requests: RecentRequests,
    symbols: KernelSymbols,
    off_cpu_ids: RowIds,
    syscall_ids: RowIds,
    memory_stall_ids: RowIds,
    interrupt_ids: RowIds,
    /// Calls of this batch: they wait for [`Self::settle`], so that one look at who holds which pipe serves them all.
    calls: Vec<SyscallRecord>,
    cuda_calls: Vec<CudaCallRecord>,
    /// Processes of this batch that ended or run another program, and whether to look at that at once: after its calls.
    renewed: Vec<(Pid, bool)>,
    /// The end of the recording, once it is known.
    ended: MonoNs,
    events: u64,
}

impl Assembler {
    /// Begins with the tree as it was found.
    #[must_use]
    pub fn new(started: MonoNs, tree: Tree) -> Self {
        Self {
            started,
            tree,
            objects: Objects::default(),
            requests: RecentRequests::default(),
            symbols: KernelSymbols::default(),
            off_cpu_ids: RowIds::default(),
            syscall_ids: RowIds::default(),
            memory_stall_ids: RowIds::default(),
            interrupt_ids: RowIds::default(),
            calls: Vec::new(),
            cuda_calls: Vec::new(),
            renewed: Vec::new(),
            ended: MonoNs::MAX,
            events: 0,
        }
    }

    /// Who is who.
    pub fn tree_mut(&mut self) -> &mut Tree {
        &mut self.tree
    }

    /// Who is who.
    #[must_use]
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Records taken so far.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.events
    }

    /// How many processes ran which CPython.
    #[must_use]
    pub fn interpreters(&self) -> &BTreeMap<String, u64> {
        self.objects.interpreters().versions()
    }

    /// The calls of the CUDA driver since the last call of this, in processes without CUPTI.
    pub fn take_cuda_calls(&mut self) -> Vec<CudaCallRecord> {
        std::mem::take(&mut self.cuda_calls)
    }

    /// The recording has ended at this moment: what begins later is left out, what ends later is open.
    pub fn end_at(&mut self, ended: MonoNs) {
        self.ended = ended;
    }

    /// Takes one record.
    pub fn take(&mut self, record: &RawRecord<'_>, writer: &mut BundleWriter) {
        self.events += 1;
        match record {
            RawRecord::OffCpu(record) if record.flags & off_cpu_flags::RETURN_UNSEEN != 0 => {
                self.returned_unseen(record, writer);
            }
            RawRecord::OffCpu(record) => self.off_cpu(record, writer),
            RawRecord::Syscall(record) => self.calls.push(**record),
            RawRecord::Block(record) if record.completed_ns <= self.started.0 as u64 => {}
            RawRecord::Block(record) => {
                let row = block_io_row(record, &mut self.objects);
                self.requests.completed(record.request_id, row.device.clone());
                if let (Some(pid), Some(tid), Some(comm)) = (row.pid, row.tid, &row.comm) {
                    self.tree.met(pid, tid, comm, false, row.queued_ns);
                }
                writer.push(row);
            }
            RawRecord::ObjectPath(record) => self.objects.learn_path(record),
            RawRecord::Fork(record) => {
                self.tree.forked(record);
                if record.child_tgid != record.parent_tgid {
                    self.objects.outdate_holders();
                    self.objects
                        .inherit_memory(Pid(record.parent_tgid as i32), Pid(record.child_tgid as i32));
                }
            }
            RawRecord::Exec(record) => {
                self.tree.executed(record);
                self.objects.outdate_holders();
                let python = record.comm.starts_with(b"python");
                self.renewed.push((Pid(record.tgid as i32), python));
            }
            RawRecord::Exit(record) => {
                self.tree.exited(record);
                if record.process_ended != 0 {
                    self.objects.outdate_holders();
                    self.renewed.push((Pid(record.tgid as i32), false));
                }
            }
            RawRecord::MemoryStall(record) if self.holds(record.start_ns, record.end_ns) => {
                writer.push(memory_stall_row(record, self.memory_stall_ids.next_id(), self.started));
            }
            RawRecord::Interrupt(record) if self.holds(record.start_ns, record.end_ns) => {
                writer.push(interrupt_row(record, self.interrupt_ids.next_id(), self.started));
            }
            RawRecord::Retransmit(record) if self.holds(record.header.time_ns, record.header.time_ns) => {
                if let Some(row) = retransmit_row(record) {
                    writer.push(row);
                }
            }
            // Of before the recording; and memfds come in a ring of their own, for the GPU side.
            RawRecord::MemoryStall(_)
            | RawRecord::Interrupt(_)
            | RawRecord::Retransmit(_)
            | RawRecord::Memfd(_) => {}
            RawRecord::CudaCall(record) => self.cuda_calls.push(**record),
        }
    }

    /// Whether an interval ended within the recording. (One that goes on after its end is left out.)
    fn holds(&self, start_ns: u64, end_ns: u64) -> bool {
        start_ns <= end_ns && end_ns as i64 > self.started.0 && end_ns as i64 <= self.ended.0
    }

    fn off_cpu(&mut self, record: &OffCpuRecord, writer: &mut BundleWriter) {
        // Kernel threads are recorded from the load of the programs on.
        if record.on_ns <= self.started.0 as u64 {
            return;
        }
        if record.off_ns as i64 >= self.ended.0 {
            return;
        }
        let mut row =
            off_cpu_row(record, self.off_cpu_ids.next_id(), self.started, &self.requests, &mut self.symbols);
        open_after(&mut row, self.ended);
        let now = row.on_ns.unwrap_or(row.off_ns);
        if record.flags & off_cpu_flags::KERNEL_THREAD != 0 {
            self.tree.met(row.pid, row.tid, &Text::default(), true, now);
        }
        let waker = &record.waker;
        if row.waker_tid.is_some() && matches!(waker.kind, TASK | NET) {
            let comm = comm_text(&waker.comm);
            self.tree.met(Pid(waker.tgid as i32), Tid(waker.tid as i32), &comm, false, now);
        }
        if let (Some(pid), Some(tid), Some(comm)) = (row.culprit_pid, row.culprit_tid, &row.culprit_comm) {
            self.tree.met(pid, tid, comm, false, now);
        }
        writer.push(row);
    }

    /// The wait is known up to its wake-up; from then until the thread was found running, nobody knows when it came back.
    fn returned_unseen(&mut self, record: &OffCpuRecord, writer: &mut BundleWriter) {
        let preempted = record.flags & off_cpu_flags::PREEMPTED != 0;
        let woken = if preempted { 0 } else { record.woken_ns };
        let known = if woken == 0 { record.off_ns } else { woken.max(record.off_ns) };
        if known > record.off_ns {
            let flags = record.flags & !off_cpu_flags::RETURN_UNSEEN;
            self.off_cpu(&OffCpuRecord { flags, on_ns: known, ..*record }, writer);
        }
        self.off_cpu(&OffCpuRecord { off_ns: known, woken_ns: known, ..*record }, writer);
    }

    /// Ends a batch: makes the rows that waited.
    pub fn settle(&mut self, now: MonoNs, writer: &mut BundleWriter) {
        let calls = std::mem::take(&mut self.calls);
        let wanted = calls.iter().map(|call| (Pid(call.tgid as i32), &call.object));
        self.objects.refresh_holders(wanted, &self.tree, now);
        for call in &calls {
            if call.start_ns as i64 >= self.ended.0 {
                continue;
            }
            let id = self.syscall_ids.next_id();
            let mut row = syscall_row(call, id, self.started, &mut self.objects, &self.tree);
            if row.end_ns.is_some_and(|end| end > self.ended) {
                row.end_ns = None;
                row.result = None;
                row.blocked_ns = row.blocked_ns.min(self.ended - row.start_ns);
            }
            writer.push(row);
        }
        self.calls = calls;
        self.calls.clear();
        for (pid, look) in std::mem::take(&mut self.renewed) {
            self.objects.renew_memory(pid, look, now);
        }
        let (processes, threads) = self.tree.take_ended();
        writer.append(processes);
        writer.append(threads);
    }

    /// Ends the recording: what is still open, and who still lives. States of threads that ended meanwhile are left out:
    /// their exit was recorded.
    pub fn finish(&mut self, states: &[(u32, ThreadState)], now: MonoNs, writer: &mut BundleWriter) {
        self.settle(now, writer);
        let (processes, threads) = self.tree.living();
        for (tid, state) in states {
            let tid = Tid(*tid as i32);
            if !self.tree.lives(tid) {
                continue;
            }
            if state.syscall_nr >= 0 && (state.syscall_start_ns as i64) < self.ended.0 {
                let id = self.syscall_ids.next_id();
                if let Some(row) = still_running_row(tid, state, id, now, &mut self.objects, &self.tree) {
                    writer.push(row);
                }
            }
            if state.off_ns != 0 && (state.off_ns as i64) < self.ended.0 {
                let id = self.off_cpu_ids.next_id();
                if let Some(mut row) =
                    still_off_row(tid, state, id, self.started, &self.requests, &mut self.symbols)
                {
                    open_after(&mut row, self.ended);
                    writer.push(row);
                }
            }
        }
        writer.append(processes);
        writer.append(threads);
    }
}

/// Makes what of an interval lies after `ended` unknown.
fn open_after(row: &mut OffCpu, ended: MonoNs) {
    if row.on_ns.is_some_and(|on| on > ended) {
        row.on_ns = None;
        row.on_cpu = None;
        row.culprit_pid = None;
        row.culprit_tid = None;
        row.culprit_comm = None;
        row.culprit_ns = None;
        row.others_ns = DurationNs(0);
        row.idle_ns = DurationNs(0);
        row.allowed_cpus = None;
        row.forbidden_idle_ns = None;
    }
    if row.woken_ns.is_some_and(|woken| woken > ended) {
        row.woken_ns = None;
        row.waker_kind = None;
        row.waker_pid = None;
        row.waker_tid = None;
        row.waker_comm = None;
        row.waker_syscall = None;
        row.waker_object = None;
        row.request_id = None;
    }
}
