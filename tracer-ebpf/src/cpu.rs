//! What a CPU is doing: the interrupts it is in, what it is delivering in them, and who ran on it lately.

use tracer_abi::kernel::{LossClass, SocketAddresses, THREAD_NAME_BYTES};

use crate::maps::CPUS;
use crate::{emit, irq, kernel};

/// Interrupts kept at once: a softirq, a hard interrupt over it, and one over that.
pub const FRAMES: u32 = 4;
/// Task switches kept; a power of two.
pub const HISTORY: u32 = 32;
/// Places of the table in which a task's slices are added up; a power of two.
pub const SUMS: u32 = 64;

/// Kinds of [`Frame`].
pub mod frame_kind {
    /// A device's interrupt: `vector` is its number, `action` its `irqaction`.
    pub const IRQ: u32 = 1;
    /// A softirq: `vector` is its number.
    pub const SOFTIRQ: u32 = 2;
    /// An interrupt without `irq_handler_entry`: `vector` is one of [`super::vector`].
    pub const VECTOR: u32 = 3;
}

/// Interrupts that have only tracepoints of their own.
pub mod vector {
    pub const LOCAL_TIMER: u32 = 0;
    pub const RESCHEDULE: u32 = 1;
    pub const CALL_FUNCTION: u32 = 2;
    pub const CALL_FUNCTION_SINGLE: u32 = 3;
    pub const IRQ_WORK: u32 = 4;
    pub const IPI: u32 = 5;
}

/// One interrupt that the CPU is in, and what it is delivering at this moment.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Frame {
    pub kind: u32,
    pub vector: u32,
    /// Address of the `irqaction`.
    pub action: u64,
    /// The block request that is completing.
    pub request_id: u64,
    /// When the flush that is completing was issued: the requests that waited for it end in the same interrupt.
    pub flush_issued_ns: u64,
    /// The timer function that is running.
    pub function: u64,
    /// The connection whose packet is being delivered.
    pub socket: SocketAddresses,
}

/// A stretch of time in which a task (never the idle task) ran on a CPU.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Slice {
    pub start_ns: u64,
    pub end_ns: u64,
    pub tid: u32,
    pub tgid: u32,
    pub comm: [u8; THREAD_NAME_BYTES],
}

/// How long a task ran in the wait that is being looked at.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Sum {
    pub ran_ns: u64,
    pub tid: u32,
    /// Of an earlier look: the entry is empty.
    pub epoch: u32,
}

/// Value of the per-CPU map `CPUS`.
#[repr(C)]
pub struct CpuState {
    /// Interrupts that it is in. May exceed [`FRAMES`]; those beyond are not kept.
    pub depth: u32,
    /// Slices written so far.
    pub slices: u32,
    /// When the present task came, 0 if unknown.
    pub since_ns: u64,
    /// The present task as its switch-in told it: its `task_struct`, and its thread.
    pub task: u64,
    pub tid: u32,
    /// When the outermost interrupt that it is in began, 0 in none.
    pub interrupt_since_ns: u64,
    /// Block requests numbered so far, by how many interrupts the CPU was in: one that interrupts another never takes
    /// the same number.
    pub requests: [u64; FRAMES as usize],
    pub frames: [Frame; FRAMES as usize],
    pub history: [Slice; HISTORY as usize],
    pub sums: [Sum; SUMS as usize],
    pub epoch: u32,
    /// The culprit's slice, counted back from the last.
    pub best_back: u32,
    pub padding: u32,
}

/// This CPU's state. Programs on one CPU may interrupt each other, in the order in which the frames nest.
#[inline(always)]
pub fn this() -> Option<*mut CpuState> {
    CPUS.get_ptr_mut(0)
}

/// An interrupt begins.
#[inline(always)]
pub fn enter(kind: u32, vector: u32, action: u64) {
    let Some(cpu) = this() else { return };
    // SAFETY: this CPU's element of the map.
    unsafe {
        let depth = (*cpu).depth;
        (*cpu).depth = depth + 1;
        if depth == 0 {
            (*cpu).interrupt_since_ns = kernel::now_ns();
        }
        if depth >= FRAMES {
            emit::lost(LossClass::IrqTooDeep);
            return;
        }
        let frame = &raw mut (*cpu).frames[kernel::masked(depth, FRAMES - 1)];
        (*frame).kind = kind;
        (*frame).vector = vector;
        (*frame).action = action;
        (*frame).request_id = 0;
        (*frame).flush_issued_ns = 0;
        (*frame).function = 0;
        (*frame).socket.family = 0;
    }
}

/// An interrupt ends. One whose entry was not seen (it began before the programs were attached) is ignored.
#[inline(always)]
pub fn leave(kind: u32, vector: u32) {
    let Some(cpu) = this() else { return };
    // SAFETY: this CPU's element of the map.
    unsafe {
        let depth = (*cpu).depth;
        if depth == 0 {
            return;
        }
        if depth > FRAMES {
            (*cpu).depth = depth - 1;
            return;
        }
        let top = &raw const (*cpu).frames[kernel::masked(depth - 1, FRAMES - 1)];
        if (*top).kind == kind && (*top).vector == vector {
            (*cpu).depth = depth - 1;
            if depth == 1 {
                irq::took(cpu, top);
            }
            return;
        }
        // The exit of an inner one was missed: leave both.
        if depth >= 2 {
            let below = &raw const (*cpu).frames[kernel::masked(depth - 2, FRAMES - 1)];
            if (*below).kind == kind && (*below).vector == vector {
                (*cpu).depth = depth - 2;
                emit::lost(LossClass::IrqDepthReset);
            }
        }
    }
}

/// The innermost interrupt that this CPU is in; `None` in a task's own context, or nested too deep.
#[inline(always)]
pub fn top_frame() -> Option<*mut Frame> {
    let cpu = this()?;
    // SAFETY: this CPU's element of the map.
    unsafe {
        let depth = (*cpu).depth;
        if depth == 0 || depth > FRAMES {
            return None;
        }
        Some(&raw mut (*cpu).frames[kernel::masked(depth - 1, FRAMES - 1)])
    }
}
