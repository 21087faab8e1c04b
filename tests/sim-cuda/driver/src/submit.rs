//! Giving work to a stream, and waiting for it.

use std::sync::Arc;

use sim_abi::{OpInfo, OpKind, OverheadKind};

use crate::config;
use crate::context::{self, Context};
use crate::device::channel::{Mark, Work};
use crate::device::machine::{self, Submission};
use crate::device::wait;
use crate::hook;
use crate::stream::{Kind, NON_BLOCKING, Stream};

/// An [`OpInfo`] with all that is common to the kinds.
pub fn describe(kind: OpKind, stream: &Stream) -> OpInfo {
    OpInfo {
        kind,
        device: stream.device,
        context: stream.context_id,
        stream: stream.id,
        correlation_id: hook::correlation_id(),
        graph_id: 0,
        graph_node_id: 0,
        name: std::ptr::null(),
        grid: [0; 3],
        block: [0; 3],
        shared: 0,
        priority: stream.priority,
        bytes: 0,
        value: 0,
        copy_kind: 0,
        src_kind: 0,
        dst_kind: 0,
        is_async: false,
        src: [0; 2],
        dst: [0; 2],
        channel: stream.id,
        channel_type: 1,
    }
}

/// Puts work into a stream (or into the graph that it captures). `info` is what CUPTI hears of it.
pub fn submit(stream: &Arc<Stream>, work: Work, info: Option<OpInfo>) -> Mark {
    submit_after(stream, work, info, Vec::new())
}

/// The same, with marks that it has to wait for.
pub fn submit_after(stream: &Arc<Stream>, work: Work, info: Option<OpInfo>, deps: Vec<Mark>) -> Mark {
    if let Some(capture) = stream.capture() {
        capture.add(stream, work, info);
        return Mark { channel: stream.channel, seq: 0 };
    }
    let token = info.as_ref().map_or(0, hook::op_submit);
    enqueue(stream, Submission { work, deps, token, span: None })
}

/// Puts work into a stream's channel, under the legacy default stream's rules; blocks while the queue is full.
pub fn enqueue(stream: &Stream, mut submission: Submission) -> Mark {
    let context = context::by_handle(stream.context).ok();
    let mut machine = machine::lock();
    machine.advance();
    let limit = config::get().queue;
    if machine.depth(stream.channel) >= limit {
        drop(machine);
        wait_for_room(stream, context.as_deref(), limit);
        machine = machine::lock();
        machine.advance();
    }
    if let Some(context) = context {
        let rules = match stream.kind {
            Kind::Null => context.blocking_channels(),
            _ if stream.flags & NON_BLOCKING == 0 => vec![context.null_stream.channel],
            _ => Vec::new(),
        };
        submission
            .deps
            .extend(rules.into_iter().map(|c| machine.tail(c)).filter(|mark| !machine.is_done(*mark)));
    }
    machine.submit(stream.channel, submission)
}

fn wait_for_room(stream: &Stream, context: Option<&Context>, limit: usize) {
    let start = hook::clock();
    loop {
        let machine = machine::lock();
        let depth = machine.depth(stream.channel);
        if depth < limit {
            break;
        }
        // The head of the queue has to go.
        let seq = machine.tail(stream.channel).seq - depth as u64 + 1;
        drop(machine);
        let flavour = context.map_or(wait::Flavour::Spin, Context::flavour);
        wait::wait(&[Mark { channel: stream.channel, seq }], flavour);
    }
    hook::overhead(OverheadKind::CommandBufferFull, start, Some(stream), limit as u32);
}

/// Waits for marks in the way that the context's flags say.
pub fn wait(marks: &[Mark], context: &Context) {
    wait::wait(marks, context.flavour());
}
