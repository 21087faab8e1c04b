//! A worker process reads a file without the page cache (`O_DIRECT`) into memory that it shares, while the main thread waits
//! for its answer on a pipe. The pages that the requests carry are those of the shared memory, not of the file.

use std::fs::OpenOptions;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::clock::now_ns;
use crate::files;
use crate::stage::{Options, Stage};
use crate::worker::{self, Worker};

const BYTES: usize = 16 << 20;

pub fn run(options: &Options) -> Result<()> {
    let mut worker = Worker::start(&["direct-read", &options.data.to_string_lossy()])?;
    Stage::open(options)?.play(|_| worker.act())?;
    worker.end()
}

/// The worker: the whole file an act.
pub fn work(data: &Path) -> Result<()> {
    let path = files::make(data, "direct.bin", BYTES)?;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_DIRECT)
        .open(&path)
        .with_context(|| format!("cannot open {} without the page cache", path.display()))?;
    let buffer = shared_memory(BYTES)?;
    worker::serve(|truth| {
        let start = now_ns();
        // SAFETY: the buffer has so many bytes, and nobody else uses it.
        let read = unsafe { libc::pread(file.as_raw_fd(), buffer, BYTES, 0) };
        let end = now_ns();
        if read != BYTES as isize {
            bail!("read {read} bytes of {BYTES}: {}", std::io::Error::last_os_error());
        }
        truth.planted(start, end, &["storage.read"], Some(path.display().to_string()));
        // Making requests for so many pages takes the CPU its time.
        truth.along_with("host.cpu.kernel");
        Ok(())
    })
}

/// Memory that could be shared with other processes, for the life of this one. Its pages are there already.
pub(super) fn shared_memory(bytes: usize) -> Result<*mut libc::c_void> {
    let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
    // SAFETY: a new mapping at an address that the kernel chooses.
    let memory =
        unsafe { libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
    if memory == libc::MAP_FAILED {
        return Err(std::io::Error::last_os_error()).context("cannot map shared memory");
    }
    Ok(memory)
}
