//! One sample of a thread on a CPU: where it was in its own code, and in Python's.

use super::RecordHeader;

/// Python frames that a sample holds, innermost first.
pub const PYTHON_FRAMES: usize = 64;
/// Bytes of the thread's stack that a sample holds: enough to unwind from most leaves to the interpreter.
pub const STACK_BYTES: usize = 8192;
/// Threads of a Python process that are looked through for the one that runs.
pub const PYTHON_THREADS: usize = 128;

/// Bits of [`SampleRecord::flags`].
pub mod sample_flags {
    /// The thread was in the kernel: its registers are those with which it entered.
    pub const IN_KERNEL: u32 = 1;
    /// There are more Python frames than [`super::PYTHON_FRAMES`].
    pub const PYTHON_CUT: u32 = 2;
    /// The process is known to run Python, and this thread has a state in it.
    pub const PYTHON_THREAD: u32 = 4;
}

/// One frame of Python, as it lay in the interpreter's memory: nothing of it is checked.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PythonFrame {
    /// Address of the code object.
    pub code: u64,
    /// `f_lasti`, `prev_instr` or `instr_ptr`, by version.
    pub instruction: u64,
}

/// One sample. In the ring it ends after the `stack_bytes` that were read.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct SampleRecord {
    pub header: RecordHeader,
    pub tid: u32,
    pub tgid: u32,
    /// The address space (`task_struct.mm`): tells a process from the one before an `exec`.
    pub mm: u64,
    /// Instruction pointer in the program's code.
    pub ip: u64,
    pub sp: u64,
    /// The frame pointer's register.
    pub fp: u64,
    /// arm64: the link register.
    pub lr: u64,
    /// [`sample_flags`].
    pub flags: u32,
    /// Frames used of `python`.
    pub python_frames: u32,
    /// Bytes used of `stack`, from `sp` on.
    pub stack_bytes: u32,
    pub reserved: u32,
    pub python: [PythonFrame; PYTHON_FRAMES],
    /// One page more than is used: reading goes page by page.
    pub stack: [u8; STACK_BYTES + 4096],
}

/// Value of the map `PYTHON`, by process: where its interpreter keeps its threads, and where things lie in them. Written by
/// user space, which knows the versions.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PythonProcess {
    /// The address space for which this holds.
    pub mm: u64,
    /// Address of the pointer to the first `PyThreadState`.
    pub threads_head: u64,
    /// Offsets in `PyThreadState`.
    pub thread_next: u32,
    pub thread_id: u32,
    /// `frame` (to 3.10), `cframe` (3.11, 3.12) or `current_frame`.
    pub thread_frame: u32,
    /// Offset of `current_frame` in the `cframe`; [`super::Offsets::ABSENT`] if there is none.
    pub cframe_frame: u32,
    /// Offsets in the frame.
    pub frame_previous: u32,
    pub frame_code: u32,
    pub frame_instruction: u32,
    /// 1: `thread_id` holds the thread's number in its pid namespace, not its thread pointer.
    pub by_number: u32,
}

const _: () = assert!(size_of::<SampleRecord>() == 80 + PYTHON_FRAMES * 16 + STACK_BYTES + 4096);
