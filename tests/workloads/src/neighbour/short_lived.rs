//! One short-lived process after the other, several hundred a second.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Between two: without it most of the two CPUs would go into making processes, and the planted stall would truly be a
/// wait for a CPU.
const PAUSE: Duration = Duration::from_millis(2);

/// Runs until `end`.
pub fn run(end: &AtomicBool) {
    while !end.load(Ordering::Relaxed) {
        let status = Command::new("/bin/true").stdin(Stdio::null()).stdout(Stdio::null()).status();
        if status.is_err() {
            break;
        }
        std::thread::sleep(PAUSE);
    }
}
