//! How often a program was skipped because it was running already on that CPU.
//!
//! `bpf_prog_info.recursion_misses` (5.12 and later), which aya does not show: asked for with `BPF_OBJ_GET_INFO_BY_FD`.

use std::os::fd::{AsRawFd, BorrowedFd};

const BPF_OBJ_GET_INFO_BY_FD: libc::c_long = 15;
/// Offset of `recursion_misses` in `struct bpf_prog_info` (`include/uapi/linux/bpf.h`, fixed as part of the ABI).
const RECURSION_MISSES: usize = 208;
const INFO_BYTES: usize = 232;

/// `union bpf_attr` for that command.
#[repr(C)]
struct InfoAttribute {
    descriptor: u32,
    length: u32,
    info: u64,
}

/// The program's misses so far; `None` where the kernel does not say.
pub fn misses(program: BorrowedFd<'_>) -> Option<u64> {
    let mut info = [0_u8; INFO_BYTES];
    let mut attribute = InfoAttribute {
        descriptor: u32::try_from(program.as_raw_fd()).ok()?,
        length: INFO_BYTES as u32,
        info: info.as_mut_ptr() as u64,
    };
    // SAFETY: the attribute and the buffer that it points to live until the call returns, and their sizes are given.
    let result = unsafe {
        libc::syscall(libc::SYS_bpf, BPF_OBJ_GET_INFO_BY_FD, &raw mut attribute, size_of::<InfoAttribute>())
    };
    if result != 0 || (attribute.length as usize) < RECURSION_MISSES + 8 {
        return None;
    }
    let bytes = info.get(RECURSION_MISSES..RECURSION_MISSES + 8)?;
    Some(u64::from_ne_bytes(bytes.try_into().ok()?))
}
