//! The device waits for a copy from pinned memory that nothing overlaps.

use anyhow::Result;

use crate::clock::now_ns;
use crate::stage::{Options, Stage};

const BYTES: usize = 128 << 20;
const WORK_NS: u64 = 4_000_000;

pub fn run(options: &Options) -> Result<()> {
    let stage = Stage::open(options)?;
    let to = stage.gpu.alloc(BYTES)?;
    let from = stage.gpu.pinned(BYTES)?;
    stage.gpu.copy_pinned(to, &from)?;
    stage.gpu.synchronize()?;
    stage.pinned().rounds(|stage, _| {
        stage.gpu.kernel(WORK_NS)?;
        stage.gpu.synchronize()?;
        let start = now_ns();
        stage.gpu.copy_pinned(to, &from)?;
        stage.gpu.synchronize()?;
        stage.truth.planted(start, now_ns(), &["copy.pinned"], None);
        Ok(())
    })
}
