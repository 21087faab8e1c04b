//! What user space tells the programs at load, and the maps that both sides read and write.

use super::Waker;

/// Bytes of a thread's `comm`, the terminating zero included (`TASK_COMM_LEN`).
pub const THREAD_NAME_BYTES: usize = 16;

/// Offsets in kernel structures, read from `/sys/kernel/btf/vmlinux` at load and passed as a constant. A field that
/// this kernel does not have is [`Offsets::ABSENT`]; programs then leave out what depends on it.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offsets {
    pub task_pid: u32,
    pub task_tgid: u32,
    pub task_comm: u32,
    pub task_flags: u32,
    pub task_files: u32,
    pub task_signal: u32,
    pub signal_live: u32,
    pub files_fdt: u32,
    pub fdtable_fd: u32,
    pub fdtable_max_fds: u32,
    pub file_inode: u32,
    pub file_dentry: u32,
    pub file_private_data: u32,
    pub inode_ino: u32,
    pub inode_mode: u32,
    pub inode_generation: u32,
    pub inode_rdev: u32,
    pub inode_sb: u32,
    pub sb_dev: u32,
    pub sb_magic: u32,
    pub dentry_name: u32,
    pub dentry_parent: u32,
    pub socket_sk: u32,
    pub sock_family: u32,
    pub sock_state: u32,
    pub sock_protocol: u32,
    pub sock_daddr: u32,
    pub sock_rcv_saddr: u32,
    pub sock_dport: u32,
    pub sock_num: u32,
    pub sock_v6_daddr: u32,
    pub sock_v6_rcv_saddr: u32,
    pub rq_bio: u32,
    pub rq_cmd_flags: u32,
    pub rq_data_len: u32,
    pub rq_sector: u32,
    pub rq_start_time_ns: u32,
    pub rq_part: u32,
    pub bdev_dev: u32,
    pub bio_bdev: u32,
    pub hrtimer_function: u32,
    pub timer_function: u32,
    pub irqaction_name: u32,
    /// 1 where `block_rq_issue` has `(queue, request)` as arguments (before 5.11), 0 where it has `(request)`.
    pub rq_arg: u32,
    /// 1 where `block_bio_queue` has `(queue, bio)` as arguments (before 5.11), 0 where it has `(bio)`.
    pub bio_arg: u32,
    pub reserved: u32,
}

impl Offsets {
    /// This kernel has no such field.
    pub const ABSENT: u32 = u32::MAX;
}

/// The recorder's choices, passed as a constant.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelConfig {
    /// A system call that neither blocked nor lasted this long is only counted, not emitted.
    pub fast_syscall_ns: u64,
    /// The recorder's own thread group: never recorded as a target; it is named where it takes CPU from one.
    pub own_tgid: u32,
    /// Record kernel threads' off-CPU intervals too (kworker, jbd2 …): they stand between a target and its disk.
    pub kernel_threads: u32,
}

/// What the programs hold about a thread of the tree between two events: value of the map `THREADS`, key `u32` tid.
/// User space inserts one (`BPF_NOEXIST`) for each thread that it finds blocked at attach, and reads them all at the
/// end for those still blocked.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadState {
    /// When it left the CPU; 0 while it runs.
    pub off_ns: u64,
    /// When its present system call began; 0 outside one.
    pub syscall_start_ns: u64,
    /// Time blocked in the present system call so far.
    pub syscall_blocked_ns: u64,
    /// The present system call's arguments.
    pub args: [u64; 6],
    /// The pending wake-up, `woken_ns` 0 if none: a waking can come before its switch-out.
    pub waker: Waker,
    /// When the pending wake-up came.
    pub woken_ns: u64,
    /// The present system call's number, −1 outside one.
    pub syscall_nr: i32,
    pub tgid: u32,
    /// `prev_state` of the switch-out (`include/linux/sched.h`), 0 if preempted.
    pub off_state: u32,
    /// [`super::off_cpu_flags`] known so far.
    pub flags: u32,
    /// The CPU that it left.
    pub off_cpu: u32,
    pub reserved: u32,
}

/// Key of the per-CPU map `SYSCALL_COUNTS`: fast calls are counted, not emitted.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CountKey {
    pub tid: u32,
    pub tgid: u32,
    pub syscall_nr: i32,
    pub reserved: u32,
}

/// Value of the per-CPU map `SYSCALL_COUNTS`; user space sums over the CPUs.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CountValue {
    pub calls: u64,
    pub total_ns: u64,
    pub max_ns: u64,
    /// Sum of the results above zero (bytes for the read and write families).
    pub result_sum: u64,
    /// Calls that returned an error.
    pub errors: u64,
    pub first_ns: u64,
    pub last_ns: u64,
}

/// Index into the per-CPU array `LOSSES` (u64 counters): what could not be recorded and why.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossClass {
    /// Ring full, an off-CPU record lost.
    RingOffCpu = 0,
    /// Ring full, a system call lost.
    RingSyscall = 1,
    /// Ring full, a block request lost.
    RingBlock = 2,
    /// Ring full, an object's path lost (it is sent again at its next use).
    RingObject = 3,
    /// Ring full, a fork, exec, exit or memfd lost.
    RingProcess = 4,
    /// `THREADS` full: the thread is not recorded.
    ThreadsFull = 5,
    /// `SYSCALL_COUNTS` full: fast calls not counted.
    CountsFull = 6,
    /// A block request's map was full.
    RequestsFull = 7,
    /// `PROCESSES` full: a forked child is not followed.
    ProcessesFull = 8,
    /// An interrupt's exit was missed and its nesting reset at a task switch.
    IrqDepthReset = 9,
}

impl LossClass {
    /// How many classes there are: entries of the array.
    pub const COUNT: u32 = 10;
}
