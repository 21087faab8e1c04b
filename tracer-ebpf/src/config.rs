//! Constants that the loader writes before the programs are verified: the verifier sees their values and removes the
//! branches that this kernel does not need.

use tracer_abi::kernel::{KernelConfig, Offsets, SYSCALL_TABLE};

#[unsafe(no_mangle)]
// SAFETY: a structure of integers: all zeros is a value.
pub static OFFSETS: Offsets = unsafe { core::mem::zeroed() };

#[unsafe(no_mangle)]
pub static CONFIG: KernelConfig = KernelConfig {
    fast_syscall_ns: 0,
    own_tgid: 0,
    kernel_threads: 0,
    direct_end_io: 0,
    chain_end_io: 0,
    throttle_work: 0,
    swap_end_io: [0; 2],
    o_direct: 0,
    cpus: 0,
};

#[unsafe(no_mangle)]
pub static SYSCALL_CLASSES: [u8; SYSCALL_TABLE] = [0; SYSCALL_TABLE];

/// The value that the loader gave a constant. Read as volatile: the compiler must not take the zeros above for it.
#[inline(always)]
pub fn constant<T: Copy>(value: &'static T) -> T {
    // SAFETY: a reference is readable.
    unsafe { core::ptr::read_volatile(value) }
}

/// An offset by its name.
macro_rules! off {
    ($field:ident) => {
        $crate::config::constant(&$crate::config::OFFSETS.$field)
    };
}
pub(crate) use off;

#[inline(always)]
pub fn fast_syscall_ns() -> u64 {
    constant(&CONFIG.fast_syscall_ns)
}

#[inline(always)]
pub fn own_tgid() -> u32 {
    constant(&CONFIG.own_tgid)
}

#[inline(always)]
pub fn kernel_threads() -> bool {
    constant(&CONFIG.kernel_threads) != 0
}

#[inline(always)]
pub fn direct_end_io() -> u64 {
    constant(&CONFIG.direct_end_io)
}

#[inline(always)]
pub fn chain_end_io() -> u64 {
    constant(&CONFIG.chain_end_io)
}

#[inline(always)]
pub fn throttle_work() -> u64 {
    constant(&CONFIG.throttle_work)
}

#[inline(always)]
pub fn swap_end_io() -> [u64; 2] {
    constant(&CONFIG.swap_end_io)
}

#[inline(always)]
pub fn o_direct() -> u32 {
    constant(&CONFIG.o_direct)
}

#[inline(always)]
pub fn cpus() -> u32 {
    constant(&CONFIG.cpus)
}

/// The class of a system call ([`tracer_abi::kernel::SyscallClass`] as its number).
#[inline(always)]
pub fn syscall_class(nr: i32) -> u8 {
    if nr < 0 || nr as usize >= SYSCALL_TABLE {
        return 0;
    }
    let index = nr as usize & (SYSCALL_TABLE - 1);
    // SAFETY: `index` is below the table's length.
    unsafe { core::ptr::read_volatile((&raw const SYSCALL_CLASSES).cast::<u8>().add(index)) }
}
