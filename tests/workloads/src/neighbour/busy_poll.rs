//! A thread that polls without ever sleeping.

use std::os::fd::AsRawFd as _;
use std::sync::atomic::{AtomicBool, Ordering};

/// Runs until `end`: asks an empty pipe whether it has something, without a time-out.
pub fn run(end: &AtomicBool) {
    let Ok((read, _write)) = std::io::pipe() else { return };
    let mut entry = libc::pollfd { fd: read.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    while !end.load(Ordering::Relaxed) {
        // SAFETY: one live entry is given, and its count is 1.
        unsafe { libc::poll(&raw mut entry, 1, 0) };
    }
}
