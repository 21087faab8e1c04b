//! Who ended a wait: the wake edge, caught in `sched_waking` in the context of the waker.

use super::{SocketAddresses, THREAD_NAME_BYTES};

/// In what context the wake-up came.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WakerKind {
    /// No wake-up seen (the thread was preempted, or the edge was lost).
    None = 0,
    /// A task in its own context: `tid`, `tgid`, `comm`, `syscall_nr` are that task.
    Task = 1,
    /// An interrupt that was completing a block request: `request_id`.
    Block = 2,
    /// A receive softirq that was delivering a packet or a state change of the connection in `socket`. `tid` is the
    /// interrupted task, which on loopback is the sender: `syscall_nr` says whether it was in a call of its own.
    Net = 3,
    /// A timer that ran out: `function` is the kernel address of its function.
    Timer = 4,
    /// Another hardware interrupt: `irq`, its name in `comm` (`swapper/N`: one without a name, on an idle CPU).
    HardIrq = 5,
    /// Another softirq: `irq` is its vector.
    SoftIrq = 6,
}

/// A wake edge.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waker {
    /// [`WakerKind`] as its number.
    pub kind: u32,
    /// The task that ran on the waking CPU (0: the idle task).
    pub tid: u32,
    pub tgid: u32,
    /// That task's system call, −1 if none or not recorded.
    pub syscall_nr: i32,
    /// The CPU on which the wake-up was made.
    pub cpu: u32,
    /// Interrupt number or softirq vector.
    pub irq: u32,
    /// The block request that was completing (see [`super::BlockRecord::request_id`]), 0 if none.
    pub request_id: u64,
    /// Kernel address of a timer's function, 0 if none. `hrtimer_wakeup` and `process_timeout` are a task's own timer.
    pub function: u64,
    pub socket: SocketAddresses,
    /// The waking task's name; for `HardIrq` the interrupt's.
    pub comm: [u8; THREAD_NAME_BYTES],
}
