//! The tracks of streams.

use std::collections::HashMap;
use std::io::Write;

use super::events::{Anchor, Slice};
use super::json::Object;
use super::select::Selection;
use super::tracks::{Group, Row};
use super::{ExportError, Pass};
use crate::event::{CorrelationId, MonoNs, Pid};
use crate::store::StoreError;
use crate::store::schema::GpuOp;

/// The first op of each launch that is shown.
pub type Launches = HashMap<(Pid, CorrelationId), Anchor>;

impl<W: Write> Pass<'_, W> {
    /// Writes the ops.
    pub(super) fn ops(&mut self) -> Result<Launches, ExportError> {
        let mut launches = Launches::new();
        for op in nested(self.bundle.scan::<GpuOp>()?, |op| (op.start_ns, op.end_ns)) {
            let op = op?;
            if !self.counts.row::<GpuOp>(self.selection.touches(op.start_ns, op.end_ns)) {
                continue;
            }
            let row = Row::Stream { pid: op.pid.0, context: op.context.0, stream: op.stream.0 };
            let (start, end) = self.selection.clip(op.start_ns, op.end_ns);
            let track = self.tracks.place(Group::Gpu(op.device.0), row, start, end);
            if start == op.start_ns {
                launches.entry((op.pid, op.correlation_id)).or_insert(Anchor { track, time: start });
            }
            let slice = Slice {
                track,
                start,
                end,
                name: &op.name,
                category: "gpu",
                color: (&*op.kind != "kernel").then_some("rail_idle"),
                args: args(&op),
            };
            self.events.slice(slice).map_err(ExportError::out)?;
        }
        Ok(launches)
    }
}

fn args(op: &GpuOp) -> Object {
    let size = |x: Option<i32>, y: Option<i32>, z: Option<i32>| {
        x.map(|x| format!("{x} × {} × {}", y.unwrap_or(1), z.unwrap_or(1)))
    };
    Object::default()
        .integer("op", op.op_id.0)
        .text("kind", &op.kind)
        .integer("pid", i64::from(op.pid.0))
        .integer("correlation", op.correlation_id.0)
        .integer_if("graph", op.graph_id)
        .integer_if("graph_node", op.graph_node_id)
        .integer_if("bytes", op.bytes)
        .text_if("copy", op.copy_kind.as_deref())
        .text_if("from", op.src_kind.as_deref())
        .text_if("to", op.dst_kind.as_deref())
        .text_if("grid", size(op.grid_x, op.grid_y, op.grid_z).as_deref())
        .text_if("block", size(op.block_x, op.block_y, op.block_z).as_deref())
}

/// Rows that come by start, put in order for nesting: of equal starts the longer first.
pub fn nested<T>(
    rows: impl Iterator<Item = Result<T, StoreError>>,
    span: impl Fn(&T) -> (MonoNs, MonoNs),
) -> impl Iterator<Item = Result<T, StoreError>> {
    let mut rows = rows.peekable();
    let mut ready: Vec<Result<T, StoreError>> = Vec::new();
    std::iter::from_fn(move || {
        if ready.is_empty() {
            let first = match rows.next()? {
                Ok(first) => first,
                error => return Some(error),
            };
            let (start, _) = span(&first);
            let mut group = vec![first];
            while let Some(Ok(row)) = rows.next_if(|row| row.as_ref().is_ok_and(|row| span(row).0 == start)) {
                group.push(row);
            }
            group.sort_by_key(|row| std::cmp::Reverse(span(row).1));
            ready.extend(group.into_iter().rev().map(Ok));
        }
        ready.pop()
    })
}

impl Selection {
    /// Whether an interval that may have no end touches the selection; returns its end for drawing.
    pub(super) fn touches_open(&self, start: MonoNs, end: Option<MonoNs>, last: MonoNs) -> (bool, MonoNs) {
        let end = end.unwrap_or(last).max(start);
        (self.touches(start, end), end)
    }
}
