//! The tracks of streams, and how busy a GPU is.

use std::collections::{BTreeMap, HashMap};

use super::Pass;
use super::ahead::Ahead;
use super::counters::{Busy, Series};
use super::order::nested;
use crate::event::DeviceId;
use crate::export::ExportError;
use crate::export::select::Detail;
use crate::export::sink::{Anchor, Describe, Details, Launch, Slice};
use crate::export::tracks::{Counter, Group, Row};
use crate::store::schema::{BlockIo, CudaApi, CudaOverhead, GpuOp, OffCpu, Syscall};

/// The first op of each launch that is shown.
pub type Launches = HashMap<Launch, Anchor>;

impl Pass<'_> {
    /// Writes the ops.
    pub(super) fn ops(&mut self) -> Result<Launches, ExportError> {
        let mut launches = Launches::new();
        let mut busy: BTreeMap<DeviceId, (Busy, Series)> = BTreeMap::new();
        let mut steps = Vec::new();
        for op in nested(Ahead::<GpuOp>::scan(self.bundle)?, |op| (op.start_ns, op.end_ns)) {
            let op = op?;
            if self.counts_on() {
                let (busy, series) = busy.entry(op.device).or_insert_with(|| {
                    let row = Row::Counter(Counter::Busy, None);
                    (Busy::new(self.bins()), Series::new(Group::Gpu(op.device.0), row))
                });
                busy.op(op.start_ns, op.end_ns, &mut steps);
                self.steps(series, steps.drain(..))?;
            }
            let end = op.end_ns.max(op.start_ns);
            let keep = self.keeps::<GpuOp>(op.op_id.0, self.selection.touches(op.start_ns, end), || true);
            if !self.counts.row::<GpuOp>(keep) {
                continue;
            }
            let row = Row::Stream { pid: op.pid.0, context: op.context.0, stream: op.stream.0 };
            let (start, end) = self.selection.clip(op.start_ns, end);
            let track = self.place(Group::Gpu(op.device.0), &row, start, end)?;
            let mut launch = None;
            if start == op.start_ns {
                let key = Launch { pid: op.pid, correlation: op.correlation_id };
                launches.entry(key).or_insert_with(|| {
                    launch = Some(key);
                    Anchor { track, time: start }
                });
            }
            let color = (&*op.kind != "kernel").then_some("rail_idle");
            self.slice(&Slice {
                track,
                start,
                end,
                name: &op.name,
                category: "gpu",
                color,
                launch,
                details: &op,
            })?;
        }
        for (mut busy, mut series) in busy.into_values() {
            busy.finish(&mut steps);
            self.steps(&mut series, steps.drain(..))?;
            self.last_step(&mut series)?;
        }
        Ok(launches)
    }

    /// Counts what is left out where only gaps are wanted.
    pub(super) fn skip_the_rest(&mut self) -> Result<(), ExportError> {
        debug_assert_eq!(self.selection.detail(), Detail::Gaps);
        self.counts.skipped::<GpuOp>(self.bundle.count::<GpuOp>()?);
        self.counts.skipped::<CudaApi>(self.bundle.count::<CudaApi>()?);
        self.counts.skipped::<Syscall>(self.bundle.count::<Syscall>()?);
        self.counts.skipped::<OffCpu>(self.bundle.count::<OffCpu>()?);
        self.counts.skipped::<BlockIo>(self.bundle.count::<BlockIo>()?);
        self.counts.skipped::<CudaOverhead>(self.bundle.count::<CudaOverhead>()?);
        Ok(())
    }
}

impl Describe for GpuOp {
    fn describe(&self, to: &mut dyn Details) {
        let mut size = |key, x: Option<i32>, y: Option<i32>, z: Option<i32>| {
            if let Some(x) = x {
                to.text(key, &format!("{x} × {} × {}", y.unwrap_or(1), z.unwrap_or(1)));
            }
        };
        size("grid", self.grid_x, self.grid_y, self.grid_z);
        size("block", self.block_x, self.block_y, self.block_z);
        to.integer("op", self.op_id.0);
        to.text("kind", &self.kind);
        to.integer("pid", i64::from(self.pid.0));
        to.integer("correlation", self.correlation_id.0);
        to.integer_if("graph", self.graph_id);
        to.integer_if("graph_node", self.graph_node_id);
        to.integer_if("bytes", self.bytes);
        to.text_if("copy", self.copy_kind.as_deref());
        to.text_if("from", self.src_kind.as_deref());
        to.text_if("to", self.dst_kind.as_deref());
    }
}
