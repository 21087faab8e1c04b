//! The tracks of threads' calls: CUDA calls, and the system calls in them and beside them.

use super::Pass;
use super::ahead::Ahead;
use super::ops::Launches;
use super::order::{merge, nested};
use crate::event::{MonoNs, Pid, Tid};
use crate::export::ExportError;
use crate::export::sink::{Anchor, Arrow, Describe, Details, Launch, Slice};
use crate::export::tracks::{Group, Row};
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

impl Pass<'_> {
    /// Writes the calls, and an arrow from each launch to its first op.
    pub(super) fn calls(&mut self, launches: &Launches) -> Result<(), ExportError> {
        let cuda = Ahead::<CudaApi>::scan(self.bundle)?.map(|call| call.map(Call::Cuda));
        let system = Ahead::<Syscall>::scan(self.bundle)?.map(|call| call.map(Call::System));
        let last = self.story.end;
        // Clipped ones begin at one moment, in the order in which they began in truth; of several in one lane the outer ones
        // began first.
        for call in nested(merge(cuda, system, Call::start), |call| (call.start(), call.end(last))) {
            let call = call?;
            let (start, end, (pid, tid)) = (call.start(), call.end(last), call.thread());
            let touches = self.selection.touches(start, end);
            let on_chain = || self.story.is_on_chain(pid, tid);
            let mut op = None;
            let kept = match &call {
                Call::Cuda(call) => {
                    let launch = Launch { pid, correlation: call.correlation_id };
                    op = launches.get(&launch).map(|anchor| (launch, *anchor));
                    // The launch of an op that is shown is shown, however long before it was.
                    let keep = op.is_some() || self.keeps::<CudaApi>(call.id.0, touches, on_chain);
                    self.counts.row::<CudaApi>(keep)
                }
                Call::System(call) => {
                    let keep = self.keeps::<Syscall>(call.id.0, touches, on_chain);
                    self.counts.row::<Syscall>(keep)
                }
            };
            if !kept {
                continue;
            }
            let (start, end) = self.selection.clip(start, end);
            let row = Row::Thread { tid: tid.0, calls: true };
            let track = self.place(Group::Process(pid.0), &row, start, end)?;
            let (name, category, color, details): (_, _, _, &dyn Describe) = match &call {
                Call::Cuda(call) => (&call.name, "cuda", Some("rail_response"), call),
                Call::System(call) => (&call.name, "syscall", None, call),
            };
            let launch = op.map(|(launch, _)| launch);
            self.slice(&Slice { track, start, end, name, category, color, launch, details })?;
            if let Some((_, op)) = op {
                self.arrow(Arrow::Launch, Anchor { track, time: start }, op)?;
            }
        }
        Ok(())
    }
}

impl Describe for CudaApi {
    fn describe(&self, to: &mut dyn Details) {
        to.text("domain", &self.domain);
        to.integer("correlation", self.correlation_id.0);
        to.integer("result", i64::from(self.result));
        to.integer("row", self.id.0);
    }
}

impl Describe for Syscall {
    fn describe(&self, to: &mut dyn Details) {
        to.text_if("object", self.object.as_deref());
        to.text_if("kind", self.object_kind.as_deref());
        to.text_if("device", self.device.as_deref());
        to.text_if("peer", self.peer.as_deref());
        to.integer_if("fd", self.fd.map(i64::from));
        to.integer_if("offset", self.offset);
        to.integer_if("bytes", self.bytes);
        to.integer_if("result", self.result);
        to.integer("blocked_ns", self.blocked_ns.0);
        to.text_if("returned", self.end_ns.is_none().then_some("not before the end of the recording"));
        to.integer("row", self.id.0);
    }
}
