//! System calls: fast ones are counted, those that block or last are written at their exit with their object.

use aya_ebpf::bindings::BPF_RB_FORCE_WAKEUP;
use aya_ebpf::helpers::generated::bpf_probe_read_user;
use aya_ebpf::macros::raw_tracepoint;
use aya_ebpf::programs::RawTracePointContext;
use tracer_abi::kernel::{
    COMPAT_CALL, LossClass, MemfdRecord, ObjectKind, Offsets, RecordKind, SyscallClass, SyscallRecord,
    ThreadState, off_cpu_flags, syscall_flags,
};

use crate::config::{self, off};
use crate::maps::RINGS;
use crate::threads::{self, First};
use crate::{counts, emit, kernel, object, poll, sched};

/// `__X32_SYSCALL_BIT`.
const X32_BIT: u64 = 0x4000_0000;

#[raw_tracepoint(tracepoint = "sys_enter")]
pub fn sys_enter(ctx: RawTracePointContext) -> i32 {
    let (tid, tgid) = kernel::current_ids();
    let Some(state) = threads::find(tid).or_else(|| {
        if threads::is_member(tgid) { threads::make(tid, tgid, false, First::Running) } else { None }
    }) else {
        return 0;
    };
    let number: u64 = ctx.arg(1);
    let registers: u64 = ctx.arg(0);
    let window: [u64; 8] = kernel::field(registers, off!(regs_window));
    let index = off!(regs_index);
    // SAFETY: the current thread's element of the map; the indices are below 8 by the loader's check.
    unsafe {
        if (*state).off_ns != 0 {
            sched::returned_unseen(tid);
        }
        (*state).args[0] = window[(index[0] & 7) as usize];
        (*state).args[1] = window[(index[1] & 7) as usize];
        (*state).args[2] = window[(index[2] & 7) as usize];
        (*state).args[3] = window[(index[3] & 7) as usize];
        (*state).args[4] = window[(index[4] & 7) as usize];
        (*state).args[5] = window[(index[5] & 7) as usize];
        (*state).syscall_blocked_ns = 0;
        (*state).flags &= !off_cpu_flags::CALL_BEFORE_ATTACH;
        (*state).object.kind = ObjectKind::None as u32;
        let nr = if is_compat(number) { COMPAT_CALL } else { number as i32 };
        (*state).syscall_nr = nr;
        if config::syscall_class(nr) == SyscallClass::Close as u8 {
            object::of_descriptor((*state).args[0] as i32, tgid, &raw mut (*state).object);
        }
        (*state).syscall_start_ns = kernel::now_ns();
    }
    0
}

/// Whether the present call of the current task is a 32-bit one, whose number is of another table.
#[inline(always)]
fn is_compat(number: u64) -> bool {
    if number & X32_BIT != 0 {
        return true;
    }
    off!(task_compat_word) != Offsets::ABSENT
        && kernel::current_word::<u32>(off!(task_compat_word)) & off!(task_compat_mask) != 0
}

#[raw_tracepoint(tracepoint = "sys_exit")]
pub fn sys_exit(ctx: RawTracePointContext) -> i32 {
    let (tid, tgid) = kernel::current_ids();
    let Some(state) = threads::find(tid) else { return 0 };
    // SAFETY: the current thread's element of the map.
    unsafe {
        if (*state).off_ns != 0 {
            sched::returned_unseen(tid);
        }
        let nr = (*state).syscall_nr;
        if nr == -1 {
            return 0;
        }
        let now = kernel::now_ns();
        let start = (*state).syscall_start_ns;
        let result: i64 = ctx.arg(1);
        (*state).syscall_nr = -1;
        (*state).syscall_start_ns = 0;
        let class = config::syscall_class(nr);
        if class == SyscallClass::Memfd as u8 && result >= 0 {
            memfd(now, tgid, result as i32, (*state).args[0]);
        }
        if (*state).syscall_blocked_ns == 0 && now.wrapping_sub(start) < config::fast_syscall_ns() {
            if let Some(cache) = threads::count_cache(tid) {
                counts::count(cache, tid, tgid, nr, start, now, result);
            }
            return 0;
        }
        write(state, now, start, nr, class, result);
    }
    0
}

#[inline(always)]
unsafe fn write(state: *mut ThreadState, now: u64, start: u64, nr: i32, class: u8, result: i64) {
    // SAFETY: the caller's contract: the current thread's element of the map.
    unsafe {
        let tgid = (*state).tgid;
        let args = &(*state).args;
        let mut flags = if nr == COMPAT_CALL { syscall_flags::COMPAT } else { 0 };
        if (*state).flags & off_cpu_flags::CALL_BEFORE_ATTACH != 0 {
            flags |= syscall_flags::BEFORE_ATTACH;
        }
        let (mut fd, mut ready) = (-1, -1);
        if class == SyscallClass::Fd0 as u8 || class == SyscallClass::Close as u8 {
            fd = args[0] as i32;
        } else if class == SyscallClass::Fd1 as u8 {
            fd = args[1] as i32;
        } else if class == SyscallClass::Fd4 as u8 {
            fd = args[4] as i32;
        } else if class == SyscallClass::ResultFd as u8 {
            fd = if result >= 0 { result as i32 } else { -1 };
        } else if class == SyscallClass::Poll as u8 && result > 0 {
            ready = poll::ready_of_poll(args[0], args[1]);
        } else if class == SyscallClass::Select as u8 && result > 0 {
            ready = poll::ready_of_select(args[0], [args[1], args[2], args[3]]);
        }
        // Unless it was read when the call blocked.
        if (*state).object.kind == ObjectKind::None as u32 {
            let descriptor = if ready >= 0 { ready } else { fd };
            if descriptor >= 0 {
                object::of_descriptor(descriptor, tgid, &raw mut (*state).object);
            }
        }
        if ready >= 0 {
            flags |= syscall_flags::READY_FD;
        }
        let Some(mut entry) = emit::reserve::<SyscallRecord>(LossClass::RingSyscall) else { return };
        let record = entry.as_mut_ptr();
        (*record).header = emit::header(RecordKind::Syscall, now);
        (*record).tid = (*state).tid;
        (*record).tgid = tgid;
        (*record).start_ns = start;
        (*record).end_ns = now;
        (*record).blocked_ns = (*state).syscall_blocked_ns;
        (*record).result = result;
        (*record).args = (*state).args;
        (*record).nr = nr;
        (*record).flags = flags;
        (*record).fd = fd;
        (*record).ready_fd = ready;
        (*record).object = (*state).object;
        emit::submit(entry);
    }
}

/// A shim announces its ring by the name of a memfd.
#[inline(always)]
unsafe fn memfd(now: u64, tgid: u32, fd: i32, name: u64) {
    let mut start = [0_u8; 8];
    // SAFETY: eight bytes are read into eight; a page that is not there reads as zeros.
    unsafe { bpf_probe_read_user(start.as_mut_ptr().cast(), 7, name as *const _) };
    if u64::from_ne_bytes(start) != u64::from_ne_bytes(*b"gtrace-\0") {
        return;
    }
    let Some(mut entry) = RINGS.reserve::<MemfdRecord>(0) else {
        return emit::lost(LossClass::RingProcess);
    };
    let record = entry.as_mut_ptr();
    // SAFETY: room for a record in the ring.
    unsafe {
        (*record).header = emit::header(RecordKind::Memfd, now);
        (*record).tgid = tgid;
        (*record).fd = fd;
    }
    entry.submit(u64::from(BPF_RB_FORCE_WAKEUP));
}
