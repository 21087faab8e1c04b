//! A worker process reads a file through io_uring, without the page cache, while the main thread waits for its answer on a
//! pipe. The call in which it waits names the ring; which file is read only the requests know.

use std::fs::OpenOptions;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use anyhow::{Context, Result, bail};
use io_uring::{IoUring, opcode, types};

use super::direct_read::shared_memory;
use crate::clock::now_ns;
use crate::files;
use crate::stage::{Options, Stage};
use crate::worker::{self, Worker};

const PIECES: usize = 8;
const PIECE: usize = 2 << 20;

pub fn run(options: &Options) -> Result<()> {
    let mut worker = Worker::start(&["uring-read", &options.data.to_string_lossy()])?;
    Stage::open(options)?.play(|_| worker.act())?;
    worker.end()
}

/// The worker: the whole file an act, in pieces that are all asked for at once.
pub fn work(data: &Path) -> Result<()> {
    let path = files::make(data, "uring.bin", PIECES * PIECE)?;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_DIRECT)
        .open(&path)
        .with_context(|| format!("cannot open {} without the page cache", path.display()))?;
    let buffer = shared_memory(PIECES * PIECE)?;
    let mut ring = IoUring::new(PIECES as u32).context("cannot make a ring (kernel.io_uring_disabled?)")?;
    worker::serve(|truth| {
        let start = now_ns();
        for piece in 0..PIECES {
            // SAFETY: inside the buffer.
            let place = unsafe { buffer.cast::<u8>().add(piece * PIECE) };
            let read = opcode::Read::new(types::Fd(file.as_raw_fd()), place, PIECE as u32);
            let entry = read.offset((piece * PIECE) as u64).build();
            // SAFETY: file and buffer outlive the request, which is waited for below.
            unsafe { ring.submission().push(&entry) }.context("the ring is full")?;
        }
        ring.submit_and_wait(PIECES).context("io_uring_enter failed")?;
        let read: i64 = ring.completion().map(|entry| i64::from(entry.result())).sum();
        let end = now_ns();
        if read != (PIECES * PIECE) as i64 {
            bail!("read {read} bytes of {}", PIECES * PIECE);
        }
        truth.planted(start, end, &["storage.read"], Some(path.display().to_string()));
        // Making requests for so many pages takes the CPU its time.
        truth.along_with("host.cpu.kernel");
        Ok(())
    })
}
