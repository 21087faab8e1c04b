//! The loop: wait, drain, write, until something ends the recording.

use std::path::PathBuf;
use std::process::Child;
use std::time::Duration;

use super::command::{hand_on, wait_for_command};
use super::gpu_link::GpuLink;
use super::quotas::Quotas;
use super::{Notice, Recorded};
use crate::event::{DurationNs, MonoNs, Text};
use crate::record::assembler::Assembler;
use crate::record::clocks;
use crate::record::error::RecordError;
use crate::record::losses::LossLedger;
use crate::record::priority;
use crate::record::probes::{Probes, RawRecord};
use crate::record::procfs;
use crate::record::rows::syscall_count_row;
use crate::record::signals::{ProcessHandle, Signals, wait};
use crate::record::stacks::Stacks;
use crate::store::BundleWriter;
use crate::store::schema::{Loss, Process, Thread};

/// Between two drains of the rings, at the least and at the most.
const SHORTEST: Duration = Duration::from_millis(5);
const LONGEST: Duration = Duration::from_millis(50);
/// Records a drain should find: a tenth of what the ring holds.
const WANTED_RECORDS: usize = 12_000;
/// Records of one drain so few that the recorder may give way again.
const AT_EASE: usize = 15_000;
/// Records taken before the store and signals are looked at again.
const BATCH: usize = 8_192;
/// Losses and counts are taken so often.
const SECOND_NS: i64 = 1_000_000_000;
/// Rings are looked for once more after so long.
const EARLY_NS: i64 = 200_000_000;
/// The living processes and threads are written so often, for the case that the recorder is killed.
const SNAPSHOT_NS: i64 = 5 * SECOND_NS;

/// A recording under way.
pub struct Session {
    probes: Probes,
    assembler: Assembler,
    stacks: Stacks,
    writer: BundleWriter,
    gpu: GpuLink,
    ledger: LossLedger,
    signals: Signals,
    handle: ProcessHandle,
    child: Option<Child>,
    quotas: Quotas,
    interval: Duration,
    next_second: MonoNs,
    next_snapshot: MonoNs,
    malformed: u64,
    /// The recorder takes an ordinary share of the CPUs for now.
    pressed: bool,
    /// The last drain did not come to the ring's end.
    behind: bool,
    /// How often rings were looked for again: once early, once after a second.
    looks: u8,
    /// CPU time taken before recording began.
    cpu_before: i64,
    /// And what the hypervisor had taken.
    stolen_before: DurationNs,
}

/// What a session is made of.
pub struct Parts {
    /// The kernel side, recording already.
    pub probes: Probes,
    /// With the tree as it was found.
    pub assembler: Assembler,
    /// The stack samples.
    pub stacks: Stacks,
    /// The bundle.
    pub writer: BundleWriter,
    /// The GPU side.
    pub gpu: GpuLink,
    /// The signals that end it.
    pub signals: Signals,
    /// The root of the tree.
    pub handle: ProcessHandle,
    /// The command, if gtrace started it.
    pub child: Option<Child>,
    /// With the groups of the processes that were there.
    pub quotas: Quotas,
}

impl Session {
    /// A session that began at `started`.
    pub fn new(parts: Parts, started: MonoNs) -> Self {
        Self {
            probes: parts.probes,
            assembler: parts.assembler,
            stacks: parts.stacks,
            writer: parts.writer,
            gpu: parts.gpu,
            ledger: LossLedger::new(started),
            signals: parts.signals,
            handle: parts.handle,
            child: parts.child,
            quotas: parts.quotas,
            interval: LONGEST,
            next_second: MonoNs(started.0 + SECOND_NS),
            next_snapshot: started,
            malformed: 0,
            pressed: false,
            behind: false,
            looks: 0,
            cpu_before: clocks::own_cpu_ns(),
            stolen_before: procfs::stolen(),
        }
    }

    /// Records until something ends it, and says what (`meta.ended`).
    pub fn run(&mut self, deadline: Option<MonoNs>, notify: &mut dyn FnMut(Notice)) -> &'static str {
        loop {
            let now = clocks::monotonic();
            let left = deadline
                .map_or(self.interval, |deadline| Duration::from_nanos((deadline - now).0.max(0) as u64));
            let woken = wait(&self.signals, Some(&self.handle), self.interval.min(left));
            let taken = self.drain();
            self.adapt(taken);
            let writer = &mut self.writer;
            self.stacks.take(&mut |samples| writer.append(samples));
            self.gpu.drain(self.assembler.tree_mut(), &mut self.writer, notify);
            let calls = self.assembler.take_cuda_calls();
            self.gpu.take_calls(&calls, self.assembler.tree_mut(), &mut self.writer);
            let now = clocks::monotonic();
            if self.looks == 0 && (self.next_second - now).0 < SECOND_NS - EARLY_NS {
                // A short command may be over before the first second is.
                self.looks = 1;
                self.gpu.scan(self.assembler.tree());
            }
            if now >= self.next_second {
                self.each_second(now, notify);
            }
            if let Err(error) = self.writer.seal_due(now) {
                return if error.is_disk_full() { "disk_full" } else { "failed" };
            }
            if woken.ended {
                return "target_exited";
            }
            if woken.signal && self.signalled() {
                return "interrupted";
            }
            if deadline.is_some_and(|deadline| now >= deadline) {
                return "duration";
            }
        }
    }

    /// Takes what is in the ring, for so long at the most: a target that makes records as fast as they are taken must not
    /// keep the loop from its other work.
    fn drain(&mut self) -> usize {
        const AT_MOST_NS: i64 = 200_000_000;
        let began = clocks::monotonic();
        let mut all = 0;
        self.behind = true;
        while (clocks::monotonic() - began).0 < AT_MOST_NS {
            let (assembler, writer) = (&mut self.assembler, &mut self.writer);
            let taken =
                self.probes.drain(BATCH, &mut |record: RawRecord<'_>| assembler.take(&record, writer));
            assembler.settle(clocks::monotonic(), writer);
            all += taken;
            if taken < BATCH {
                self.behind = false;
                break;
            }
        }
        all
    }

    fn adapt(&mut self, taken: usize) {
        // Giving way has gone too far when the ring is not emptied in time. Before events are lost.
        if self.behind && !self.pressed {
            self.pressed = true;
            priority::take_share();
        } else if self.pressed && !self.behind && taken < AT_EASE && self.ledger.lost_events() == 0 {
            self.pressed = false;
            priority::yield_to_others();
        }
        if taken > WANTED_RECORDS {
            self.interval = (self.interval / 2).max(SHORTEST);
        } else if taken < WANTED_RECORDS / 4 {
            self.interval = (self.interval * 5 / 4).min(LONGEST);
        }
    }

    fn each_second(&mut self, now: MonoNs, notify: &mut dyn FnMut(Notice)) {
        self.next_second = MonoNs(now.0 + SECOND_NS);
        self.take_losses(now);
        if let Ok(counts) = self.probes.take_syscall_counts() {
            self.writer.append(counts.iter().map(|(key, value)| syscall_count_row(key, value)).collect());
        }
        if self.looks < 2 {
            self.looks = 2;
            self.gpu.scan(self.assembler.tree());
        }
        self.gpu.inject(self.assembler.tree(), now, &mut self.probes);
        self.gpu.second(now, self.assembler.tree(), &mut self.probes, &mut self.writer, notify);
        self.writer.meta_mut().recorder_cpu_ns = clocks::own_cpu_ns() - self.cpu_before;
        self.gpu.describe(self.child.is_some(), self.writer.meta_mut());
        if now >= self.next_snapshot {
            self.next_snapshot = MonoNs(now.0 + SNAPSHOT_NS);
            let tree = self.assembler.tree_mut();
            tree.prune_outsiders(now);
            let (processes, threads) = tree.living();
            self.quotas.watch(&processes);
            self.writer.meta_mut().cpu_throttled_ns = self.quotas.throttled();
            self.writer.meta_mut().interpreters = self.assembler.interpreters().clone();
            self.writer.snapshot(processes);
            self.writer.snapshot(threads);
        }
    }

    fn take_losses(&mut self, now: MonoNs) {
        let Ok(totals) = self.probes.losses() else { return };
        let lost_before = self.ledger.lost_events();
        let mut rows = self.ledger.intervals(&totals, now);
        let malformed = self.probes.malformed();
        if malformed > self.malformed {
            rows.push(Loss {
                source: Text::from("ring.malformed"),
                reason: Text::from("records of an unknown kind or length"),
                pid: None,
                start_ns: rows.first().map_or(MonoNs(now.0 - SECOND_NS), |row| row.start_ns),
                end_ns: now,
                count: (malformed - self.malformed) as i64,
            });
            self.malformed = malformed;
        }
        self.writer.meta_mut().losses.insert("ring.malformed".to_owned(), malformed);
        if self.ledger.lost_events() > lost_before {
            // Giving way has cost events: from now on the recorder takes its share.
            priority::take_share();
        }
        self.writer.append(rows);
        self.writer.meta_mut().losses.extend(self.ledger.totals());
    }

    /// Whether the signals that came end the recording. With a command, they are the command's: the recording ends when
    /// it does.
    fn signalled(&mut self) -> bool {
        if self.child.is_some() {
            hand_on(&self.signals, &self.handle);
            return false;
        }
        let mut any = false;
        while self.signals.next().is_some() {
            any = true;
        }
        any
    }

    /// Stops the probes, takes what is left, and closes the bundle.
    pub fn finish(
        mut self,
        ending: &str,
        output: PathBuf,
        notify: &mut dyn FnMut(Notice),
    ) -> Result<Recorded, RecordError> {
        self.drain();
        let calls = self.assembler.take_cuda_calls();
        self.gpu.take_calls(&calls, self.assembler.tree_mut(), &mut self.writer);
        // The GPU side first: the host side then covers all the time that GPU records are from.
        self.gpu.finish(self.assembler.tree_mut(), &mut self.writer);
        // Probes are detached one by one, which takes a while: what happens meanwhile is half seen, and left out.
        // Not until the ring is empty: a target may fill it as fast as it is emptied.
        let ended = clocks::monotonic();
        self.drain();
        self.assembler.end_at(ended);
        self.probes.stop();
        let writer = &mut self.writer;
        self.stacks.finish(&mut |samples| writer.append(samples));
        while self.drain() >= BATCH {}
        let states = self.probes.threads().unwrap_or_default();
        self.assembler.finish(&states, ended, &mut self.writer);
        self.writer.snapshot(Vec::<Process>::new());
        self.writer.snapshot(Vec::<Thread>::new());
        if let Ok(counts) = self.probes.final_syscall_counts() {
            self.writer.append(counts.iter().map(|(key, value)| syscall_count_row(key, value)).collect());
        }
        self.take_losses(ended);
        self.writer.push(clocks::sample_realtime());
        let misses: u64 = self.probes.recursion_misses().iter().map(|(_, misses)| misses).sum();
        let mut meta = self.writer.meta_mut().clone();
        meta.cpu_throttled_ns = self.quotas.throttled();
        meta.interpreters = self.assembler.interpreters().clone();
        meta.stolen_cpu_ns = (procfs::stolen().0 - self.stolen_before.0).max(0);
        meta.ended_ns = Some(ended.0);
        ending.clone_into(&mut meta.ended);
        meta.recorder_cpu_ns = clocks::own_cpu_ns() - self.cpu_before;
        meta.losses.insert("probe.recursion".to_owned(), misses);
        meta.losses.insert("samples".to_owned(), self.stacks.lost());
        self.gpu.describe(self.child.is_some(), &mut meta);
        let events = self.assembler.events() + self.gpu.rows();
        let lost = self.ledger.lost_events() + misses + self.malformed;
        let (meta, failure) = match self.writer.finish(meta.clone()) {
            Ok(meta) => (meta, None),
            Err(error) => (meta, Some(error)),
        };
        priority::take_share();
        let command = match self.child {
            Some(child) => Some(wait_for_command(child, &self.signals, &self.handle, notify)?),
            None => None,
        };
        Ok(Recorded { output, meta, events, lost, command, failure })
    }
}
