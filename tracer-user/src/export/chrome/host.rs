//! The tracks of block devices, of overhead and of losses.

use std::io::Write;

use super::events::{Anchor, Slice};
use super::json::Object;
use super::ops::nested;
use super::states::Requests;
use super::tracks::{Group, Row};
use super::{ExportError, Pass};
use crate::event::MonoNs;
use crate::store::schema::{BlockIo, CudaOverhead, Loss};

impl<W: Write> Pass<'_, W> {
    /// Writes the requests, and arrows from those on chains to the wake-ups that they made.
    pub(super) fn block_io(&mut self, requests: &Requests) -> Result<(), ExportError> {
        for io in self.bundle.scan::<BlockIo>()? {
            let io = io?;
            let end = io.completed_ns.max(io.queued_ns);
            let wakes = requests.get(&io.request_id);
            let touches = !self.selection.is_chains_only() && self.selection.touches(io.queued_ns, end);
            let keep = wakes.is_some() || touches;
            if !self.counts.row::<BlockIo>(keep) {
                continue;
            }
            let track = self.tracks.place_apart(
                Group::BlockDevices,
                Row::Device(io.device.clone()),
                io.queued_ns,
                end,
            );
            let issued = io.issued_ns.clamp(io.queued_ns, end);
            let what = format!("{} {} KiB", io.op, io.bytes / 1024);
            let parts = [
                (io.queued_ns, issued, "queued: ", "thread_state_runnable"),
                (issued, end, "", "thread_state_iowait"),
            ];
            for (start, end, before, color) in parts {
                if start < end || before.is_empty() {
                    let name = format!("{before}{what}");
                    let args = request_args(&io);
                    let slice =
                        Slice { track, start, end, name: &name, category: "block", color: Some(color), args };
                    self.events.slice(slice).map_err(ExportError::out)?;
                }
            }
            // Within the slice: its end belongs to what comes next.
            let from = Anchor { track, time: MonoNs(end.0.saturating_sub(1).max(issued.0)) };
            for to in wakes.into_iter().flatten() {
                self.events.arrow("wake", from, *to).map_err(ExportError::out)?;
            }
        }
        Ok(())
    }

    /// Writes what CUPTI and the driver needed for themselves.
    pub(super) fn overhead(&mut self) -> Result<(), ExportError> {
        for overhead in nested(self.bundle.scan::<CudaOverhead>()?, |row| (row.start_ns, row.end_ns)) {
            let overhead = overhead?;
            let (start, end) = (overhead.start_ns, overhead.end_ns.max(overhead.start_ns));
            if !self.counts.row::<CudaOverhead>(self.selection.touches(start, end)) {
                continue;
            }
            let track = self.tracks.place(Group::Process(overhead.pid.0), Row::Overhead, start, end);
            let args = Object::default()
                .integer_if("tid", overhead.tid.map(|tid| i64::from(tid.0)))
                .integer("row", overhead.id.0);
            let slice = Slice {
                track,
                start,
                end,
                name: &overhead.kind,
                category: "overhead",
                color: Some("black"),
                args,
            };
            self.events.slice(slice).map_err(ExportError::out)?;
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
            let track = self.tracks.place(Group::Losses, Row::Source(loss.source.clone()), start, end);
            let name = format!("{} lost: {}", loss.count, loss.reason);
            let args = Object::default()
                .integer("count", loss.count)
                .integer_if("pid", loss.pid.map(|pid| i64::from(pid.0)));
            let slice = Slice { track, start, end, name: &name, category: "loss", color: Some("bad"), args };
            self.events.slice(slice).map_err(ExportError::out)?;
        }
        Ok(())
    }
}

fn request_args(io: &BlockIo) -> Object {
    Object::default()
        .integer("request", io.request_id.0)
        .text_if("file", io.file.as_deref())
        .text_if("by", io.comm.as_deref())
        .integer_if("tid", io.tid.map(|tid| i64::from(tid.0)))
        .integer("sector", io.sector)
        .integer("bytes", io.bytes)
        .integer("in_flight", i64::from(io.in_flight))
        .integer("error", i64::from(io.error))
}
