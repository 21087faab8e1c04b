//! CLOCK_MONOTONIC, the clock of a recording.

/// Now, in nanoseconds of CLOCK_MONOTONIC. Through the vDSO: no system call.
#[must_use]
pub fn now_ns() -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a live timespec; the clock exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}
