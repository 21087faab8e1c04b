//! Devices that several processes share: while a kernel of one runs, those of another wait (time-slicing without MPS).
//!
//! Processes with the same `SIMCUDA_SHARED`, the path of a file, share their devices. The file holds one word a device: whose
//! turn it is, and until when. A kernel takes the turn for its own length when it starts; one of another process that comes
//! meanwhile starts when that is over. Kernels of one process run beside each other as ever. Copies have engines of their own
//! in each process.

use std::fs::OpenOptions;
use std::os::fd::AsRawFd as _;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::process;

/// Devices in the file.
const DEVICES: usize = 64;
/// Bits of a turn's end, in units of `1 << UNIT` ns: thirteen days since boot.
const END_BITS: u32 = 42;
const UNIT: u32 = 8;

/// Takes the device for a kernel that starts at `start` and ends at `end` (CLOCK_MONOTONIC). An error: it is another
/// process's turn until then.
pub fn take_turn(device: u32, start: u64, end: u64) -> Result<(), u64> {
    let Some(turn) = turns().and_then(|turns| turns.get(device as usize)) else { return Ok(()) };
    let own = u64::from(std::process::id()) << END_BITS;
    let mut present = turn.load(Ordering::Acquire);
    loop {
        let (owner, until) = (present >> END_BITS << END_BITS, (present & ((1 << END_BITS) - 1)) << UNIT);
        if owner != own && until > start {
            return Err(until);
        }
        let until = if owner == own { until.max(end) } else { end };
        let wanted = own | (until.div_ceil(1 << UNIT) & ((1 << END_BITS) - 1));
        match turn.compare_exchange_weak(present, wanted, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return Ok(()),
            Err(now) => present = now,
        }
    }
}

/// The words; `None`: devices are not shared.
fn turns() -> Option<&'static [AtomicU64]> {
    static TURNS: OnceLock<Option<&'static [AtomicU64]>> = OnceLock::new();
    *TURNS.get_or_init(|| {
        let path = std::env::var_os("SIMCUDA_SHARED")?;
        let bytes = DEVICES * size_of::<AtomicU64>();
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let file = match file.and_then(|file| file.set_len(bytes as u64).map(|()| file)) {
            Ok(file) => file,
            Err(error) => {
                process::log(&format!("SIMCUDA_SHARED={}: {error}", path.display()));
                return None;
            }
        };
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping of a file of that length, at a place of the kernel's choice, never unmapped.
        let start = unsafe {
            libc::mmap(std::ptr::null_mut(), bytes, protection, libc::MAP_SHARED, file.as_raw_fd(), 0)
        };
        if start == libc::MAP_FAILED {
            return None;
        }
        // SAFETY: mapped for ever, aligned to a page; all that write it use atomics.
        Some(unsafe { std::slice::from_raw_parts(start.cast::<AtomicU64>(), DEVICES) })
    })
}
