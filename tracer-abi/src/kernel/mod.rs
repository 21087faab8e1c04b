//! Records that the eBPF programs write to the ring buffer, and the maps that both sides share. One file a subsystem.
//!
//! A record begins with a [`RecordHeader`]; its `kind` decides the struct that follows in the same memory. Intervals
//! are written once, when they end (see `off_cpu`, `syscall`, `block`), never as begin/end pairs.

mod block;
mod cuda;
mod interrupt;
mod memory;
mod network;
mod object;
mod off_cpu;
mod process;
mod sample;
mod setup;
mod syscall;
mod waker;

pub use block::{BlockRecord, block_flags};
pub use cuda::{ClientCall, CudaCallRecord, call_argument, call_cookie};
pub use interrupt::{InterruptKind, InterruptRecord};
pub use memory::{MemoryStallKind, MemoryStallRecord};
pub use network::RetransmitRecord;
pub use object::{ObjectId, ObjectKind, ObjectPathRecord, PATH_BYTES, SocketAddresses};
pub use off_cpu::{OffCpuRecord, off_cpu_flags};
pub use process::{ExecRecord, ExitRecord, ForkRecord, MemfdRecord};
pub use sample::{
    PYTHON_FRAMES, PYTHON_THREADS, PythonFrame, PythonProcess, STACK_BYTES, SampleRecord, sample_flags,
};
pub use setup::{
    COUNT_CACHE, CachedCount, CountCache, CountKey, CountValue, KernelConfig, LossClass, Offsets,
    SYSCALL_TABLE, SyscallClass, THREAD_NAME_BYTES, ThreadState,
};
pub use syscall::{COMPAT_CALL, SyscallRecord, syscall_flags};
pub use waker::{Waker, WakerKind};

/// What a record is. The first field of every record.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordKind {
    /// [`OffCpuRecord`]
    OffCpu = 1,
    /// [`SyscallRecord`]
    Syscall = 2,
    /// [`BlockRecord`]
    Block = 3,
    /// [`ObjectPathRecord`]
    ObjectPath = 4,
    /// [`ForkRecord`]
    Fork = 5,
    /// [`ExecRecord`]
    Exec = 6,
    /// [`ExitRecord`]
    Exit = 7,
    /// [`MemfdRecord`]
    Memfd = 8,
    /// [`MemoryStallRecord`]
    MemoryStall = 9,
    /// [`InterruptRecord`]
    Interrupt = 10,
    /// [`RetransmitRecord`]
    Retransmit = 11,
    /// [`SampleRecord`], in a ring of its own.
    Sample = 12,
    /// [`CudaCallRecord`]
    CudaCall = 20,
}

impl RecordKind {
    /// The kind for a raw number; `None` for one that this version does not know.
    #[must_use]
    pub const fn from_raw(raw: u32) -> Option<Self> {
        Some(match raw {
            1 => Self::OffCpu,
            2 => Self::Syscall,
            3 => Self::Block,
            4 => Self::ObjectPath,
            5 => Self::Fork,
            6 => Self::Exec,
            7 => Self::Exit,
            8 => Self::Memfd,
            9 => Self::MemoryStall,
            10 => Self::Interrupt,
            11 => Self::Retransmit,
            12 => Self::Sample,
            20 => Self::CudaCall,
            _ => return None,
        })
    }
}

/// The head of every record.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordHeader {
    /// [`RecordKind`] as its number.
    pub kind: u32,
    /// The CPU that wrote the record.
    pub cpu: u32,
    /// When it was written.
    pub time_ns: u64,
}

const _: () = assert!(size_of::<RecordHeader>() == 16);
