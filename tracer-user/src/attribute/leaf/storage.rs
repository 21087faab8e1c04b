//! Waits that the completion of a block request ended: queue or device?
//!
//! A large cold read waits mostly behind **its own** earlier requests: as long as one of them is in service, the device's
//! bandwidth is the cause. Only when none is, the wait is a queue's, and it is named by whose requests were in service.

use super::wait::{Wait, cause_of_call, purpose};
use crate::attribute::cause::Cause;
use crate::attribute::names::Name;
use crate::attribute::path::{Edge, EvidenceTable};
use crate::attribute::segment::Leaf;
use crate::attribute::system_call::SystemCall;
use crate::attribute::timeline::Request;
use crate::attribute::walk::{Chain, Walker};
use crate::event::{DurationNs, Interval, MonoNs, Tid};

/// Handing a request to the driver takes a few microseconds; as much is no queue.
const LONGEST_DISPATCH: DurationNs = DurationNs(20_000);

/// What a wait for the block layer is for.
#[derive(Clone, Copy)]
struct Purpose {
    /// While its own requests are in service.
    device: Cause,
    /// While only others' are.
    queue: Cause,
    /// The file.
    object: Name,
}

/// `request` completed and ended the wait.
pub fn completed(walker: &mut Walker, wait: &Wait, request: &Request, chain: Chain) {
    let purpose = find_purpose(walker, wait, Some(request), chain);
    let path = walker.paths.push(wait.hop(walker.timeline, chain.path, Edge::Block));
    let on_device = Chain { path, ..chain };
    let mut rest = wait.time;
    // Completion, interrupt and wake-up are the end of the device's work.
    let completed = request.completed.clamp(rest.start, rest.end);
    let served = service(walker, wait, request);
    let mut served = served.iter().rev().peekable();
    if completed < rest.end {
        let leaf = device_leaf(request, purpose);
        walker.emit(Interval::new(completed, rest.end), on_device, leaf);
        rest.end = completed;
    }
    while !rest.is_empty() {
        while served.next_if(|own| own.start >= rest.end).is_some() {}
        match served.peek() {
            Some(own) if own.end >= rest.end => {
                let piece = Interval::new(own.start.max(rest.start), rest.end);
                walker.emit(piece, on_device, device_leaf(request, purpose));
                rest.end = piece.start;
            }
            next => {
                let start = next.map_or(rest.start, |own| own.end.max(rest.start));
                let piece = Interval::new(start, rest.end);
                queued(walker, wait, request, piece, purpose, (chain, on_device));
                rest.end = start;
            }
        }
    }
}

/// A request completed that is not in the recording: the device, by the call alone.
pub fn unknown_request(walker: &mut Walker, wait: &Wait, chain: Chain) {
    let purpose = find_purpose(walker, wait, None, chain);
    let leaf = Leaf { object: purpose.object, ..wait.leaf(walker.timeline, purpose.device) };
    walker.emit(wait.time, chain, leaf);
}

fn device_leaf(request: &Request, purpose: Purpose) -> Leaf {
    let row = Some((EvidenceTable::BlockIo, request.id.0));
    let object = purpose.object.or(request.device);
    Leaf::device(request.device, purpose.device).on(object).resting_on(row)
}

/// Time in which none of its own requests was in service.
fn queued(
    walker: &mut Walker,
    wait: &Wait,
    request: &Request,
    time: Interval,
    purpose: Purpose,
    (chain, on_device): (Chain, Chain),
) {
    let timeline = walker.timeline;
    let made = first_queued(walker, wait, request, time).clamp(time.start, time.end);
    let waiting = Interval::new(made, time.end);
    if !waiting.is_empty() {
        let mut others =
            timeline.requests.during(request.device, waiting).filter(|other| other.issued < waiting.end);
        let other = others.find(|other| !is_own(timeline.thread(wait.thread).tid, request, other)).copied();
        let row = Some((EvidenceTable::BlockIo, request.id.0));
        let leaf = match other {
            _ if waiting.length() <= LONGEST_DISPATCH => device_leaf(request, purpose),
            Some(other) => {
                let object = behind(walker, purpose.object.or(request.device), &other);
                let tool = timeline.is_tool(other.pid, other.comm);
                let cause = if tool { Cause::ToolOverhead } else { purpose.queue };
                let leaf = Leaf::device(request.device, cause).on(object).resting_on(row);
                leaf.resting_on((EvidenceTable::BlockIo, other.id.0))
            }
            None => {
                let object = purpose.object.or(request.device);
                Leaf::device(request.device, purpose.queue).on(object).resting_on(row)
            }
        };
        walker.emit(waiting, on_device, leaf);
    }
    // Before the request was made, the wait was for whoever made it.
    let before = Interval::new(time.start, made);
    if request.throttled && !before.is_empty() {
        let cause = if request.writes { Cause::StorageWriteThrottled } else { Cause::StorageReadThrottled };
        let object = purpose.object.or(request.device);
        let row = Some((EvidenceTable::BlockIo, request.id.0));
        walker.emit(before, on_device, Leaf::device(request.device, cause).on(object).resting_on(row));
        return;
    }
    if before.is_empty() || walker.before_request(wait, request, before, chain) {
        return;
    }
    let leaf = Leaf { object: purpose.object, ..wait.leaf(timeline, purpose.device).inferred() };
    walker.emit(before, chain, leaf);
}

/// `/data/a behind 4711/dd`: the file, and whose request was in service.
fn behind(walker: &mut Walker, file: Name, other: &Request) -> Name {
    let names = &mut walker.names;
    let text = format!("{} behind {}/{}", names.get(file), other.pid, names.get(other.comm));
    names.str(&text)
}

/// When the first of its own requests that were unfinished in `time` was made.
fn first_queued(walker: &Walker, wait: &Wait, request: &Request, time: Interval) -> MonoNs {
    let timeline = walker.timeline;
    let tid = timeline.thread(wait.thread).tid;
    timeline
        .requests
        .during(request.device, time)
        .filter(|other| is_own(tid, request, other))
        .map(|own| own.queued)
        .min()
        .unwrap_or(time.end)
}

/// Whether `other` is a request of the waiting thread's own work: its own, of the same submitter, or of the same file.
fn is_own(tid: Tid, request: &Request, other: &Request) -> bool {
    // What a limit held back is submitted by a kernel thread, for everybody.
    let submitter = other.tid.0 != 0 && !other.throttled && (other.tid == request.tid || other.tid == tid);
    let file = !other.file.is_none() && other.file == request.file;
    other.id == request.id || submitter || file
}

/// When requests of the waiting thread's own work were in service during the wait: disjoint, in order of time.
fn service(walker: &Walker, wait: &Wait, request: &Request) -> Vec<Interval> {
    let timeline = walker.timeline;
    let tid = timeline.thread(wait.thread).tid;
    let mut own: Vec<Interval> = timeline
        .requests
        .during(request.device, wait.time)
        .filter(|other| is_own(tid, request, other))
        .map(|other| Interval::new(other.issued, other.completed).intersect(wait.time))
        .filter(|time| !time.is_empty())
        .collect();
    own.sort_unstable();
    own.dedup_by(|next, time| {
        let touches = next.start <= time.end;
        if touches {
            time.end = time.end.max(next.end);
        }
        touches
    });
    own
}

/// What the wait is for: by its own call, else by the call of the user thread that waits for it, else a page fault.
fn find_purpose(walker: &Walker, wait: &Wait, request: Option<&Request>, chain: Chain) -> Purpose {
    let timeline = walker.timeline;
    let kernel = timeline.thread(wait.thread).is_kernel();
    let own = if kernel { None } else { wait.syscall };
    let call = if kernel || !wait.end.syscall.is_none() { purpose(timeline, own, chain) } else { None };
    let kind = match call {
        Some(call) => call.kind,
        None if kernel => SystemCall::None,
        None => wait.kind(&timeline.names),
    };
    let file = request.map_or(Name::NONE, |request| request.file);
    // A ring or an AIO context is no file: the request knows which one it is for.
    let named = call.filter(|call| names_file(timeline.names.get(call.object_kind)));
    let object = named.map_or(Name::NONE, |call| call.object).or(file);
    let object = object.or(call.map_or(Name::NONE, |call| call.object));
    let swap = request.is_some_and(|request| request.swap);
    let writes = request.is_some_and(|request| request.writes);
    let (device, queue) = match cause_of_call(&timeline.names, call, kind) {
        Some(Cause::StorageFsync) => (Cause::StorageFsync, Cause::StorageFsync),
        Some(Cause::StorageMetadata) => (Cause::StorageMetadata, Cause::StorageMetadata),
        Some(Cause::StorageRemote) => (Cause::StorageRemote, Cause::StorageRemote),
        Some(Cause::HostExec) => (Cause::HostExec, Cause::HostExec),
        None if !kernel && !writes && swap => (Cause::MemorySwap, Cause::MemorySwap),
        None if !kernel && !writes => (Cause::MemoryMajorFault, Cause::MemoryMajorFault),
        _ if writes => (Cause::StorageWriteDevice, Cause::StorageWriteQueue),
        _ => (Cause::StorageReadDevice, Cause::StorageReadQueue),
    };
    Purpose { device, queue, object }
}

/// Whether the object of a call of this kind is what a block request can be for.
fn names_file(kind: &str) -> bool {
    matches!(kind, "file" | "block_device")
}
