//! One short-lived process after the other.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

/// Runs until `end`.
pub fn run(end: &AtomicBool) {
    while !end.load(Ordering::Relaxed) {
        let status = Command::new("/bin/true").stdin(Stdio::null()).stdout(Stdio::null()).status();
        if status.is_err() {
            break;
        }
    }
}
