//! The tracks of threads' calls: CUDA calls, and the system calls in them and beside them.

use std::io::Write;

use super::events::{Anchor, Slice};
use super::json::Object;
use super::ops::{Launches, nested};
use super::tracks::{Group, Row};
use super::{ExportError, Pass};
use crate::event::{MonoNs, Pid, Tid};
use crate::store::StoreError;
use crate::store::schema::{CudaApi, Syscall};

enum Call {
    Cuda(CudaApi),
    System(Syscall),
}

impl Call {
    fn start(&self) -> MonoNs {
        match self {
            Self::Cuda(call) => call.start_ns,
            Self::System(call) => call.start_ns,
        }
    }

    fn end(&self, last: MonoNs) -> MonoNs {
        match self {
            Self::Cuda(call) => call.end_ns,
            Self::System(call) => call.end_ns.unwrap_or(last),
        }
        .max(self.start())
    }

    fn thread(&self) -> (Pid, Tid) {
        match self {
            Self::Cuda(call) => (call.pid, call.tid),
            Self::System(call) => (call.pid, call.tid),
        }
    }
}

impl<W: Write> Pass<'_, W> {
    /// Writes the calls, and an arrow from each launch to its first op.
    pub(super) fn calls(&mut self, launches: &Launches) -> Result<(), ExportError> {
        let cuda = self.bundle.scan::<CudaApi>()?.map(|call| call.map(Call::Cuda));
        let system = self.bundle.scan::<Syscall>()?.map(|call| call.map(Call::System));
        let last = self.end;
        // Clipped ones begin at one moment, in the order in which they began in truth; of several in one lane the outer ones
        // began first.
        for call in nested(merge(cuda, system), |call| (call.start(), call.end(last))) {
            let call = call?;
            let (start, end, (pid, tid)) = (call.start(), call.end(last), call.thread());
            let op = match &call {
                Call::Cuda(call) => launches.get(&(pid, call.correlation_id)),
                Call::System(_) => None,
            };
            // The launch of an op that is shown is shown, however long before it was.
            let touches =
                self.selection.touches(start, end) && self.story.shows_calls(self.selection, pid, tid);
            let keep = op.is_some() || touches;
            let kept = match &call {
                Call::Cuda(_) => self.counts.row::<CudaApi>(keep),
                Call::System(_) => self.counts.row::<Syscall>(keep),
            };
            if !kept {
                continue;
            }
            let (start, end) = self.selection.clip(start, end);
            let row = Row::Thread { tid: tid.0, calls: true };
            let track = self.tracks.place(Group::Process(pid.0), row, start, end);
            let (name, category, color, args) = match &call {
                Call::Cuda(call) => (&call.name, "cuda", Some("rail_response"), cuda_args(call)),
                Call::System(call) => (&call.name, "syscall", None, system_args(call)),
            };
            let slice = Slice { track, start, end, name, category, color, args };
            self.events.slice(slice).map_err(ExportError::out)?;
            if let Some(op) = op {
                self.events.arrow("launch", Anchor { track, time: start }, *op).map_err(ExportError::out)?;
            }
        }
        Ok(())
    }
}

/// Two streams sorted by start as one.
fn merge(
    left: impl Iterator<Item = Result<Call, StoreError>>,
    right: impl Iterator<Item = Result<Call, StoreError>>,
) -> impl Iterator<Item = Result<Call, StoreError>> {
    let (mut left, mut right) = (left.peekable(), right.peekable());
    std::iter::from_fn(move || match (left.peek(), right.peek()) {
        (Some(Ok(a)), Some(Ok(b))) if b.start() < a.start() => right.next(),
        // An error on the right comes before rows that may belong after it.
        (Some(Ok(_)), Some(Err(_))) | (None, _) => right.next(),
        _ => left.next(),
    })
}

fn cuda_args(call: &CudaApi) -> Object {
    Object::default()
        .text("domain", &call.domain)
        .integer("correlation", call.correlation_id.0)
        .integer("result", i64::from(call.result))
        .integer("row", call.id.0)
}

fn system_args(call: &Syscall) -> Object {
    Object::default()
        .text_if("object", call.object.as_deref())
        .text_if("kind", call.object_kind.as_deref())
        .text_if("device", call.device.as_deref())
        .text_if("peer", call.peer.as_deref())
        .integer_if("fd", call.fd.map(i64::from))
        .integer_if("offset", call.offset)
        .integer_if("bytes", call.bytes)
        .integer_if("result", call.result)
        .integer("blocked_ns", call.blocked_ns.0)
        .text_if("returned", call.end_ns.is_none().then_some("not before the end of the recording"))
        .integer("row", call.id.0)
}
