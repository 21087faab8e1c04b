//! Rings taken hold of the moment they are made.
//!
//! The recorder gives way to what it records: on a busy machine it may not run for some tenths of a second, and a process
//! that lived no longer would take its ring with it. So one thread does nothing but wait for announcements, and opens what
//! they name; a ring that is held outlives its process.

use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::AsFd as _;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::mapping::Found;
use crate::event::Pid;
use crate::record::priority;
use crate::record::probes::RingAnnouncements;

/// The thread, and what it found.
pub(super) struct Announced {
    found: Receiver<Found>,
    /// Closed to end the thread.
    ending: Option<PipeWriter>,
    thread: Option<JoinHandle<()>>,
}

impl Announced {
    /// Begins to wait.
    ///
    /// # Errors
    /// No thread or no pipe can be made.
    pub(super) fn listen(announcements: RingAnnouncements) -> io::Result<Self> {
        let (end, ending) = io::pipe()?;
        let (sender, found) = channel();
        let thread = std::thread::Builder::new()
            .name("gtrace-rings".into())
            .spawn(move || take_hold(announcements, &end, &sender))?;
        Ok(Self { found, ending: Some(ending), thread: Some(thread) })
    }

    /// What was found since the last call.
    pub(super) fn found(&self) -> impl Iterator<Item = Found> + '_ {
        self.found.try_iter()
    }
}

impl Drop for Announced {
    fn drop(&mut self) {
        drop(self.ending.take());
        if let Some(thread) = self.thread.take() {
            // A panic there has been printed; rings are looked for in other ways, too.
            let _ = thread.join();
        }
    }
}

fn take_hold(mut announcements: RingAnnouncements, end: &PipeReader, sender: &Sender<Found>) {
    // It runs a few times a recording, and at once.
    priority::take_share();
    loop {
        let mut waiting = [
            PollFd::new(announcements.as_fd(), PollFlags::POLLIN),
            PollFd::new(end.as_fd(), PollFlags::POLLIN),
        ];
        match poll(&mut waiting, PollTimeout::NONE) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(_) => return,
        }
        let ended = waiting[1].revents().is_some_and(|events| !events.is_empty());
        while let Some(memfd) = announcements.next_memfd() {
            // Gone already: there is nothing to be had any more.
            let Ok(found) = Found::look(Pid(memfd.tgid as i32), memfd.fd) else { continue };
            if sender.send(found).is_err() {
                return;
            }
        }
        if ended {
            return;
        }
    }
}
