//! A worker process computes, while the main thread waits for its answer on a pipe.

use anyhow::Result;

use crate::clock::now_ns;
use crate::cpu;
use crate::stage::{Options, Stage};
use crate::worker::{self, Worker};

const DECODE_NS: i64 = 25_000_000;

pub fn run(options: &Options) -> Result<()> {
    let mut worker = Worker::start(&["decode"])?;
    Stage::open(options)?.play(|_| worker.act())?;
    worker.end()
}

/// The worker: computes for a fixed time an act.
pub fn work() -> Result<()> {
    worker::serve(|truth| {
        let start = now_ns();
        cpu::burn(DECODE_NS);
        truth.planted(start, now_ns(), &["host.cpu.user"], None);
        Ok(())
    })
}
