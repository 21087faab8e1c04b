//! Fork and exit.

use std::ptr;
use std::sync::atomic::{
    AtomicPtr, AtomicU32,
    Ordering::{Acquire, Release},
};

use tracer_abi::shim::{RingHeader, ShimState};

use crate::clock;
use crate::collector::Collector;
use crate::nvtx;
use crate::worker;

/// How long exit waits for the last flush.
const PATIENCE_NS: u64 = 1_000_000_000;

const ALIVE: u32 = 0;
const ENDING: u32 = 1;
const ENDED: u32 = 2;
const DEAD: u32 = 3;

static STATE: AtomicU32 = AtomicU32::new(ALIVE);
static HEADER: AtomicPtr<RingHeader> = AtomicPtr::new(ptr::null_mut());

/// Whether the worker has anything to do here.
pub(crate) fn is_alive() -> bool {
    matches!(STATE.load(Acquire), ALIVE | ENDING)
}

/// Whether the process exits and waits for the last flush.
pub(crate) fn is_ending() -> bool {
    STATE.load(Acquire) == ENDING
}

/// The last flush is done.
pub(crate) fn ended() {
    let _ = STATE.compare_exchange(ENDING, ENDED, Release, Acquire);
}

/// Handles fork and exit from now on.
pub fn install(header: &'static RingHeader) {
    HEADER.store(ptr::from_ref(header).cast_mut(), Release);
    // SAFETY: functions of this library, which is never unloaded.
    unsafe {
        libc::pthread_atfork(None, None, Some(in_child));
        libc::atexit(at_exit);
    }
}

/// In a forked child the worker is gone, CUDA is unusable, CUPTI's locks may be held by threads that do not exist, and
/// the ring is the parent's: nothing is touched any more. Only stores to memory of its own: async-signal-safe.
unsafe extern "C" fn in_child() {
    STATE.store(DEAD, Release);
    nvtx::end_session();
    if let Some(collector) = Collector::get() {
        collector.armed.store(false, Release);
    }
}

/// Lets the worker take what CUPTI still has. The program's exit waits for that, at most a second: CUPTI may hang when
/// the driver has gone before us.
extern "C" fn at_exit() {
    if STATE.compare_exchange(ALIVE, ENDING, Release, Acquire).is_err() {
        return;
    }
    worker::wake();
    let deadline = clock::monotonic_ns() + PATIENCE_NS;
    while STATE.load(Acquire) == ENDING && clock::monotonic_ns() < deadline {
        let pause = libc::timespec { tv_sec: 0, tv_nsec: 1_000_000 };
        // SAFETY: a time, and nothing to fill.
        unsafe { libc::nanosleep(&raw const pause, ptr::null_mut()) };
    }
    let whole = STATE.swap(DEAD, Release) == ENDED;
    if let Some(collector) = Collector::get() {
        collector.armed.store(false, Release);
    }
    // SAFETY: null, or the head of the ring, which is never unmapped.
    if let (true, Some(header)) = (whole, unsafe { HEADER.load(Acquire).as_ref() }) {
        // Why nothing was collected stays readable.
        let _ = header.state.fetch_update(Release, Acquire, |state| {
            (state != ShimState::Refused as u32).then_some(ShimState::Ended as u32)
        });
    }
}
