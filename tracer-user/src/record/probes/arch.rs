//! What differs between processors: where the arguments of a system call are, how a 32-bit call is told, and the
//! numbers of the system calls. Nothing outside this module knows an architecture.

use tracer_abi::kernel::{SYSCALL_TABLE, SyscallClass};

use super::btf::Btf;

/// Bytes of `pt_regs` that the programs read at once.
const WINDOW: u32 = 64;

/// The registers that hold a system call's arguments, by their member's name in `pt_regs`.
#[cfg(target_arch = "x86_64")]
const ARGUMENTS: [(&str, u32); 6] = [("di", 0), ("si", 0), ("dx", 0), ("r10", 0), ("r8", 0), ("r9", 0)];
/// On arm64 they are `regs[0]` to `regs[5]`.
#[cfg(target_arch = "aarch64")]
const ARGUMENTS: [(&str, u32); 6] =
    [("regs", 0), ("regs", 8), ("regs", 16), ("regs", 24), ("regs", 32), ("regs", 40)];

/// The word of the task that says whether its present system call is a 32-bit one (`TS_COMPAT`).
#[cfg(target_arch = "x86_64")]
pub const COMPAT_WORD: &str = "thread_info.status";
/// Its bit.
#[cfg(target_arch = "x86_64")]
pub const COMPAT_MASK: u32 = 2;
/// The word of the task that says whether it is a 32-bit task (`TIF_32BIT`).
#[cfg(target_arch = "aarch64")]
pub const COMPAT_WORD: &str = "thread_info.flags";
/// Its bit.
#[cfg(target_arch = "aarch64")]
pub const COMPAT_MASK: u32 = 1 << 22;

/// The thread pointer of a task that is not running in user mode, by a path through `task_struct`.
#[cfg(target_arch = "x86_64")]
pub const THREAD_POINTER: &str = "thread.fsbase";
/// The same.
#[cfg(target_arch = "aarch64")]
pub const THREAD_POINTER: &str = "thread.uw.tp_value";

/// The instruction pointer's member in `pt_regs`.
#[cfg(target_arch = "x86_64")]
pub const INSTRUCTION_POINTER: &str = "ip";
/// The same.
#[cfg(target_arch = "aarch64")]
pub const INSTRUCTION_POINTER: &str = "pc";

/// Where in `pt_regs` the frame pointer is.
#[cfg(target_arch = "x86_64")]
pub fn frame_pointer(btf: &Btf) -> Option<u32> {
    btf.member_offset("pt_regs", "bp")
}

/// Where in `pt_regs` the link register is: x86 has none.
#[cfg(target_arch = "x86_64")]
pub fn link_register(_btf: &Btf) -> Option<u32> {
    None
}

/// Where in `pt_regs` the frame pointer is: `x29`.
#[cfg(target_arch = "aarch64")]
pub fn frame_pointer(btf: &Btf) -> Option<u32> {
    Some(btf.member_offset("pt_regs", "regs")? + 29 * 8)
}

/// Where in `pt_regs` the link register is: `x30`.
#[cfg(target_arch = "aarch64")]
pub fn link_register(btf: &Btf) -> Option<u32> {
    Some(btf.member_offset("pt_regs", "regs")? + 30 * 8)
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("recording is written for x86-64 and arm64: add this architecture to `record/probes/arch.rs`");

/// Where in `pt_regs` the window of the arguments begins, and where each argument lies in it (in units of 8 bytes).
pub fn argument_registers(btf: &Btf) -> Option<(u32, [u32; 6])> {
    let mut offsets = [0; 6];
    for (offset, (member, add)) in offsets.iter_mut().zip(ARGUMENTS) {
        *offset = btf.member_offset("pt_regs", member)? + add;
    }
    let begin = *offsets.iter().min()?;
    let fits = offsets.iter().all(|&offset| offset + 8 - begin <= WINDOW);
    fits.then(|| (begin, offsets.map(|offset| (offset - begin) / 8)))
}

/// How each system call names its object.
#[must_use]
pub fn syscall_classes() -> [u8; SYSCALL_TABLE] {
    let mut classes = [SyscallClass::Plain as u8; SYSCALL_TABLE];
    let mut set = |class: SyscallClass, numbers: &[libc::c_long]| {
        for &number in numbers {
            if let Some(entry) = usize::try_from(number).ok().and_then(|index| classes.get_mut(index)) {
                *entry = class as u8;
            }
        }
    };
    set(SyscallClass::Fd0, FD0);
    set(SyscallClass::Fd1, &[libc::SYS_sendfile]);
    set(SyscallClass::Fd4, &[libc::SYS_mmap]);
    set(
        SyscallClass::ResultFd,
        &[
            libc::SYS_openat,
            libc::SYS_openat2,
            libc::SYS_open_by_handle_at,
            libc::SYS_accept,
            libc::SYS_accept4,
            libc::SYS_socket,
        ],
    );
    set(SyscallClass::Poll, &[libc::SYS_ppoll]);
    set(SyscallClass::Select, &[libc::SYS_pselect6]);
    set(SyscallClass::Memfd, &[libc::SYS_memfd_create]);
    set(SyscallClass::Close, &[libc::SYS_close]);
    #[cfg(target_arch = "x86_64")]
    {
        set(SyscallClass::ResultFd, &[libc::SYS_open, libc::SYS_creat]);
        set(SyscallClass::Poll, &[libc::SYS_poll]);
        set(SyscallClass::Select, &[libc::SYS_select]);
        set(SyscallClass::Fd0, &[libc::SYS_epoll_wait, libc::SYS_getdents]);
    }
    classes
}

/// The calls whose first argument is the descriptor that they work on or wait for.
const FD0: &[libc::c_long] = &[
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_pread64,
    libc::SYS_pwrite64,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_preadv,
    libc::SYS_pwritev,
    libc::SYS_preadv2,
    libc::SYS_pwritev2,
    libc::SYS_readahead,
    libc::SYS_fadvise64,
    libc::SYS_fallocate,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_sync_file_range,
    libc::SYS_syncfs,
    libc::SYS_ftruncate,
    libc::SYS_fstat,
    libc::SYS_fstatfs,
    libc::SYS_fchmod,
    libc::SYS_fchown,
    libc::SYS_getdents64,
    libc::SYS_lseek,
    libc::SYS_flock,
    libc::SYS_fcntl,
    libc::SYS_ioctl,
    libc::SYS_splice,
    libc::SYS_tee,
    libc::SYS_vmsplice,
    libc::SYS_copy_file_range,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_recvmmsg,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_sendmmsg,
    libc::SYS_connect,
    libc::SYS_shutdown,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_epoll_ctl,
    libc::SYS_io_uring_enter,
    libc::SYS_timerfd_settime,
];
