//! Reading the kernel: fields at offsets, the current task, the clock.

use core::arch::asm;
use core::mem::MaybeUninit;

use aya_ebpf::helpers::generated::{
    bpf_get_current_comm, bpf_get_current_pid_tgid, bpf_get_current_task, bpf_get_current_task_btf, bpf_get_smp_processor_id,
    bpf_ktime_get_ns, bpf_probe_read_kernel,
};
use tracer_abi::kernel::{Offsets, THREAD_NAME_BYTES};

use crate::config::off;

/// `PF_KTHREAD` of `task_struct.flags`, unchanged since 2.6.
pub const PF_KTHREAD: u32 = 0x0020_0000;

/// Reads a field of a kernel structure. Zero if the field does not exist on this kernel or the address is bad.
#[inline(always)]
pub fn field<T: Copy>(base: u64, offset: u32) -> T {
    let mut value = MaybeUninit::<T>::uninit();
    if offset == Offsets::ABSENT || base == 0 {
        // SAFETY: the types read are integers and arrays of them: zeros are a value.
        return unsafe { core::mem::zeroed() };
    }
    // SAFETY: the helper writes the whole of `value`, with zeros where it cannot read.
    unsafe {
        bpf_probe_read_kernel(
            value.as_mut_ptr().cast(),
            size_of::<T>() as u32,
            (base + u64::from(offset)) as *const _,
        );
        value.assume_init()
    }
}

/// CLOCK_MONOTONIC.
#[inline(always)]
pub fn now_ns() -> u64 {
    // SAFETY: a helper without arguments.
    unsafe { bpf_ktime_get_ns() }
}

#[inline(always)]
pub fn this_cpu() -> u32 {
    // SAFETY: a helper without arguments.
    unsafe { bpf_get_smp_processor_id() as u32 }
}

/// Thread and process of the current task as the initial pid namespace numbers them.
#[inline(always)]
pub fn current_ids() -> (u32, u32) {
    // SAFETY: a helper without arguments.
    let both = unsafe { bpf_get_current_pid_tgid() };
    (both as u32, (both >> 32) as u32)
}

/// The current task's `task_struct`.
#[inline(always)]
pub fn current_task() -> u64 {
    // SAFETY: a helper without arguments.
    unsafe { bpf_get_current_task() }
}

/// Thread and process of a task.
#[inline(always)]
pub fn task_ids(task: u64) -> (u32, u32) {
    if off!(task_tgid) == off!(task_pid) + 4 {
        let both: u64 = field(task, off!(task_pid));
        (both as u32, (both >> 32) as u32)
    } else {
        (field(task, off!(task_pid)), field(task, off!(task_tgid)))
    }
}

/// A word of the current task, read without a helper call: the verifier knows the type of the current task, and the
/// offset is a constant to it.
#[inline(always)]
pub fn current_word<T: Copy>(offset: u32) -> T {
    // SAFETY: the current task is alive, and the loader took the offset from this kernel's type of it.
    unsafe {
        let task = bpf_get_current_task_btf() as *const u8;
        core::ptr::read_volatile(task.add(offset as usize).cast::<T>())
    }
}

/// Writes the current task's name.
///
/// # Safety
/// `name` is writable.
#[inline(always)]
pub unsafe fn current_comm(name: *mut [u8; THREAD_NAME_BYTES]) {
    // SAFETY: as above; the helper always writes the whole, terminated.
    unsafe { bpf_get_current_comm(name.cast(), THREAD_NAME_BYTES as u32) };
}

/// Adds to a word that other CPUs or an interrupt on this one may change at the same time. In assembly, because the
/// compiler's target offers no atomic arithmetic; the instruction is that of every kernel since 3.18.
///
/// # Safety
/// `word` is writable and aligned.
#[inline(always)]
pub unsafe fn atomic_add(word: *mut u64, add: u64) {
    // SAFETY: by the contract.
    unsafe { asm!("lock *(u64 *)({word} + 0) += {add}", word = in(reg) word, add = in(reg) add) };
}

/// `value & mask`, which the compiler must not drop because it knows a bound: the verifier of older kernels (6.1) does
/// not keep that bound, and needs to see the mask.
#[inline(always)]
pub fn masked(value: u32, mask: u32) -> usize {
    let mut value = u64::from(value);
    // SAFETY: no instruction: the compiler only forgets what it knows of the value.
    unsafe { asm!("/* {value} */", value = inout(reg) value) };
    (value & u64::from(mask)) as usize
}
