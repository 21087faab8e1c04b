//! Table `off_cpu`.

use crate::event::{DurationNs, MonoNs, Pid, RequestId, RowId, Text, Tid};
use crate::store::table::table;

table! {
    /// One interval in which a thread was off the CPU: blocked in `[off_ns, woken_ns)`, runnable in `[woken_ns, on_ns)`,
    /// with the wake edge that ended the wait. The time between two intervals of a thread was spent on the CPU.
    pub struct OffCpu in "off_cpu", sorted by off_ns {
        /// Unique within the table.
        id: RowId,
        /// Process.
        pid: Pid,
        /// Thread.
        tid: Tid,
        /// When it left the CPU; the beginning of the recording if it had left before (`before_attach`).
        off_ns: MonoNs,
        /// When it was woken; equal to `off_ns` if it was preempted. NULL: no wake-up was seen.
        woken_ns: Option<MonoNs>,
        /// When it ran again. NULL: it was still off the CPU at the end of the recording.
        on_ns: Option<MonoNs>,
        /// `interruptible`, `uninterruptible`, `preempted`, `stopped`, `traced`, `dead`, `idle`, `other`; `unseen`: the
        /// kernel did not report when it came back, which was at some time in this interval.
        state: Text,
        /// It was off the CPU before the recording began.
        before_attach: bool,
        /// The system call in which it left the CPU. NULL: outside one (page fault, preemption in user code).
        syscall: Option<Text>,
        /// Start of that call: joins with `syscalls` on (`tid`, `start_ns`).
        syscall_start_ns: Option<MonoNs>,
        /// Who woke it: `task`, `block` (a request completed), `net` (a packet or connection event was delivered),
        /// `timer`, `irq` (another interrupt), `softirq`. NULL: no wake edge.
        waker_kind: Option<Text>,
        /// `task`: the waker's process. `net`: the interrupted task, which on loopback is the sender if it was in a
        /// sending call (`waker_syscall`).
        waker_pid: Option<Pid>,
        /// The waker's thread.
        waker_tid: Option<Tid>,
        /// The waker's name.
        waker_comm: Option<Text>,
        /// The waker's system call at that moment. NULL: none, or the waker is not recorded.
        waker_syscall: Option<Text>,
        /// What was delivered: `nvme0n1`, `10.0.0.2:9000 -> 10.0.0.1:41532` (peer first), `hrtimer_wakeup`,
        /// `irq 45 nvidia`.
        waker_object: Option<Text>,
        /// `block`: the request, joins with `block_io.request_id`.
        request_id: Option<RequestId>,
        /// The CPU that it left.
        off_cpu: i32,
        /// The CPU on which it ran again.
        on_cpu: Option<i32>,
        /// While runnable: the process that held that CPU the longest.
        culprit_pid: Option<Pid>,
        /// Its thread.
        culprit_tid: Option<Tid>,
        /// Its name.
        culprit_comm: Option<Text>,
        /// How long it ran there meanwhile.
        culprit_ns: Option<DurationNs>,
        /// How long all other tasks ran there meanwhile, the culprit included.
        others_ns: DurationNs,
        /// How long that CPU was idle meanwhile.
        idle_ns: DurationNs,
        /// CPUs that the thread may run on. NULL: not looked at, since it was runnable for less than 50 µs.
        allowed_cpus: Option<i32>,
        /// How long, meanwhile and until it ran, one CPU was idle on which the thread may not run (the longest of them).
        forbidden_idle_ns: Option<DurationNs>,
        /// The kernel made it sleep because too many pages were dirty: it writes faster than the disk.
        throttled: Option<bool>,
    }
}
