//! The host's rows in their compact form: one struct a table, strings interned, joined with their threads.

use super::op::CopyKind;
use crate::attribute::cuda_call::CudaCall;
use crate::attribute::names::Name;
use crate::attribute::system_call::SystemCall;
use crate::event::{
    ContextId, CorrelationId, DurationNs, Interval, MonoNs, Pid, RequestId, RowId, StreamId, Tid,
};

/// No index.
pub const NO_INDEX: u32 = u32::MAX;

/// A thread's place among the threads of the timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadIndex(pub u32);

/// What ended a wait; see `off_cpu.waker_kind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waker {
    /// Nothing was seen.
    None,
    /// A task in its own context.
    Task,
    /// The completion of this request.
    Block(RequestId),
    /// A packet or connection event.
    Net,
    /// A timer.
    Timer,
    /// Another hardware interrupt.
    Irq,
    /// Another softirq.
    Softirq,
}

/// Why a thread left its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffState {
    /// It waits.
    Waiting,
    /// It was preempted or yielded.
    Preempted,
    /// A signal or a debugger stopped it.
    Stopped,
    /// It came back at some time in the interval, and nobody knows when.
    Unseen,
}

/// One interval off the CPU; see the table `off_cpu`.
#[derive(Clone, Copy, Debug)]
pub struct OffCpu {
    /// Its row.
    pub id: RowId,
    /// When it left the CPU.
    pub off: MonoNs,
    /// When it was woken; [`MonoNs::MAX`] if that was not seen.
    pub woken: MonoNs,
    /// When it ran again; [`MonoNs::MAX`] if it did not.
    pub on: MonoNs,
    /// Why it left.
    pub state: OffState,
    /// It waits and no signal could end that (state D): for a device, or a lock on the way to one.
    pub uninterruptible: bool,
    /// The system call in which it left.
    pub syscall: Name,
    /// Start of that call.
    pub syscall_start: MonoNs,
    /// What ended the wait.
    pub waker: Waker,
    /// The waker's process; for [`Waker::Net`] the interrupted task's.
    pub waker_pid: Pid,
    /// The waker's thread, 0 if there is none.
    pub waker_tid: Tid,
    /// The waker, where it has a timeline.
    pub waker_thread: u32,
    /// The waker's name.
    pub waker_comm: Name,
    /// The waker's system call.
    pub waker_syscall: Name,
    /// What was delivered.
    pub waker_object: Name,
    /// The CPU on which it ran again, −1 if none.
    pub cpu: i32,
    /// Who held that CPU while it was runnable.
    pub culprit_pid: Pid,
    /// Its thread, 0 if there is none.
    pub culprit_tid: Tid,
    /// Its name.
    pub culprit_comm: Name,
    /// How long it ran.
    pub culprit_ran: DurationNs,
    /// How long that CPU idled.
    pub idle: DurationNs,
    /// How long another CPU idled on which it may not run.
    pub forbidden_idle: DurationNs,
    /// CPUs that it may run on, 0 if unknown.
    pub allowed_cpus: i32,
    /// It was made to sleep because too many pages were dirty.
    pub throttled: bool,
    /// Index of the interval whose wake-up really ended this wait: itself, or a later one where a timed wait was begun
    /// again on the same object.
    pub ended_by: u32,
}

/// One system call; see the table `syscalls`.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// Its row.
    pub id: RowId,
    /// Entry and return.
    pub time: Interval,
    /// Its name.
    pub name: Name,
    /// Its kind.
    pub kind: SystemCall,
    /// Kind of the object.
    pub object_kind: Name,
    /// Path, connection, pipe or lock.
    pub object: Name,
    /// The device or file system of a file.
    pub device: Name,
    /// Who holds the other end.
    pub peer: Name,
}

/// One CUDA call, or an overhead record within one; see the tables `cuda_api` and `cuda_overhead`.
#[derive(Clone, Copy, Debug)]
pub struct ApiCall {
    /// Its row in `cuda_api`, or in `cuda_overhead` for [`CudaCall::Tool`] and other overhead.
    pub id: RowId,
    /// Whether `id` is of `cuda_overhead`.
    pub overhead: bool,
    /// Entry and return.
    pub time: Interval,
    /// Its name.
    pub name: Name,
    /// What it does.
    pub kind: CudaCall,
    /// Joins with ops and synchronisations.
    pub correlation: CorrelationId,
    /// The thread.
    pub thread: ThreadIndex,
    /// Index of the call around it, or [`NO_INDEX`].
    pub parent: u32,
    /// What its op copies; [`CopyKind::None`] if it launched no copy.
    pub copies: CopyKind,
}

/// What kind of range a marker is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkerKind {
    /// An operator of the framework.
    Operator,
    /// A Python function.
    Python,
    /// The data loader's iterator.
    DataLoader,
    /// Around whole steps: it says nothing about what happened in it.
    Step,
    /// NCCL sets a communicator up.
    CommInit,
    /// Another range that the program marked.
    Marked,
}

impl MarkerKind {
    /// The kind of the range `name` of a domain; see the table `markers`.
    #[must_use]
    pub fn of(domain: &str, name: &str) -> Self {
        match domain {
            "cpu_op" => Self::Operator,
            "python" => Self::Python,
            "NCCL"
                if name.starts_with("ncclCommInit")
                    || matches!(name, "ncclCommSplit" | "ncclCommShrink" | "ncclCommGrow") =>
            {
                Self::CommInit
            }
            _ if name.starts_with("enumerate(DataLoader)") => Self::DataLoader,
            _ if name.starts_with("ProfilerStep#") => Self::Step,
            _ => Self::Marked,
        }
    }
}

/// One range that the program or its framework marked; see the table `markers`.
#[derive(Clone, Copy, Debug)]
pub struct Marker {
    /// Its row.
    pub id: RowId,
    /// From its start to its end.
    pub time: Interval,
    /// Its name.
    pub name: Name,
    /// What it is.
    pub kind: MarkerKind,
    /// The thread.
    pub thread: ThreadIndex,
    /// Index of the range around it, or [`NO_INDEX`].
    pub parent: u32,
}

/// Rows of a thread that lie within one another.
pub trait Nested {
    /// When.
    fn time(&self) -> Interval;
    /// The thread.
    fn thread(&self) -> ThreadIndex;
    /// Index of the row around it, or [`NO_INDEX`].
    fn parent(&self) -> u32;
    /// Puts it inside `parent`, to end at `end`.
    fn put_inside(&mut self, parent: u32, end: MonoNs);
}

macro_rules! nested {
    ($($type:ident)*) => {$(
        impl Nested for $type {
            fn time(&self) -> Interval {
                self.time
            }
            fn thread(&self) -> ThreadIndex {
                self.thread
            }
            fn parent(&self) -> u32 {
                self.parent
            }
            fn put_inside(&mut self, parent: u32, end: MonoNs) {
                self.parent = parent;
                self.time.end = end;
            }
        }
    )*};
}

nested! { ApiCall Marker }

/// One synchronisation; see the table `cuda_sync`.
#[derive(Clone, Copy, Debug)]
pub struct Sync {
    /// Its row.
    pub id: RowId,
    /// Process.
    pub pid: Pid,
    /// Whether a stream was told to wait for an event (no host wait).
    pub stream_wait: bool,
    /// CUDA context.
    pub context: ContextId,
    /// The stream that was waited for, or that waits.
    pub stream: Option<StreamId>,
    /// When it was called.
    pub start: MonoNs,
    /// Joins with its call.
    pub correlation: CorrelationId,
}

/// One request to a block device; see the table `block_io`.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// Its row.
    pub id: RequestId,
    /// The submitter's process, 0 if unknown.
    pub pid: Pid,
    /// The submitter, 0 if unknown.
    pub tid: Tid,
    /// The submitter's name.
    pub comm: Name,
    /// The device.
    pub device: Name,
    /// Whether it writes (or flushes, or discards).
    pub writes: bool,
    /// When it was made.
    pub queued: MonoNs,
    /// When the driver got it.
    pub issued: MonoNs,
    /// When it completed.
    pub completed: MonoNs,
    /// The file.
    pub file: Name,
    /// A control group's limit held it back before it was made.
    pub throttled: bool,
    /// It moved memory from or to swap space.
    pub swap: bool,
}

/// What took a thread's time without its doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakenBy {
    /// Memory had to be freed first; see the table `memory_stalls`.
    Reclaim,
    /// Pages had to be moved first; see the table `memory_stalls`.
    Compaction,
    /// An interrupt; see the table `interrupts`.
    Interrupt,
}

/// One stretch of a thread's time that was taken from it.
#[derive(Clone, Copy, Debug)]
pub struct Taken {
    /// Its row in the table of its kind.
    pub id: RowId,
    /// When.
    pub time: Interval,
    /// By what.
    pub by: TakenBy,
    /// The interrupt's name, or what was short of memory.
    pub name: Name,
}

/// What a loss was of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossKind {
    /// Events did not reach the recording.
    Lost,
    /// Records of the GPU were invalid.
    Invalid,
}

/// One interval in which nothing is blamed on anybody; see the table `losses`.
#[derive(Clone, Copy, Debug)]
pub struct Lost {
    /// What was lost.
    pub kind: LossKind,
    /// Where.
    pub source: Name,
    /// The process, where one alone is concerned.
    pub pid: Option<Pid>,
    /// When.
    pub time: Interval,
}

/// For whom a thread works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadKind {
    /// For the program.
    Program,
    /// For the kernel.
    Kernel,
    /// For the GPU: a thread of the CUDA driver, or the simulated GPU's scheduler.
    Driver,
    /// For gtrace, inside the process.
    Tool,
}

/// A thread: its identity, its life and its rows.
#[derive(Clone, Debug)]
pub struct ThreadRows {
    /// Process.
    pub pid: Pid,
    /// Thread.
    pub tid: Tid,
    /// Its name.
    pub name: Name,
    /// When it began, where that is known.
    pub start: Option<MonoNs>,
    /// When it ended.
    pub end: Option<MonoNs>,
    /// It lived before the recording began.
    pub before_attach: bool,
    /// For whom it works.
    pub kind: ThreadKind,
    /// Its off-CPU intervals.
    pub off_cpu: std::ops::Range<usize>,
    /// Its system calls.
    pub syscalls: std::ops::Range<usize>,
    /// Its CUDA calls.
    pub api: std::ops::Range<usize>,
    /// Its marked ranges.
    pub markers: std::ops::Range<usize>,
    /// What was taken from it.
    pub taken: std::ops::Range<usize>,
    /// Its stack samples.
    pub samples: std::ops::Range<usize>,
}

/// A process.
#[derive(Clone, Copy, Debug)]
pub struct ProcessRow {
    /// Its parent.
    pub parent: Option<Pid>,
    /// When it began.
    pub start: MonoNs,
    /// Its name.
    pub comm: Name,
    /// Its program.
    pub exe: Name,
    /// Not a member of the recorded tree.
    pub outside: bool,
    /// Kernel thread.
    pub kernel: bool,
    /// For how long a CPU quota held back its control group during the recording.
    pub throttled: DurationNs,
}

impl ThreadRows {
    /// Whether it is a kernel thread.
    #[must_use]
    pub fn is_kernel(&self) -> bool {
        self.kind == ThreadKind::Kernel
    }

    /// Whether it works for the GPU.
    #[must_use]
    pub fn is_driver(&self) -> bool {
        self.kind == ThreadKind::Driver
    }

    /// Whether it works for gtrace.
    #[must_use]
    pub fn is_tool(&self) -> bool {
        self.kind == ThreadKind::Tool
    }
}
