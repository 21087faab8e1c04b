//! A worker process in a control group with a limit reads a cold file, while the main thread waits for its answer on a pipe.
//! The device is fast: the limit is the cause.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use anyhow::Result;

use crate::clock::now_ns;
use crate::files;
use crate::group::Group;
use crate::stage::{Options, Stage};
use crate::worker::{self, Worker};

const BYTES: usize = 1 << 20;
/// So that an act takes some 30 ms.
const BYTES_A_SECOND: u64 = 32 << 20;

pub fn run(options: &Options) -> Result<()> {
    let path = files::make(&options.data, "held-back.bin", BYTES)?;
    let group = Group::of_slow_reads(&path, BYTES_A_SECOND)?;
    let mut worker =
        Worker::start(&["throttled-read", &path.to_string_lossy(), &group.path().to_string_lossy()])?;
    Stage::open(options)?.play(|_| worker.act())?;
    worker.end()
}

/// The worker: the whole file an act.
pub fn work(path: &Path, group: &Path) -> Result<()> {
    Group::join(group)?;
    let mut buffer = vec![0; BYTES];
    worker::serve(|truth| {
        let file = File::open(path)?;
        files::make_cold(&file);
        let start = now_ns();
        file.read_exact_at(&mut buffer, 0)?;
        let end = now_ns();
        truth.planted(start, end, &["storage.read.throttled"], Some(path.display().to_string()));
        // What was let go has to be read all the same.
        truth.along_with("storage.read.device");
        Ok(())
    })
}
