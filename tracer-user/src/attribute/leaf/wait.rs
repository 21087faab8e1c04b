//! Waits in general: what a blocked thread was in, and the leaves of waits that no other family takes.

use crate::attribute::cause::Cause;
use crate::attribute::names::{Name, Names};
use crate::attribute::path::{Edge, EvidenceRow, EvidenceTable, HopState, PathHop, PathId};
use crate::attribute::segment::{Leaf, task_name};
use crate::attribute::system_call::SystemCall;
use crate::attribute::timeline::{Call, OffCpu, ThreadIndex, Timeline};
use crate::attribute::walk::{Chain, Walker};
use crate::event::Interval;

/// A wait of one thread.
#[derive(Clone, Copy, Debug)]
pub struct Wait {
    /// Who waits.
    pub thread: ThreadIndex,
    /// When.
    pub time: Interval,
    /// The interval off the CPU whose wake-up ended the wait.
    pub end: OffCpu,
    /// The interval off the CPU that `time` lies in.
    pub row: usize,
    /// The system call in which it waits; an index into [`Timeline::syscalls`].
    pub syscall: Option<usize>,
}

impl Wait {
    /// The wait of `thread` in `time`, within the off-CPU interval `row`, ended by the wake-up of `end`.
    #[must_use]
    pub fn new(timeline: &Timeline, thread: ThreadIndex, time: Interval, row: usize, end: OffCpu) -> Self {
        let syscall =
            if end.syscall.is_none() { None } else { timeline.system_call_at(thread, end.syscall_start) };
        Self { thread, time, end, row, syscall }
    }

    /// The same wait in a part of its time.
    #[must_use]
    pub fn within(&self, time: Interval) -> Self {
        Self { time, ..*self }
    }

    /// Its system call's row.
    #[must_use]
    pub fn call<'a>(&self, timeline: &'a Timeline) -> Option<&'a Call> {
        self.syscall.map(|index| &timeline.syscalls[index])
    }

    /// The kind of its system call.
    #[must_use]
    pub fn kind(&self, names: &Names) -> SystemCall {
        SystemCall::of(names.get(self.end.syscall))
    }

    /// What its system call is about.
    #[must_use]
    pub fn object(&self, timeline: &Timeline) -> Name {
        self.call(timeline).map_or(Name::NONE, |call| call.object)
    }

    /// The row of its interval off the CPU.
    #[must_use]
    pub fn off_row(&self, timeline: &Timeline) -> (EvidenceTable, i64) {
        (EvidenceTable::OffCpu, timeline.off_cpu[self.row].id.0)
    }

    /// The row of its system call.
    #[must_use]
    pub fn call_row(&self, timeline: &Timeline) -> EvidenceRow {
        self.call(timeline).map(|call| (EvidenceTable::Syscalls, call.id.0))
    }

    /// It as a hop that goes on by `edge`.
    #[must_use]
    pub fn hop(&self, timeline: &Timeline, parent: PathId, edge: Edge) -> PathHop {
        let leaf = self.leaf(timeline, Cause::UnknownNoWaker);
        PathHop { edge, ..leaf.hop(parent) }
    }

    /// It as a leaf with this cause, its object the system call's.
    #[must_use]
    pub fn leaf(&self, timeline: &Timeline, cause: Cause) -> Leaf {
        Leaf::thread(timeline, self.thread, HopState::Blocked, cause)
            .in_call(self.end.syscall)
            .on(self.object(timeline))
            .resting_on(self.off_row(timeline))
            .resting_on(self.call_row(timeline))
    }
}

/// The cause of a wait in a system call, where nothing more than the call is known; `None` outside one.
#[must_use]
pub fn cause_of_call(names: &Names, call: Option<&Call>, kind: SystemCall) -> Option<Cause> {
    let object_kind = call.map_or("", |call| names.get(call.object_kind));
    let socket = matches!(object_kind, "tcp" | "udp" | "socket");
    let file = matches!(object_kind, "file" | "block_device");
    let terminal = object_kind == "char_device"
        && call.is_some_and(|call| {
            ["tty", "/pts/", "console"].iter().any(|part| names.get(call.object).contains(part))
        });
    let remote = file && call.is_some_and(|call| is_remote(names.get(call.device)));
    Some(match kind {
        SystemCall::None => return None,
        SystemCall::Read | SystemCall::Poll if terminal => Cause::HostUser,
        SystemCall::Read | SystemCall::Write | SystemCall::Metadata | SystemCall::Fsync if remote => {
            Cause::StorageRemote
        }
        SystemCall::Read if file => Cause::StorageReadDevice,
        SystemCall::Write if file => Cause::StorageWriteDevice,
        SystemCall::Fsync => Cause::StorageFsync,
        SystemCall::Metadata => Cause::StorageMetadata,
        SystemCall::Read | SystemCall::Receive | SystemCall::Poll if socket => Cause::NetRecv,
        SystemCall::Write | SystemCall::Send if socket => Cause::NetSend,
        SystemCall::Connect => Cause::NetConnect,
        SystemCall::Accept => Cause::NetAccept,
        SystemCall::Futex if object_kind == "gil" => Cause::HostGil,
        SystemCall::Futex => Cause::HostLock,
        SystemCall::Sleep => Cause::HostSleep,
        SystemCall::Exec => Cause::HostExec,
        SystemCall::Fork => Cause::HostFork,
        SystemCall::Unmap => Cause::MemoryUnmap,
        SystemCall::Read
        | SystemCall::Write
        | SystemCall::Receive
        | SystemCall::Send
        | SystemCall::Poll
        | SystemCall::WaitChild
        | SystemCall::Exit
        | SystemCall::Other => Cause::HostIpc,
    })
}

/// Whether the file system of this type, or the device of this name, is on another machine or in a process.
fn is_remote(device: &str) -> bool {
    ["nfs", "fuse", "cifs", "smb", "ceph", "lustre", "9p", "glusterfs", "gpfs", "beegfs", "virtiofs"]
        .iter()
        .any(|prefix| device.starts_with(prefix))
}

/// The call that a wait or a kernel thread's work is for: its own, or that of the nearest user thread that waits for it.
#[must_use]
pub fn purpose(timeline: &Timeline, own: Option<usize>, chain: Chain) -> Option<&Call> {
    own.or(chain.waiting).map(|index| &timeline.syscalls[index])
}

/// The wait was ended by a kernel thread whose time is not recorded: named by the call.
pub fn kernel_task(walker: &mut Walker, wait: &Wait, chain: Chain) {
    let timeline = walker.timeline;
    let call = purpose(timeline, wait.syscall, chain);
    let kind = call.map_or(wait.kind(&timeline.names), |call| call.kind);
    let leaf = match cause_of_call(&timeline.names, call, kind) {
        Some(cause) => {
            let object = call.map_or(Name::NONE, |call| call.object).or(wait.end.waker_comm);
            Leaf { object, ..wait.leaf(timeline, cause) }
        }
        None => wait.leaf(timeline, Cause::UnknownNotRecordedThread).on(wait.end.waker_comm),
    };
    walker.emit(wait.time, chain, leaf);
}

/// The wait was ended by a process outside the recording.
pub fn outside(walker: &mut Walker, wait: &Wait, chain: Chain) {
    let timeline = walker.timeline;
    let end = &wait.end;
    let tool = timeline.is_tool(end.waker_pid, end.waker_comm);
    let cause = if tool { Cause::ToolOverhead } else { Cause::HostIpc };
    let cause = match cause_of_call(&timeline.names, wait.call(timeline), wait.kind(&timeline.names)) {
        Some(remote @ (Cause::StorageRemote | Cause::NetRecv | Cause::NetSend)) => remote,
        _ => cause,
    };
    let object = if matches!(cause, Cause::HostIpc | Cause::ToolOverhead) {
        task_name(&mut walker.names, end.waker_pid, end.waker_comm)
    } else {
        peer_or_object(walker, wait)
    };
    let leaf = Leaf { object, ..wait.leaf(timeline, cause) };
    walker.emit(wait.time, chain, leaf);
}

/// The peer of a connection, or whatever the call is about.
pub fn peer_or_object(walker: &mut Walker, wait: &Wait) -> Name {
    let object = wait.object(walker.timeline);
    let peer = walker.names.get(object).rsplit_once(" -> ").map(|(_, peer)| peer.to_owned());
    peer.map_or(object, |peer| walker.names.str(&peer))
}

/// The wait was ended by an interrupt of which only the name is known.
pub fn interrupted(walker: &mut Walker, wait: &Wait, chain: Chain) {
    let timeline = walker.timeline;
    let call = purpose(timeline, wait.syscall, chain);
    let kind = call.map_or(wait.kind(&timeline.names), |call| call.kind);
    let leaf = match cause_of_call(&timeline.names, call, kind) {
        // A device's interrupt that ends a wait for a file or a terminal: the device answered.
        Some(cause) if matches!(cause.family(), "storage" | "net") || cause == Cause::HostUser => {
            Leaf { object: call.map_or(Name::NONE, |call| call.object), ..wait.leaf(timeline, cause) }
        }
        _ => wait.leaf(timeline, Cause::UnknownInterrupt).on(wait.end.waker_object),
    };
    walker.emit(wait.time, chain, leaf);
}

/// Nobody was seen ending the wait. A sleep needs nobody: only its own timer ends it, or a signal cuts it short.
pub fn no_waker(walker: &mut Walker, wait: &Wait, chain: Chain) {
    if wait.kind(&walker.timeline.names) == SystemCall::Sleep {
        let mut leaf = wait.leaf(walker.timeline, Cause::HostSleep).inferred();
        leaf.object = wait.end.syscall;
        return walker.emit(wait.time, chain, leaf);
    }
    // Inside a read or a synchronisation of a file, such a wait is for its device: the end of a request was not seen.
    let kind = wait.kind(&walker.timeline.names);
    if wait.end.uninterruptible && matches!(kind, SystemCall::Read | SystemCall::Fsync) {
        let call = wait.call(walker.timeline);
        let cause = cause_of_call(&walker.timeline.names, call, kind);
        if let Some(cause) = cause.filter(|cause| cause.family() == "storage") {
            return walker.emit(wait.time, chain, wait.leaf(walker.timeline, cause).inferred());
        }
    }
    let leaf = wait.leaf(walker.timeline, Cause::UnknownNoWaker).on(wait.end.syscall);
    walker.emit(wait.time, chain, leaf);
}

/// Stopped by a signal or a debugger.
pub fn stopped(walker: &mut Walker, thread: ThreadIndex, time: Interval, row: usize, chain: Chain) {
    let row = Some((EvidenceTable::OffCpu, walker.timeline.off_cpu[row].id.0));
    let leaf = Leaf::thread(walker.timeline, thread, HopState::Blocked, Cause::HostStopped).resting_on(row);
    walker.emit(time, chain, leaf);
}
