//! Stack samples: which function a thread was in.
//!
//! ```text
//! cpu_clock (kernel, each CPU) ── ring ──> worker: unwind, name functions, read Python's code ── rows ──> session
//!        ^ where a process keeps its Python frames ┘
//! ```
//!
//! A thread of its own, niced like the recorder: reading a large library's symbols must not keep the events waiting. No
//! process is stopped, and nothing of a target's is written or executed. What the worker cannot keep up with is lost and
//! counted; the recording goes on without it.

mod mappings;
mod memory;
mod module;
mod modules;
mod process;
mod python;
mod unwind;
mod worker;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use super::probes::StackSource;
use crate::store::schema::Sample;
use worker::Shared;

/// Batches that wait to be written.
const QUEUE: usize = 64;
/// How long the worker is waited for at the end: a file on a dead network mount may hold it for ever.
const LAST: Duration = Duration::from_secs(3);

/// Samples as they are named.
#[derive(Default)]
pub struct Stacks {
    running: Option<(Receiver<Vec<Sample>>, Arc<Shared>)>,
}

impl Stacks {
    /// Begins to name samples; without a source there are none.
    #[must_use]
    pub fn begin(source: Option<StackSource>) -> Self {
        let Some(source) = source else { return Self::default() };
        let shared = Arc::new(Shared::default());
        let (sender, receiver) = sync_channel(QUEUE);
        let theirs = Arc::clone(&shared);
        let made = std::thread::Builder::new()
            .name("gtrace-stacks".to_owned())
            .spawn(move || worker::run(source, &theirs, &sender));
        // Without the thread there are no samples, which the table shows.
        Self { running: made.is_ok().then_some((receiver, shared)) }
    }

    /// Hands out what has been named since.
    pub fn take(&mut self, receive: &mut dyn FnMut(Vec<Sample>)) {
        if let Some((rows, _)) = &self.running {
            rows.try_iter().for_each(receive);
        }
    }

    /// Hands out the rest. The clock must have been stopped.
    pub fn finish(&mut self, receive: &mut dyn FnMut(Vec<Sample>)) {
        let Some((rows, shared)) = &self.running else { return };
        shared.stop.store(true, Ordering::Release);
        let until = Instant::now() + LAST;
        loop {
            match rows.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(batch) => receive(batch),
                Err(RecvTimeoutError::Disconnected | RecvTimeoutError::Timeout) => return,
            }
        }
    }

    /// Samples that were taken out of the ring and not handed out.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.running.as_ref().map_or(0, |(_, shared)| {
            shared.refused.load(Ordering::Relaxed) + shared.malformed.load(Ordering::Relaxed)
        })
    }
}
