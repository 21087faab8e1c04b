//! One interval in which a thread was off the CPU, written when it comes back.

use super::{RecordHeader, THREAD_NAME_BYTES, Waker};

/// Bits of [`OffCpuRecord::flags`].
pub mod off_cpu_flags {
    /// It was preempted, or yielded: runnable all the time.
    pub const PREEMPTED: u32 = 1;
    /// It was off the CPU before recording began: `off_ns` is the beginning of the recording.
    pub const BEFORE_ATTACH: u32 = 2;
    /// A kernel thread.
    pub const KERNEL_THREAD: u32 = 4;
    /// Its present system call began before recording did: `syscall_start_ns` is the beginning of the recording.
    pub const CALL_BEFORE_ATTACH: u32 = 32;
    /// It has been on a CPU since recording began. Of [`super::ThreadState`]: with `off_ns` 0 it runs as far as is known;
    /// without this, it has been off the CPU since before.
    pub const SEEN_RUNNING: u32 = 128;
    /// Still off the CPU at the end: `on_ns` is 0. Made by user space from [`super::ThreadState`].
    pub const STILL_OFF: u32 = 8;
    /// It was made to sleep because too many pages were dirty (`balance_dirty_pages`).
    pub const DIRTY_THROTTLED: u32 = 64;
    /// The kernel did not report when it came back to a CPU: `on_ns` is when it was first found running, and it did so at
    /// some time between `woken_ns` and then.
    pub const RETURN_UNSEEN: u32 = 16;
}

/// One off-CPU interval: `[off_ns, woken_ns)` blocked, `[woken_ns, on_ns)` runnable. If it was preempted, `woken_ns`
/// equals `off_ns`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct OffCpuRecord {
    pub header: RecordHeader,
    pub tid: u32,
    pub tgid: u32,
    /// 0 if unknown (switched out before its state was kept).
    pub off_ns: u64,
    /// 0: no wake-up seen.
    pub woken_ns: u64,
    pub on_ns: u64,
    /// Beginning of the system call in which it left the CPU, 0 outside one.
    pub syscall_start_ns: u64,
    pub syscall_nr: i32,
    /// `prev_state` (`TASK_INTERRUPTIBLE` 1, `TASK_UNINTERRUPTIBLE` 2, stopped 4, traced 8 …).
    pub off_state: u32,
    /// [`off_cpu_flags`].
    pub flags: u32,
    pub off_cpu: u32,
    pub on_cpu: u32,
    pub waker: Waker,
    /// While runnable, on the CPU it finally got: who held that CPU the longest, 0 if nobody.
    pub culprit_tid: u32,
    pub culprit_tgid: u32,
    pub culprit_comm: [u8; THREAD_NAME_BYTES],
    /// How long that culprit ran within `[woken_ns, on_ns)`.
    pub culprit_ns: u64,
    /// How long that CPU was idle within `[woken_ns, on_ns)`.
    pub idle_ns: u64,
    /// How long all other tasks together ran there within it (the culprit included).
    pub others_ns: u64,
    pub args0: u64,
    /// While runnable: the longest that one CPU idled on which it may not run.
    pub forbidden_idle_ns: u64,
    /// CPUs that it may run on; 0 if not known, or not looked at because it was runnable for a moment only.
    pub allowed_cpus: u32,
    pub reserved: u32,
}
