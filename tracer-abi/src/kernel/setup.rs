//! What user space tells the programs at load, and the maps that both sides read and write.

use super::{ObjectId, Waker};

/// Bytes of a thread's `comm`, the terminating zero included (`TASK_COMM_LEN`).
pub const THREAD_NAME_BYTES: usize = 16;

/// Offsets in kernel structures, read from `/sys/kernel/btf/vmlinux` at load and passed as a constant. A field that
/// this kernel does not have is [`Offsets::ABSENT`]; programs then leave out what depends on it.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offsets {
    /// `task_struct.__state` (`state` before 5.14).
    pub task_state: u32,
    pub task_flags: u32,
    pub task_pid: u32,
    pub task_tgid: u32,
    pub task_comm: u32,
    pub task_files: u32,
    pub task_signal: u32,
    pub task_cpus_ptr: u32,
    pub task_nr_cpus_allowed: u32,
    /// `task_struct.worker_private`: the `struct kthread` of a kernel thread (5.17 and later).
    pub task_worker_private: u32,
    /// `kthread.data`: the `struct worker` of a work queue's thread.
    pub kthread_data: u32,
    pub worker_current_func: u32,
    pub task_mm: u32,
    /// The thread pointer: x86 `thread.fsbase`, arm64 `thread.uw.tp_value`.
    pub task_thread_pointer: u32,
    /// `task_struct.thread_pid`, with `pid.level` and `pid.numbers`: a thread's number in its own pid namespace.
    pub task_thread_pid: u32,
    pub pid_level: u32,
    pub pid_numbers: u32,
    /// The word that says whether the present system call is a 32-bit one: x86 `thread_info.status`, arm64
    /// `thread_info.flags`.
    pub task_compat_word: u32,
    /// Its bit: x86 `TS_COMPAT` 2, arm64 `_TIF_32BIT` 1 << 22.
    pub task_compat_mask: u32,
    pub signal_live: u32,
    pub files_fdt: u32,
    pub fdtable_fd: u32,
    pub fdtable_max_fds: u32,
    pub file_inode: u32,
    pub file_dentry: u32,
    pub file_private_data: u32,
    pub file_flags: u32,
    pub inode_ino: u32,
    pub inode_mode: u32,
    pub inode_generation: u32,
    pub inode_rdev: u32,
    pub inode_sb: u32,
    /// `inode.i_dentry.first`: the names of an inode that is known without a descriptor (write-back, page faults).
    pub inode_dentry_first: u32,
    pub sb_dev: u32,
    pub sb_magic: u32,
    pub dentry_name: u32,
    pub dentry_parent: u32,
    /// `dentry.d_u.d_alias`, the link that `inode.i_dentry` points to.
    pub dentry_alias: u32,
    pub socket_sk: u32,
    pub sock_family: u32,
    pub sock_protocol: u32,
    pub sock_daddr: u32,
    pub sock_rcv_saddr: u32,
    pub sock_dport: u32,
    pub sock_num: u32,
    pub sock_v6_daddr: u32,
    pub sock_v6_rcv_saddr: u32,
    /// `sock.sk_socket`.
    pub sock_socket: u32,
    pub unix_peer: u32,
    /// `sizeof(struct socket)`: its inode follows it (`struct socket_alloc`).
    pub socket_inode: u32,
    pub rq_queue: u32,
    pub rq_bio: u32,
    pub rq_cmd_flags: u32,
    pub rq_data_len: u32,
    pub rq_sector: u32,
    pub rq_start_time_ns: u32,
    pub rq_part: u32,
    pub queue_disk: u32,
    pub disk_part0: u32,
    pub bdev_dev: u32,
    pub bio_bdev: u32,
    pub bio_io_vec: u32,
    pub bio_end_io: u32,
    pub bio_private: u32,
    /// `iomap_dio.iocb`: the request for direct I/O that a bio is part of.
    pub iomap_dio_iocb: u32,
    pub kiocb_filp: u32,
    pub page_compound_head: u32,
    pub page_mapping: u32,
    pub mapping_host: u32,
    pub hrtimer_function: u32,
    pub timer_function: u32,
    pub irqaction_name: u32,
    /// Offset in `pt_regs` of the 64 bytes that hold the six arguments of a system call.
    pub regs_window: u32,
    /// Where in that window each argument is, in units of 8 bytes.
    pub regs_index: [u32; 6],
    /// Registers of a thread in its own code.
    pub regs_ip: u32,
    pub regs_sp: u32,
    pub regs_fp: u32,
    /// arm64: the link register.
    pub regs_lr: u32,
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
    /// Address of `iomap_dio_bio_end_io`: what the bios of direct I/O end with. 0 if not known, as for those that follow.
    pub direct_end_io: u64,
    /// Address of `bio_chain_endio`: what the front part of a bio that was split ends with.
    pub chain_end_io: u64,
    /// Address of `blk_throtl_dispatch_work_fn`: what lets go bios that a control group's limit held back.
    pub throttle_work: u64,
    /// Addresses of `end_swap_bio_read` and `end_swap_bio_write`: what the bios of swap space end with.
    pub swap_end_io: [u64; 2],
    /// `O_DIRECT` in `file.f_flags`.
    pub o_direct: u32,
    /// CPUs that this machine can have.
    pub cpus: u32,
}

/// Entries of the table of system calls: numbers above it are treated as [`SyscallClass::Plain`].
pub const SYSCALL_TABLE: usize = 512;

/// Where a system call names its object: entry of the constant `SYSCALL_CLASSES`, indexed by the call's number, so
/// that the programs know no architecture's numbers.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyscallClass {
    /// It names none by descriptor.
    Plain = 0,
    /// First argument: `read`, `write`, `fsync`, `epoll_wait`, `recvmsg` …
    Fd0 = 1,
    /// Second argument: `sendfile`'s source.
    Fd1 = 2,
    /// Fifth argument: `mmap`.
    Fd4 = 3,
    /// The result: `open`, `openat`, `accept`, `socket`.
    ResultFd = 4,
    /// `poll`, `ppoll`: an array of descriptors.
    Poll = 5,
    /// `select`, `pselect6`: sets of descriptors.
    Select = 6,
    /// `memfd_create`.
    Memfd = 7,
    /// `close`: the descriptor is gone at the exit, so it is read at the entry.
    Close = 8,
}

/// What the programs hold about a recorded thread between two events. User space hands one in for each thread that it
/// finds blocked at attach (the map `SEEDS`, used only if the kernel has seen nothing of the thread yet), and reads
/// them all at the end for those still blocked.
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
    pub tid: u32,
    /// When it was last told to sleep because too many pages were dirty.
    pub dirty_ns: u64,
    /// The object of the present system call's descriptor, read when it first blocked; kind `None` if it did not.
    pub object: ObjectId,
}

/// Key of the map `SYSCALL_COUNTS`: fast calls are counted, not emitted. Only the thread itself writes its entries.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CountKey {
    pub tid: u32,
    pub tgid: u32,
    pub syscall_nr: i32,
    pub reserved: u32,
}

/// Value of the map `SYSCALL_COUNTS`.
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

/// Calls that a thread's cache keeps apart before it moves one to `SYSCALL_COUNTS`.
pub const COUNT_CACHE: usize = 8;

/// One entry of a thread's cache of counts.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CachedCount {
    /// The call's number plus one; 0: empty.
    pub tag: u64,
    pub value: CountValue,
}

/// A thread's cache of counts, so that a fast call costs no look-up in a hash map.
pub type CountCache = [CachedCount; COUNT_CACHE];

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
    /// Interrupts nested deeper than is kept: wake-ups inside read `SoftIrq` or `HardIrq` without what was delivered.
    IrqTooDeep = 10,
    /// Ring full, a stall of memory, an interrupt or a retransmission lost.
    RingOther = 11,
    /// Ring full, a stack sample lost.
    RingSample = 12,
}

impl LossClass {
    /// How many classes there are: entries of the array.
    pub const COUNT: u32 = 13;
}
