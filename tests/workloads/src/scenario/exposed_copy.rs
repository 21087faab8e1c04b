//! The device waits for a copy from pinned memory that nothing overlaps.

use anyhow::Result;

use crate::clock::now_ns;
use crate::stage::{Options, Stage, simulate};

const BYTES: usize = 32 << 20;
const WORK_NS: u64 = 4_000_000;

pub fn run(options: &Options) -> Result<()> {
    // A link slow enough that a busy host moves the simulated device's bytes in the copy's time.
    simulate("SIMCUDA_PINNED_GBS", "2");
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
