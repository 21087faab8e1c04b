//! One process with a ring.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use tracer_abi::shim::{
    ClockKind, Collection, Next, RecordKind, RingFault, RingHeader, SharedText, ShimState,
};

use super::bounds::Numbers;
use super::claim::{self, Claim};
use super::clock::{Clocks, ProcessClock, monotonic_offset_ns};
use super::devices::Devices;
use super::discover::candidates;
use super::held::Waiting;
use super::launches::Launches;
use super::losses::{Losses, loss};
use super::mapping::{Ring, identity};
use super::modes::{Modes, Why};
use super::names::Names;
use super::nccl::Nccl;
use super::row::GpuRow;
use super::threads::Threads;
use crate::attribute::timeline::is_collective;
use crate::event::{DurationNs, MonoNs, Pid, Text};
use crate::store::meta::GpuProcess;

/// Records of one process per drain: a process that writes faster than we read must not keep us from the others.
const MOST_RECORDS: usize = 1 << 20;

/// A shim that has not flushed for so long may be gone.
const ABANDONED_AFTER: DurationNs = DurationNs(1_000_000_000);

/// What all processes share.
pub(super) struct Shared {
    pub(super) token: u64,
    pub(super) clocks: Clocks,
    pub(super) devices: Devices,
    pub(super) next_op: i64,
    pub(super) next_api: i64,
    pub(super) next_sync: i64,
    pub(super) next_overhead: i64,
    pub(super) next_marker: i64,
    /// Graphs that processes launched before their shims were claimed.
    pub(super) graph_launches: BTreeMap<Pid, u64>,
    /// What is to be collected, and why.
    pub(super) wanted: (Collection, String),
}

impl Shared {
    /// The next numbers of rows that are made of the driver's calls.
    pub(super) fn numbers(&mut self) -> Numbers<'_> {
        Numbers { next_op: &mut self.next_op, next_api: &mut self.next_api }
    }
}

/// One process with a ring.
pub(super) struct Process {
    pub(super) pid: Pid,
    pub(super) ring: Ring,
    claim: Claim,
    /// What is read belongs to our session.
    pub(super) ours: bool,
    pub(super) clock: ProcessClock,
    pub(super) names: Names,
    /// Names of marked ranges, apart: a program can make any number of them.
    pub(super) marker_names: Names,
    pub(super) nccl: Nccl,
    pub(super) threads: Threads,
    pub(super) launches: Launches,
    pub(super) waiting: Waiting,
    losses: Losses,
    modes: Modes,
    /// Everything that was complete then had been read by the last drain.
    pub(super) read_until: MonoNs,
    /// GPU records and calls that came through.
    pub(super) records: u64,
    /// Marked ranges that came through.
    pub(super) marks: u64,
    /// The flushes counted when they last grew, and when that was.
    flushes: (u64, MonoNs),
    /// It is dead, or its ring is broken: nothing more will come.
    pub(super) ended: bool,
}

impl Process {
    pub(super) fn new(pid: Pid, ring: Ring, shared: &Shared) -> Self {
        let header = ring.header();
        let graphs = shared.graph_launches.get(&pid).copied().unwrap_or(0);
        header.reader.graph_launches.store(graphs, Relaxed);
        // What came from the start is not thinned out by a wish that is there before its reader.
        header.reader.wanted.store(shared.wanted.0.to_raw(), Relaxed);
        let claim = Claim::new(header, shared.token);
        let now = shared.clocks.now();
        let mut losses = Losses::new(header, now);
        let ours = matches!(claim, Claim::Held { from_start: true });
        if ours {
            losses.count_from_zero();
        }
        let clock = ProcessClock { kind: ClockKind::Unknown, monotonic_offset_ns: monotonic_offset_ns(pid) };
        let created = clock.monotonic(header.created_ns.load(Relaxed));
        Self {
            pid,
            threads: Threads::new(pid, ring.nested),
            claim,
            ours,
            clock,
            names: Names::default(),
            marker_names: Names::default(),
            nccl: Nccl::default(),
            launches: Launches::default(),
            waiting: Waiting::default(),
            losses,
            modes: Modes::default(),
            read_until: if ours { created.min(now) } else { now },
            records: 0,
            marks: 0,
            flushes: (0, now),
            ended: false,
            ring,
        }
    }

    /// The head of its ring.
    pub(super) fn header(&self) -> &RingHeader {
        self.ring.header()
    }

    /// Whether the ring is ours to read.
    pub(super) fn is_held(&self) -> bool {
        matches!(self.claim, Claim::Held { .. })
    }

    /// Whether its shim collects for us.
    pub(super) fn is_collecting(&self) -> bool {
        self.is_held() && self.header().state.load(Acquire) == ShimState::Collecting as u32
    }

    /// Reads what is there.
    pub(super) fn drain(&mut self, shared: &mut Shared, sink: &mut impl FnMut(GpuRow)) {
        // Before anything is read: what a process wrote before its death is all there when it is found dead.
        let now = shared.clocks.now();
        let dead = self.ring.is_dead() || self.is_abandoned(now);
        if !self.is_held() {
            let (claim, header) = (&mut self.claim, self.ring.header());
            if !claim.advance(header, shared.token) {
                self.ended = dead;
                return;
            }
            if self.ring.reopen().is_err() {
                self.ended = true;
                return;
            }
            self.losses = Losses::new(self.ring.header(), now);
            self.read_until = now;
        }
        if self.header().reader.token.load(Acquire) != shared.token {
            let reason = Text::from("another recorder took the process over");
            sink(loss("shim.ring", reason, self.pid, self.read_until, now, 1));
            self.ended = true;
            return self.release_waiting(true, now, shared, sink);
        }
        self.ring.header().reader.beats.fetch_add(1, Relaxed);
        self.ring.header().reader.wanted.store(shared.wanted.0.to_raw(), Relaxed);
        self.clock.kind = ClockKind::from_raw(self.header().clock.load(Acquire));
        self.modes.look(self.ring.header(), self.clock, &shared.wanted.1);
        // Read first: what was complete at this flush is in the ring by now.
        let flushed = self.clock.monotonic(self.header().flushed_ns.load(Acquire)).min(now);

        if let Err(fault) = self.read_all(dead, now, shared, sink) {
            let reason = Text::from(format!("the ring is broken: {fault}"));
            sink(loss("shim.ring", reason, self.pid, self.read_until, now, 1));
            self.ended = true;
        }
        if self.ours {
            self.losses.tell(self.ring.header(), self.pid, self.read_until, now, sink);
        }
        self.read_until = self.read_until.max(flushed);
        if dead {
            self.tell_unflushed(now, sink);
            self.ended = true;
        }
        self.release_waiting(self.ended, now, shared, sink);
    }

    /// Hands out what still waits, and lets the shim stop.
    pub(super) fn finish(&mut self, shared: &mut Shared, sink: &mut impl FnMut(GpuRow)) {
        let now = shared.clocks.now();
        self.release_waiting(true, now, shared, sink);
        self.tell_pause(None, Some(now), sink);
        claim::release(self.ring.header(), shared.token);
    }

    /// Whether it only marks ranges, and has not come to CUDA.
    pub(super) fn only_marks(&self) -> bool {
        let header = self.header();
        self.marks > 0
            && header.cupti_version.load(Relaxed) == 0
            && header.state.load(Acquire) != ShimState::Refused as u32
    }

    /// What `meta.json` says of it.
    pub(super) fn describe(&self) -> GpuProcess {
        let header = self.header();
        let state = ShimState::from_raw(header.state.load(Acquire));
        let refused = match (state, self.is_held()) {
            (Some(ShimState::Refused), _) => Some(text(&header.refusal)),
            (_, false) => Some("another recorder reads this process".to_owned()),
            (None, _) => Some("its shim is in a state that this gtrace does not know".to_owned()),
            _ => None,
        };
        GpuProcess {
            pid: self.pid.0,
            cupti_version: header.cupti_version.load(Relaxed),
            cupti_path: text(&header.cupti_path),
            driver_version: header.driver_version.load(Relaxed),
            clock: match ClockKind::from_raw(header.clock.load(Relaxed)) {
                ClockKind::Unknown => "unknown",
                ClockKind::Monotonic => "monotonic",
                ClockKind::Realtime => "realtime",
            }
            .to_owned(),
            refused,
            records: self.records,
            modes: self.modes.changes().to_vec(),
        }
    }

    /// Whether the process has become another program (exec), which left the ring behind: nobody flushes, and it has it
    /// open no more. A stopped process has; one that closed it (as daemons do) flushes.
    fn is_abandoned(&mut self, now: MonoNs) -> bool {
        let flushes = self.header().flushes.load(Relaxed);
        let collecting = self.header().state.load(Acquire) == ShimState::Collecting as u32;
        if flushes != self.flushes.0 || !collecting {
            self.flushes = (flushes, now);
            return false;
        }
        if now - self.flushes.1 < ABANDONED_AFTER {
            return false;
        }
        self.flushes.1 = now;
        let ring = self.ring.identity;
        !candidates(self.pid).into_iter().any(|fd| identity(self.pid, fd) == Some(ring))
    }

    fn release_waiting(
        &mut self,
        all: bool,
        now: MonoNs,
        shared: &mut Shared,
        sink: &mut impl FnMut(GpuRow),
    ) {
        let residual = shared.clocks.residual_ns();
        let (launches, devices) = (&self.launches, &mut shared.devices);
        let nccl = &mut self.nccl;
        let (resumed, mut first) = (self.modes.resumed(), None);
        let mut seen = |row: GpuRow, device: u32| {
            let collectives = match &row {
                GpuRow::Op(op) if is_collective(&op.name) => nccl.collectives(op, device, launches),
                _ => Vec::new(),
            };
            if let (GpuRow::Op(op), Some(resumed)) = (&row, resumed)
                && launches.get(op.correlation_id.0 as u32).is_some_and(|launch| launch >= resumed)
            {
                first = Some(first.map_or(op.start_ns, |first: MonoNs| first.min(op.start_ns)));
            }
            sink(row);
            for row in collectives {
                sink(GpuRow::Collective(row));
            }
        };
        self.waiting.release(self.pid, launches, devices, residual, now, all, &mut shared.next_op, &mut seen);
        self.tell_pause(first, None, sink);
    }

    /// Says what was not collected, once its end is known.
    fn tell_pause(&mut self, first: Option<MonoNs>, end: Option<MonoNs>, sink: &mut impl FnMut(GpuRow)) {
        let Some((since, until, why)) = self.modes.take_pause(first, end) else { return };
        let (source, reason) = match why {
            Why::Paused => ("gpu.paused", "GPU work was not collected in this time, as asked for"),
            Why::Taken => ("cupti.taken", "another client of CUPTI had the records in this time"),
        };
        sink(loss(source, reason.into(), self.pid, since, until, u64::from(why == Why::Taken)));
    }

    /// Another client of CUPTI has had the records since `since`.
    pub(super) fn taken_over(&mut self, since: MonoNs) {
        self.modes.taken(since);
    }

    /// Launches that were counted, and records of any kind that came.
    pub(super) fn counted(&self) -> (u64, u64) {
        (self.header().launches.load(Relaxed), self.records)
    }

    /// A process that died without its last flush took what CUPTI still held with it.
    fn tell_unflushed(&self, now: MonoNs, sink: &mut impl FnMut(GpuRow)) {
        let header = self.header();
        let collecting = header.state.load(Acquire) == ShimState::Collecting as u32;
        if collecting && self.ours {
            let buffers = header.outstanding_buffers.load(Relaxed).max(1);
            let reason = Text::from("the process died before its last flush");
            sink(loss("cupti.unflushed", reason, self.pid, self.read_until, now, buffers.into()));
        }
    }

    fn read_all(
        &mut self,
        dead: bool,
        now: MonoNs,
        shared: &mut Shared,
        sink: &mut impl FnMut(GpuRow),
    ) -> Result<(), RingFault> {
        let mut lost = 0;
        for _ in 0..MOST_RECORDS {
            match self.ring.consumer().take()? {
                Next::Record(kind) => {
                    if self.ours || kind == RecordKind::Session {
                        self.read(kind, now, shared, sink);
                    }
                }
                Next::Unknown(_) => {}
                Next::Empty => break,
                // Written by a thread that may go on at any moment, unless it is dead.
                Next::Pending if !dead => break,
                Next::Pending => {
                    lost += 1;
                    if !self.ring.consumer().step_over_pending()? {
                        break;
                    }
                }
            }
        }
        if lost > 0 {
            let reason = Text::from("records that the process was writing when it died");
            sink(loss("shim.ring", reason, self.pid, self.read_until, now, lost));
        }
        Ok(())
    }
}

fn text<const N: usize>(shared: &SharedText<N>) -> String {
    let mut bytes = [0; N];
    let length = shared.get(&mut bytes);
    String::from_utf8_lossy(&bytes[..length]).into_owned()
}
