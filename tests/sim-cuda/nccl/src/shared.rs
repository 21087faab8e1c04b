//! Memory that the ranks of a communicator share: a file in `/dev/shm` that is named after the communicator's id.

use std::ffi::CString;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};

use sim_abi::{Cell, SLOTS};

use crate::result::{self, Result};

/// Ranks of a communicator.
pub const MOST_RANKS: usize = 64;

type Cells = [Cell; SLOTS];

/// One rank's wish in a split.
#[repr(C)]
pub struct Split {
    /// Number of the split, from 1; written last.
    pub number: AtomicU64,
    /// Which group.
    pub color: AtomicI32,
    /// Order in the group.
    pub key: AtomicI32,
}

/// What is shared. All zero at the start.
#[repr(C)]
pub struct Shared {
    /// Ranks that have come.
    pub joined: AtomicU32,
    /// Ranks whose set-up is done.
    pub ready: AtomicU32,
    /// One for each rank: changes when an operation has started on all of its ranks.
    pub bells: [AtomicU32; MOST_RANKS],
    /// Wishes of splits, of odd and of even number: nobody is two ahead.
    pub splits: [[Split; MOST_RANKS]; 2],
    /// When each rank started collectives.
    pub collectives: [Cells; MOST_RANKS],
    /// When sender (0) and receiver (1) started what goes from the first to the second.
    pub pairs: [[[Cells; 2]; MOST_RANKS]; MOST_RANKS],
}

/// Opens, or makes, the memory of a communicator. It stays mapped for the life of the process, since kernels may be under
/// way.
pub fn open(hash: u64) -> Result<&'static Shared> {
    let name = file_name(hash)?;
    let bytes = size_of::<Shared>();
    // SAFETY: a NUL-terminated name and flags.
    let fd = unsafe { libc::shm_open(name.as_ptr(), libc::O_RDWR | libc::O_CREAT | libc::O_CLOEXEC, 0o600) };
    if fd < 0 {
        return Err(result::SYSTEM);
    }
    // SAFETY: a descriptor that the call has just made.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    // SAFETY: our descriptor; all ranks set the same size, so nothing is cut off.
    if unsafe { libc::ftruncate(fd.as_raw_fd(), bytes as libc::off_t) } != 0 {
        return Err(result::SYSTEM);
    }
    // SAFETY: a new mapping of the file, at a place of the kernel's choice.
    let start = unsafe {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        libc::mmap(std::ptr::null_mut(), bytes, protection, libc::MAP_SHARED, fd.as_raw_fd(), 0)
    };
    if start == libc::MAP_FAILED {
        return Err(result::SYSTEM);
    }
    // SAFETY: the mapping has the size, is page-aligned, never unmapped, and made of atomics, for which all zero is valid.
    Ok(unsafe { &*start.cast::<Shared>() })
}

/// Takes the name away: all have it open.
pub fn unlink(hash: u64) {
    if let Ok(name) = file_name(hash) {
        // SAFETY: a NUL-terminated name.
        unsafe { libc::shm_unlink(name.as_ptr()) };
    }
}

fn file_name(hash: u64) -> Result<CString> {
    CString::new(format!("/gtrace-sim-nccl-{hash:016x}")).map_err(|_| result::INTERNAL)
}

/// Adds one to a count that others wait for.
pub fn count_up(word: &AtomicU32) {
    word.fetch_add(1, Ordering::AcqRel);
    // SAFETY: an address in the shared mapping and a number.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
}

/// Sleeps until a count has reached `least`.
pub fn wait_for(word: &AtomicU32, least: u32) {
    loop {
        let now = word.load(Ordering::Acquire);
        if now >= least {
            return;
        }
        // SAFETY: an address in the shared mapping and a number; no time limit.
        unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, now, 0usize) };
    }
}
