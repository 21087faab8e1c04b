//! The loud and innocent: they run beside what is planted and must get no blame.

mod busy_poll;
mod chatter;
mod disk;
mod futex;
mod pace;
mod short_lived;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use anyhow::{Context, Result};

use crate::cpu;

/// A neighbour inside the process that has the GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inside {
    /// Two threads that wake each other through a futex and a pipe, thousands of times a second.
    Futex,
    /// A thread that talks to itself over TCP.
    Chatter,
    /// A thread that polls without ever sleeping.
    BusyPoll,
    /// A thread that computes without pause, in a Python program without the interpreter lock.
    Native,
    /// A thread that starts one short-lived process after the other.
    ShortLived,
}

impl Inside {
    /// By its name on the command line.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        match name {
            "futex" => Some(Self::Futex),
            "chatter" => Some(Self::Chatter),
            "busy-poll" => Some(Self::BusyPoll),
            "native" => Some(Self::Native),
            "short-lived" => Some(Self::ShortLived),
            _ => None,
        }
    }

    /// Lets it begin, on a CPU of its own where there are two.
    ///
    /// # Errors
    /// It cannot be set up.
    pub fn begin(self) -> Result<Neighbour> {
        let end = Arc::new(AtomicBool::new(false));
        let theirs = Arc::clone(&end);
        let work: Box<dyn FnOnce() + Send> = match self {
            Self::Futex => Box::new(move || futex::run(&theirs)),
            Self::Chatter => {
                let chatter = chatter::Chatter::new()?;
                Box::new(move || chatter.run(&theirs))
            }
            Self::BusyPoll => Box::new(move || busy_poll::run(&theirs)),
            Self::Native => Box::new(move || {
                while !theirs.load(Ordering::Relaxed) {
                    cpu::burn(1_000_000);
                }
            }),
            Self::ShortLived => Box::new(move || short_lived::run(&theirs)),
        };
        let thread = std::thread::Builder::new().name("neighbour".into()).spawn(move || {
            cpu::pin(cpu::elsewhere());
            work();
        });
        Ok(Neighbour { end, thread: thread.context("cannot start the neighbour's thread")? })
    }
}

/// A neighbour under way.
pub struct Neighbour {
    end: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Neighbour {
    /// Tells it to end and waits for it.
    pub fn end(self) {
        self.end.store(true, Ordering::Relaxed);
        let _ = self.thread.join();
    }
}

/// The neighbour that is a process of its own, outside the recording: hammers the disk until it is killed.
///
/// # Errors
/// Its file cannot be made or read.
pub fn hammer_disk(data: &Path) -> Result<()> {
    cpu::pin(cpu::elsewhere());
    disk::run(data)
}
