//! The tracks of block devices, of overhead and of losses.

use std::collections::BTreeMap;

use super::Pass;
use super::ahead::Ahead;
use super::counters::{Load, Series};
use super::order::nested;
use super::states::Requests;
use crate::event::{MonoNs, Text};
use crate::export::ExportError;
use crate::export::sink::{Anchor, Arrow, Describe, Details, Slice};
use crate::export::tracks::{Counter, Group, Row};
use crate::store::schema::{BlockIo, CudaOverhead, Loss};

/// A block device's counters on their way through the recording.
struct Device {
    load: Load,
    depth: Series,
    throughput: Series,
}

impl Pass<'_> {
    /// Writes the requests, arrows from those on chains to the wake-ups that they made, and counters of each device.
    pub(super) fn block_io(&mut self, requests: &Requests) -> Result<(), ExportError> {
        let mut devices: BTreeMap<Text, Device> = BTreeMap::new();
        let (mut depth, mut throughput) = (Vec::new(), Vec::new());
        for io in Ahead::<BlockIo>::scan(self.bundle)? {
            let io = io?;
            if self.counts_on() {
                let device = devices.entry(io.device.clone()).or_insert_with(|| {
                    let row = |counter| Row::Counter(counter, Some(io.device.clone()));
                    Device {
                        load: Load::new(self.bins()),
                        depth: Series::new(Group::BlockDevices, row(Counter::Depth)),
                        throughput: Series::new(Group::BlockDevices, row(Counter::Throughput)),
                    }
                });
                device.load.request(&io, &mut depth, &mut throughput);
                self.steps(&mut device.depth, depth.drain(..))?;
                self.steps(&mut device.throughput, throughput.drain(..))?;
            }
            let end = io.completed_ns.max(io.queued_ns);
            let wakes = requests.get(&io.request_id);
            let touches = self.selection.touches(io.queued_ns, end);
            let keep = wakes.is_some() || self.keeps::<BlockIo>(io.request_id.0, touches, || false);
            if self.counts.row::<BlockIo>(keep) {
                self.request(&io, end, wakes.map_or(&[], Vec::as_slice))?;
            }
        }
        for mut device in devices.into_values() {
            device.load.finish(&mut depth, &mut throughput);
            self.steps(&mut device.depth, depth.drain(..))?;
            self.steps(&mut device.throughput, throughput.drain(..))?;
            self.last_step(&mut device.depth)?;
            self.last_step(&mut device.throughput)?;
        }
        Ok(())
    }

    fn request(&mut self, io: &BlockIo, end: MonoNs, wakes: &[Anchor]) -> Result<(), ExportError> {
        let row = Row::Device(io.device.clone());
        let track = self.place_apart(Group::BlockDevices, &row, io.queued_ns, end)?;
        let issued = io.issued_ns.clamp(io.queued_ns, end);
        let what = format!("{} {} KiB", io.op, io.bytes / 1024);
        let parts = [
            (io.queued_ns, issued, "queued: ", "thread_state_runnable"),
            (issued, end, "", "thread_state_iowait"),
        ];
        for (start, end, before, color) in parts {
            if start < end || before.is_empty() {
                self.slice(&Slice {
                    track,
                    start,
                    end,
                    name: &format!("{before}{what}"),
                    category: "block",
                    color: Some(color),
                    launch: None,
                    details: io,
                })?;
            }
        }
        // Within the slice: its end belongs to what comes next.
        let from = Anchor { track, time: MonoNs(end.0.saturating_sub(1).max(issued.0)) };
        wakes.iter().try_for_each(|to| self.arrow(Arrow::Wake, from, *to))
    }

    /// Writes what CUPTI and the driver needed for themselves.
    pub(super) fn overhead(&mut self) -> Result<(), ExportError> {
        for overhead in nested(self.bundle.scan::<CudaOverhead>()?, |row| (row.start_ns, row.end_ns)) {
            let overhead = overhead?;
            let (start, end) = (overhead.start_ns, overhead.end_ns.max(overhead.start_ns));
            let keep = self.keeps::<CudaOverhead>(overhead.id.0, self.selection.touches(start, end), || true);
            if !self.counts.row::<CudaOverhead>(keep) {
                continue;
            }
            let track = self.place(Group::Process(overhead.pid.0), &Row::Overhead, start, end)?;
            self.slice(&Slice {
                track,
                start,
                end,
                name: &overhead.kind,
                category: "overhead",
                color: Some("black"),
                launch: None,
                details: &overhead,
            })?;
        }
        Ok(())
    }

    /// Writes in which intervals events were lost.
    pub(super) fn losses(&mut self) -> Result<(), ExportError> {
        for loss in nested(self.bundle.scan::<Loss>()?, |row| (row.start_ns, row.end_ns)) {
            let loss = loss?;
            let (start, end) = (loss.start_ns, loss.end_ns.max(loss.start_ns));
            if !self.counts.row::<Loss>(self.selection.touches(start, end)) {
                continue;
            }
            let track = self.place(Group::Losses, &Row::Source(loss.source.clone()), start, end)?;
            self.slice(&Slice {
                track,
                start,
                end,
                name: &format!("{} lost: {}", loss.count, loss.reason),
                category: "loss",
                color: Some("bad"),
                launch: None,
                details: &loss,
            })?;
        }
        Ok(())
    }
}

impl Describe for BlockIo {
    fn describe(&self, to: &mut dyn Details) {
        to.integer("request", self.request_id.0);
        to.text_if("file", self.file.as_deref());
        to.text_if("by", self.comm.as_deref());
        to.integer_if("tid", self.tid.map(|tid| i64::from(tid.0)));
        to.integer("sector", self.sector);
        to.integer("bytes", self.bytes);
        to.integer("in_flight", i64::from(self.in_flight));
        to.integer("error", i64::from(self.error));
    }
}

impl Describe for CudaOverhead {
    fn describe(&self, to: &mut dyn Details) {
        to.integer_if("tid", self.tid.map(|tid| i64::from(tid.0)));
        to.integer("row", self.id.0);
    }
}

impl Describe for Loss {
    fn describe(&self, to: &mut dyn Details) {
        to.integer("count", self.count);
        to.integer_if("pid", self.pid.map(|pid| i64::from(pid.0)));
    }
}
