//! What is done at the end of a chain.

use std::fs::File;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};

use super::chain::Job;
use super::plan::{Cause, Deed};
use crate::clock::now_ns;
use crate::truth::Truth;
use crate::{cpu, files};

/// Files of a cold read.
const FILES: usize = 6;
/// Bytes read at a time, for each unit of size.
const READ: usize = 512 << 10;
/// Bytes written at a time, for each unit of size.
const WRITTEN: usize = 128 << 10;

/// One part in so many may be spent waiting for a CPU.
const MOST_DELAY: i64 = 50;

/// Does one thing.
pub struct Doer {
    deed: Deed,
    size: u64,
    idle: bool,
    paths: Vec<PathBuf>,
    next: usize,
    buffer: Vec<u8>,
}

impl Doer {
    /// For the end of a chain.
    ///
    /// # Errors
    /// Its files cannot be made.
    pub fn new(job: &Job, cause: &Cause) -> Result<Self> {
        let (deed, size) = (cause.deed, cause.size);
        let bytes = size as usize * if deed == Deed::ColdRead { READ } else { WRITTEN };
        let mut paths = Vec::new();
        match deed {
            Deed::ColdRead => {
                for number in 0..FILES {
                    paths.push(files::make(&job.data, &format!("composed-{size}-{number}.bin"), bytes)?);
                }
            }
            Deed::Fsync => paths.push(files::make(&job.data, &format!("composed-{size}.out"), bytes)?),
            Deed::Sleep | Deed::Compute | Deed::Copy => {}
        }
        let buffer = if paths.is_empty() { Vec::new() } else { vec![1; bytes] };
        Ok(Self { deed, size, idle: job.idle, paths, next: 0, buffer })
    }

    /// Does it, and writes down when.
    ///
    /// # Errors
    /// A file cannot be read or written.
    pub fn act(&mut self, truth: &mut Truth) -> Result<()> {
        if self.idle {
            return Ok(());
        }
        let delay = cpu::run_delay_ns();
        let (start, end, causes, object) = match self.deed {
            Deed::Sleep => {
                let start = now_ns();
                std::thread::sleep(Duration::from_millis(self.size));
                (start, now_ns(), &["host.sleep"][..], None)
            }
            Deed::Compute => {
                let start = now_ns();
                cpu::burn(self.size as i64 * 1_000_000);
                (start, now_ns(), &["host.cpu.user"][..], None)
            }
            Deed::ColdRead => {
                let path = &self.paths[self.next % self.paths.len()];
                self.next += 1;
                let file = File::open(path)?;
                files::make_cold(&file);
                let start = now_ns();
                file.read_exact_at(&mut self.buffer, 0)?;
                let end = now_ns();
                (start, end, &["storage.read", "host.cpu.kernel"][..], Some(path.display().to_string()))
            }
            Deed::Fsync => {
                let path = self.paths.first().context("there is no file")?;
                let mut file = File::options().write(true).open(path)?;
                file.seek(SeekFrom::Start(0))?;
                let start = now_ns();
                file.write_all(&self.buffer)?;
                file.sync_all()?;
                let causes = &["storage.fsync", "storage.write", "host.cpu.kernel"][..];
                (start, now_ns(), causes, Some(path.display().to_string()))
            }
            Deed::Copy => anyhow::bail!("the launching thread copies"),
        };
        truth.planted(start, end, causes, object);
        truth.by(self.deed.name());
        mark_if_disturbed(truth, end - start, delay);
        Ok(())
    }
}

/// Marks the last line as disturbed if its thread waited for a CPU for a good part of it: other programs did that. `delay`
/// is [`cpu::run_delay_ns`] from before.
pub fn mark_if_disturbed(truth: &mut Truth, length: i64, delay: i64) {
    if (cpu::run_delay_ns() - delay) * MOST_DELAY > length {
        truth.disturbed();
    }
}
