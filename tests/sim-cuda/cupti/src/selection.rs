//! What is to be recorded.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use crate::kind;

/// Highest number of a traced function, rounded up.
const CBIDS: usize = 1024;

static KINDS: AtomicU64 = AtomicU64::new(0);
static ON: [AtomicU64; CBIDS / 64] = [const { AtomicU64::new(0) }; CBIDS / 64];
static OFF: [AtomicU64; CBIDS / 64] = [const { AtomicU64::new(0) }; CBIDS / 64];
static ALL_SYNC: AtomicBool = AtomicBool::new(true);
static THREAD_ID_TYPE: AtomicU32 = AtomicU32::new(0);

/// Switches a kind.
pub fn set_kind(kind: u32, on: bool) {
    let bit = 1u64 << (kind & 63);
    if on {
        KINDS.fetch_or(bit, Ordering::AcqRel);
    } else {
        KINDS.fetch_and(!bit, Ordering::AcqRel);
    }
    if kind == kind::DRIVER {
        // A switch of the whole kind overrides those of single functions.
        for word in ON.iter().chain(&OFF) {
            word.store(0, Ordering::Release);
        }
    }
}

/// Whether a kind is on.
pub fn kind_is_on(kind: u32) -> bool {
    KINDS.load(Ordering::Acquire) & (1u64 << (kind & 63)) != 0
}

/// All kinds that are on.
pub fn kinds() -> Vec<u32> {
    (1..64).filter(|kind| kind_is_on(*kind)).collect()
}

/// Switches everything off.
pub fn clear() {
    KINDS.store(0, Ordering::Release);
    for word in ON.iter().chain(&OFF) {
        word.store(0, Ordering::Release);
    }
}

/// Switches one driver function, against its kind. False if there is no such function.
pub fn set_driver_api(cbid: u32, on: bool) -> bool {
    let (Some(on_word), Some(off_word)) = (ON.get(cbid as usize / 64), OFF.get(cbid as usize / 64)) else {
        return false;
    };
    let bit = 1u64 << (cbid % 64);
    let (set, reset) = if on { (on_word, off_word) } else { (off_word, on_word) };
    set.fetch_or(bit, Ordering::AcqRel);
    reset.fetch_and(!bit, Ordering::AcqRel);
    true
}

/// Whether calls of a driver function are to be recorded.
pub fn driver_api_is_on(cbid: u32) -> bool {
    let bit = 1u64 << (cbid % 64);
    let test = |words: &[AtomicU64]| {
        words.get(cbid as usize / 64).is_some_and(|w| w.load(Ordering::Acquire) & bit != 0)
    };
    cbid != 0 && (test(&ON) || (kind_is_on(kind::DRIVER) && !test(&OFF)))
}

/// Whether queries that are not ready make records too.
pub fn all_sync() -> bool {
    ALL_SYNC.load(Ordering::Relaxed)
}

/// Switches that.
pub fn set_all_sync(on: bool) {
    ALL_SYNC.store(on, Ordering::Relaxed);
}

/// 0: threads are named by `pthread_self`, cut to 32 bits; 1: by the system's number.
pub fn thread_id_type() -> u32 {
    THREAD_ID_TYPE.load(Ordering::Relaxed)
}

/// Sets that.
pub fn set_thread_id_type(value: u32) {
    THREAD_ID_TYPE.store(value, Ordering::Relaxed);
}

/// Process and calling thread, as the records name them.
pub fn ids() -> [u32; 2] {
    [process_id(), thread_id()]
}

/// The process, asked of the kernel once only: a recorder of system calls would see each question.
pub fn process_id() -> u32 {
    static PID: OnceLock<u32> = OnceLock::new();
    *PID.get_or_init(std::process::id)
}

fn thread_id() -> u32 {
    thread_local!(static TID: u32 = {
        // SAFETY: no arguments.
        unsafe { libc::syscall(libc::SYS_gettid) as u32 }
    });
    if thread_id_type() == 1 {
        TID.try_with(|tid| *tid).unwrap_or(0)
    } else {
        // SAFETY: no arguments.
        unsafe { libc::pthread_self() as u32 }
    }
}
