//! Time on a CPU: named by the innermost of CUDA call, system call and user code.

use super::wait::{cause_of_call, purpose};
use crate::attribute::cause::Cause;
use crate::attribute::frame::Place;
use crate::attribute::names::Name;
use crate::attribute::path::{EvidenceTable, HopState};
use crate::attribute::segment::Leaf;
use crate::attribute::system_call::SystemCall;
use crate::attribute::timeline::{TakenBy, ThreadIndex, Timeline, sample};
use crate::attribute::walk::{Chain, Walker};
use crate::event::Interval;

/// A thread ran in `time`.
pub fn running(walker: &mut Walker, thread: ThreadIndex, time: Interval, chain: Chain) {
    let timeline = walker.timeline;
    let mut rest = time;
    while !rest.is_empty() {
        let (api, api_boundary) = timeline.api_call_before(thread, rest.end);
        let (syscall, syscall_boundary) = timeline.system_call_before(thread, rest.end);
        let (taken, taken_boundary) = timeline.taken_before(thread, rest.end);
        let start = api_boundary.max(syscall_boundary).max(taken_boundary).max(rest.start);
        let piece = Interval::new(start, rest.end);
        match (api, syscall, taken) {
            (_, _, Some(taken)) => {
                walker.emit(piece, chain, taken_leaf(timeline, thread, taken, HopState::Running));
            }
            _ if timeline.thread(thread).is_tool() => {
                let leaf = Leaf::thread(timeline, thread, HopState::Running, Cause::ToolOverhead);
                let name = timeline.thread(thread).name;
                walker.emit(piece, chain, leaf.on(name));
            }
            (Some(call), ..) => super::gpu::running_in_call(walker, thread, piece, call, chain),
            (None, Some(call), _) => in_system_call(walker, thread, piece, call, chain),
            (None, None, _) if timeline.thread(thread).is_kernel() => {
                in_kernel_thread(walker, thread, piece, chain);
            }
            (None, None, _) => in_user_code(walker, thread, piece, chain),
        }
        rest.end = piece.start;
    }
}

/// Time that was taken from a thread.
pub fn taken_leaf(timeline: &Timeline, thread: ThreadIndex, taken: usize, state: HopState) -> Leaf {
    let taken = timeline.taken[taken];
    let (cause, table) = match taken.by {
        TakenBy::Reclaim => (Cause::MemoryReclaim, EvidenceTable::MemoryStalls),
        TakenBy::Compaction => (Cause::MemoryCompaction, EvidenceTable::MemoryStalls),
        TakenBy::Interrupt => (Cause::HostIrq, EvidenceTable::Interrupts),
    };
    Leaf::thread(timeline, thread, state, cause).on(taken.name).resting_on(Some((table, taken.id.0)))
}

/// A thread was on its way out.
pub fn exiting(walker: &mut Walker, thread: ThreadIndex, time: Interval, chain: Chain) {
    let call = walker.names.str("exit");
    let leaf =
        Leaf::thread(walker.timeline, thread, HopState::Running, Cause::HostCpuKernel).in_call(call).on(call);
    walker.emit(time, chain, leaf);
}

/// Nothing is known about a thread in `time` but its CUDA calls and, in another tool's recording, its marked ranges.
pub fn unrecorded(walker: &mut Walker, thread: ThreadIndex, time: Interval, cause: Cause, chain: Chain) {
    let timeline = walker.timeline;
    let mut rest = time;
    while !rest.is_empty() {
        let (api, boundary) = timeline.api_call_before(thread, rest.end);
        let piece = Interval::new(boundary.max(rest.start), rest.end);
        if let Some(call) = api {
            // That a thread was inside its own call is recorded; whether it ran there is not, and the causes of calls
            // do not say so.
            let inferred = chain.inferred || !timeline.imported;
            super::gpu::running_in_call(walker, thread, piece, call, Chain { inferred, ..chain });
        } else if timeline.imported {
            super::traced::between_calls(walker, thread, piece, chain);
        } else {
            let name = timeline.thread(thread).name;
            let leaf = Leaf::thread(timeline, thread, HopState::Unknown, cause).on(name);
            walker.emit(piece, chain, leaf);
        }
        rest.end = piece.start;
    }
}

fn in_system_call(walker: &mut Walker, thread: ThreadIndex, time: Interval, call: usize, chain: Chain) {
    let timeline = walker.timeline;
    let call = timeline.syscalls[call];
    let cause = match call.kind {
        SystemCall::Exec => Cause::HostExec,
        SystemCall::Fork => Cause::HostFork,
        SystemCall::Unmap => Cause::MemoryUnmap,
        _ => Cause::HostCpuKernel,
    };
    let object = if call.object.is_none() {
        call.name
    } else {
        let text = format!("{} {}", walker.names.get(call.name), walker.names.get(call.object));
        walker.names.str(&text)
    };
    let leaf = Leaf::thread(timeline, thread, HopState::Running, cause)
        .in_call(call.name)
        .on(call.object)
        .resting_on(Some((EvidenceTable::Syscalls, call.id.0)));
    walker.emit(time, chain, Leaf { object, ..leaf });
}

/// A kernel thread works for whoever waits for it.
fn in_kernel_thread(walker: &mut Walker, thread: ThreadIndex, time: Interval, chain: Chain) {
    let timeline = walker.timeline;
    let name = timeline.thread(thread).name;
    let call = purpose(timeline, None, chain);
    let cause = call.and_then(|call| cause_of_call(&timeline.names, Some(call), call.kind));
    let leaf = match (cause, call) {
        (Some(cause), Some(call)) if cause.family() == "storage" => {
            Leaf::thread(timeline, thread, HopState::Running, cause).on(call.object.or(name))
        }
        _ => Leaf::thread(timeline, thread, HopState::Running, Cause::HostCpuKernel).on(name),
    };
    walker.emit(time, chain, leaf);
}

fn in_user_code(walker: &mut Walker, thread: ThreadIndex, time: Interval, chain: Chain) {
    let timeline = walker.timeline;
    let leaf = Leaf::thread(timeline, thread, HopState::Running, Cause::HostCpuUser);
    let Some((sample, rows)) = sample::most(timeline.samples_in(thread, time)) else {
        let object = program(timeline, thread);
        return walker.emit(time, chain, Leaf { object, ..leaf });
    };
    let get = |name| walker.names.get(name);
    let line = (sample.line > 0).then_some(sample.line);
    let label = Place::label(get(sample.file), get(sample.function), line, get(sample.inside));
    let rows = rows.map(|row| row.map(|row| (EvidenceTable::Samples, row.0)));
    let object = walker.names.str(&label);
    walker.emit(time, chain, leaf.on(object).resting_on(rows[0]).resting_on(rows[1]));
}

/// The program of a thread's process, or the thread's own name.
fn program(timeline: &Timeline, thread: ThreadIndex) -> Name {
    let rows = timeline.thread(thread);
    timeline.processes.get(&rows.pid).map_or(Name::NONE, |process| process.exe).or(rows.name)
}
