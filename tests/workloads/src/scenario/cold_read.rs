//! A worker process reads a cold file, while the main thread waits for its answer on a pipe.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use anyhow::{Context, Result};

use crate::clock::now_ns;
use crate::files;
use crate::stage::{Options, Stage};
use crate::worker::{self, Worker};

const FILES: usize = 4;
const BYTES: usize = 16 << 20;

pub fn run(options: &Options) -> Result<()> {
    let mut worker = Worker::start(&["cold-read", &options.data.to_string_lossy()])?;
    Stage::open(options)?.play(|_| worker.act())?;
    worker.end()
}

/// The worker: one whole file an act.
pub fn work(data: &Path) -> Result<()> {
    let mut paths = Vec::new();
    for number in 0..FILES {
        paths.push(files::make(data, &format!("shard-{number:03}.bin"), BYTES)?);
    }
    let mut buffer = vec![0; BYTES];
    let mut next = paths.iter().cycle();
    worker::serve(|truth| {
        let path = next.next().context("there are no files")?;
        let file = File::open(path)?;
        files::make_cold(&file);
        let start = now_ns();
        file.read_exact_at(&mut buffer, 0)?;
        let end = now_ns();
        // While the device works it is a read; while pages are set up and copied out it is the kernel on the CPU.
        let cause = &["storage.read", "host.cpu.kernel"];
        truth.planted(start, end, cause, Some(path.display().to_string()));
        Ok(())
    })
}
