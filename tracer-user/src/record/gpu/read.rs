//! Reads the records of one process.

use tracer_abi::shim::{
    ApiDomain, ApiRecord, ClockRecord, CopyRecord, DEVICE_NAME_MAX_BYTES, DeviceRecord, GraphRecord,
    InvalidReason, InvalidRecord, KernelRecord, MARKER_NAME_MAX_BYTES, MarkerNameRecord, MarkerRecord,
    MemsetRecord, NAME_MAX_BYTES, NameRecord, NcclRecord, OverheadRecord, Record, RecordKind, SessionRecord,
    SyncRecord, WhichClock, overhead_flags,
};

use super::convert;
use super::held::{Held, Invalid, What};
use super::process::{Process, Shared};
use super::row::GpuRow;
use super::words::WORDS;
use crate::event::{DurationNs, Interval, MonoNs, RowId, Text};
use crate::store::schema::{ClockSample, GpuOp, Marker};

/// What records with times have in common.
struct Times {
    what: &'static str,
    start_ns: u64,
    end_ns: u64,
    correlation: u32,
}

macro_rules! times {
    ($what:literal, $record:ident) => {
        Times {
            what: $what,
            start_ns: $record.start_ns,
            end_ns: $record.end_ns,
            correlation: $record.correlation,
        }
    };
}

impl Process {
    /// Reads the record that was just taken. `None`: it is no row, since it is too short for its kind (a shim of this
    /// version writes none such), or its times are none, which is noted.
    pub(super) fn read(
        &mut self,
        kind: RecordKind,
        now: MonoNs,
        shared: &mut Shared,
        sink: &mut impl FnMut(GpuRow),
    ) -> Option<()> {
        match kind {
            RecordKind::Kernel | RecordKind::Copy | RecordKind::Memset | RecordKind::Graph => {
                self.read_work(kind, now, shared)
            }
            RecordKind::Api => self.read_api(now, shared, sink),
            RecordKind::Sync => self.read_sync(now, shared, sink),
            RecordKind::Overhead => self.read_overhead(now, shared, sink),
            RecordKind::Name => self.read_name(),
            RecordKind::MarkerName => self.read_marker_name(),
            RecordKind::Marker => self.read_marker(now, shared, sink),
            RecordKind::Nccl => {
                let record: NcclRecord = self.taken()?;
                // Of a communicator from before the recording no time is told.
                let time = self.own_interval(record.start_ns, record.end_ns, now).unwrap_or_default();
                self.nccl.add(&record, time);
                Some(())
            }
            RecordKind::Device => self.read_device(shared),
            RecordKind::Session => {
                let record: SessionRecord = self.taken()?;
                self.ours |= record.token == shared.token;
                Some(())
            }
            RecordKind::Clock => {
                let row = self.clock_row(self.taken()?)?;
                sink(GpuRow::Clock(row));
                Some(())
            }
            RecordKind::Invalid => {
                let record = self.taken()?;
                self.hold_invalid(&record, now, shared);
                Some(())
            }
            // No table has a place for them yet.
            RecordKind::Context | RecordKind::Stream => None,
        }
    }

    fn taken<R: Record>(&self) -> Option<R> {
        self.ring.taken().record()
    }

    fn read_work(&mut self, kind: RecordKind, now: MonoNs, shared: &mut Shared) -> Option<()> {
        let pid = self.pid;
        let (device, op) = match kind {
            RecordKind::Kernel => {
                let record: KernelRecord = self.taken()?;
                let time = self.interval(&times!("kernel", record), now, shared)?;
                let name = self.names.get(record.name);
                (record.device, convert::kernel(pid, &record, name, time))
            }
            RecordKind::Copy => {
                let record: CopyRecord = self.taken()?;
                let time = self.interval(&times!("memcpy", record), now, shared)?;
                (record.device, convert::copy(pid, &record, time))
            }
            RecordKind::Memset => {
                let record: MemsetRecord = self.taken()?;
                let time = self.interval(&times!("memset", record), now, shared)?;
                (record.device, convert::memset(pid, &record, time))
            }
            _ => {
                let record: GraphRecord = self.taken()?;
                let time = self.interval(&times!("graph", record), now, shared)?;
                (record.device, convert::whole_graph(pid, &record, time))
            }
        };
        self.hold(device, op, now);
        Some(())
    }

    fn read_api(&mut self, now: MonoNs, shared: &mut Shared, sink: &mut impl FnMut(GpuRow)) -> Option<()> {
        let record: ApiRecord = self.taken()?;
        let domain = ApiDomain::from_raw(record.domain)?;
        let time = self.interval(&times!("api", record), now, shared)?;
        self.launches.add(record.correlation, time.start, record.thread);
        let tid = self.threads.resolve(record.thread);
        sink(GpuRow::Api(convert::api(shared.next_api, self.pid, tid, domain, &record, time)));
        shared.next_api += 1;
        self.records += 1;
        Some(())
    }

    fn read_sync(&mut self, now: MonoNs, shared: &mut Shared, sink: &mut impl FnMut(GpuRow)) -> Option<()> {
        let record: SyncRecord = self.taken()?;
        let time = self.interval(&times!("sync", record), now, shared)?;
        sink(GpuRow::Sync(convert::sync(shared.next_sync, self.pid, &record, time)));
        shared.next_sync += 1;
        self.records += 1;
        Some(())
    }

    fn read_overhead(
        &mut self,
        now: MonoNs,
        shared: &mut Shared,
        sink: &mut impl FnMut(GpuRow),
    ) -> Option<()> {
        let record: OverheadRecord = self.taken()?;
        let time = self.interval(&times!("overhead", record), now, shared)?;
        let names_thread = record.flags & overhead_flags::THREAD != 0;
        let tid = names_thread.then(|| self.threads.resolve(record.thread));
        sink(GpuRow::Overhead(convert::overhead(shared.next_overhead, self.pid, tid, &record, time)));
        shared.next_overhead += 1;
        Some(())
    }

    fn read_name(&mut self) -> Option<()> {
        let record: NameRecord = self.taken()?;
        let length = (record.length as usize).min(NAME_MAX_BYTES);
        self.names.define(record.hash, self.ring.taken().tail::<NameRecord>(length), record.truncated != 0);
        Some(())
    }

    fn read_marker_name(&mut self) -> Option<()> {
        let record: MarkerNameRecord = self.taken()?;
        let length = (record.length as usize).min(MARKER_NAME_MAX_BYTES);
        let name = self.ring.taken().tail::<MarkerNameRecord>(length);
        self.marker_names.define(record.hash, name, record.truncated != 0);
        Some(())
    }

    fn read_marker(&mut self, now: MonoNs, shared: &mut Shared, sink: &mut impl FnMut(GpuRow)) -> Option<()> {
        let record: MarkerRecord = self.taken()?;
        let time = self.own_interval(record.start_ns, record.end_ns, now)?;
        let name = |hash, without: &Text| {
            if hash == 0 {
                without.clone()
            } else {
                self.marker_names.find(hash).unwrap_or(&WORDS.unnamed).clone()
            }
        };
        let (domain, name) = (name(record.domain, &WORDS.nvtx), name(record.name, &WORDS.unnamed));
        let tid = self.threads.resolve(record.thread);
        let id = RowId(shared.next_marker);
        shared.next_marker += 1;
        self.marks += 1;
        let (start_ns, end_ns) = (time.start, time.end);
        sink(GpuRow::Marker(Marker { id, pid: self.pid, tid, domain, name, start_ns, end_ns }));
        Some(())
    }

    /// Times of the process's own CLOCK_MONOTONIC. What is none is left out: it hides no work.
    fn own_interval(&self, start_ns: u64, end_ns: u64, now: MonoNs) -> Option<Interval> {
        let (start, end) = (self.clock.monotonic(start_ns), self.clock.monotonic(end_ns));
        // The process goes on while its ring is read: what has just ended is later than the beginning of the reading.
        let latest = now + DurationNs(10_000_000_000);
        (start.0 > 0 && start <= end && end <= latest).then_some(Interval { start, end })
    }

    fn read_device(&mut self, shared: &mut Shared) -> Option<()> {
        let record: DeviceRecord = self.taken()?;
        let length = (record.name_length as usize).min(DEVICE_NAME_MAX_BYTES);
        shared.devices.describe(self.pid, &record, self.ring.taken().tail::<DeviceRecord>(length));
        Some(())
    }

    fn hold(&mut self, device: u32, op: GpuOp, now: MonoNs) {
        self.records += 1;
        let correlation = op.correlation_id.0 as u32;
        self.waiting.add(now, Held { correlation, device, what: What::Op(Box::new(op)) });
    }

    /// The times of a record on our clock; `None`, and a note of it, if they are none.
    fn interval(&mut self, times: &Times, now: MonoNs, shared: &mut Shared) -> Option<Interval> {
        let start = shared.clocks.convert(times.start_ns, self.clock);
        let end = shared.clocks.convert(times.end_ns, self.clock);
        if let (Some(start), Some(end)) = (start, end)
            && start <= end
        {
            return Some(Interval { start, end });
        }
        let reason = Text::from(format!("{}: its times are none, or lie in the future", times.what));
        let invalid = Invalid { reason, after: self.read_until, before: now };
        self.waiting
            .add(now, Held { correlation: times.correlation, device: 0, what: What::Invalid(invalid) });
        None
    }

    /// CUPTI's own broken records. Their work was after their launch and before the shim read them, or before their
    /// end where that is a time.
    fn hold_invalid(&mut self, record: &InvalidRecord, now: MonoNs, shared: &mut Shared) {
        let what = match record.kind {
            10 => "kernel",
            1 | 22 => "memcpy",
            2 => "memset",
            4 | 5 => "api",
            38 => "sync",
            17 => "overhead",
            51 => "graph",
            _ => "record",
        };
        let known = InvalidReason::from_raw(record.reason);
        let reason = match known {
            Some(InvalidReason::Untimed) => "start and end are 0",
            Some(InvalidReason::Unfinished) => "end is 0",
            Some(InvalidReason::NoStart) => "start is 0",
            Some(InvalidReason::EndBeforeStart) => "end lies before start",
            Some(InvalidReason::Truncated) => "cut off",
            None => "invalid",
        };
        let mut before = self.clock.monotonic(record.seen_ns).min(now);
        if known == Some(InvalidReason::NoStart)
            && let Some(end) = shared.clocks.convert(record.end_ns, self.clock)
        {
            before = before.min(end);
        }
        let invalid = Invalid { reason: format!("{what}: {reason}").into(), after: self.read_until, before };
        self.waiting
            .add(now, Held { correlation: record.correlation, device: 0, what: What::Invalid(invalid) });
    }

    fn clock_row(&self, record: ClockRecord) -> Option<ClockSample> {
        let clock = match record.which {
            which if which == WhichClock::Realtime as u64 => &WORDS.realtime,
            which if which == WhichClock::Cupti as u64 => &WORDS.cupti,
            _ => return None,
        };
        Some(ClockSample {
            before_ns: self.clock.monotonic(record.before_ns),
            other_ns: i64::try_from(record.other_ns).ok()?,
            after_ns: self.clock.monotonic(record.after_ns),
            clock: clock.clone(),
            pid: Some(self.pid),
        })
    }
}
