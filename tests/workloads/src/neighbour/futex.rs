//! Two threads that wake each other all the time.

use std::io::{Read as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use super::pace::Pace;
use crate::cpu;

/// Runs until `end`: one round trip goes by a channel (a futex) and back by a pipe.
pub fn run(end: &AtomicBool) {
    let Ok((mut read, mut write)) = std::io::pipe() else { return };
    std::thread::scope(|scope| {
        let (send, receive) = mpsc::sync_channel::<()>(0);
        scope.spawn(move || {
            cpu::pin(cpu::elsewhere());
            while receive.recv().is_ok() && write.write_all(&[1]).is_ok() {}
        });
        let mut pace = Pace::new();
        while !end.load(Ordering::Relaxed) {
            pace.step();
            if send.send(()).is_err() || read.read_exact(&mut [0]).is_err() {
                break;
            }
        }
        // Dropping the channel's end lets the other thread leave.
        drop(send);
    });
}
