//! Work of one device that waits for another device's, in turns: while one computes, the other has nothing to do.

use anyhow::Result;

use crate::clock::now_ns;
use crate::gpu::Gpu;
use crate::stage::{Options, Stage, simulate};

const WORK_NS: u64 = 6_000_000;

pub fn run(options: &Options) -> Result<()> {
    simulate("SIMCUDA_DEVICES", "2");
    let second = Gpu::open_device(1)?;
    second.kernel(WORK_NS)?;
    second.synchronize()?;
    let made = second.event()?;
    Stage::open(options)?.pinned().rounds(|stage, _| {
        let start = now_ns();
        second.make_current()?;
        second.kernel(WORK_NS)?;
        second.record(made)?;
        stage.gpu.make_current()?;
        stage.gpu.wait_for(made)?;
        stage.gpu.kernel(WORK_NS)?;
        stage.gpu.synchronize()?;
        stage.truth.planted(start, now_ns(), &["gpu.dependency"], None);
        Ok(())
    })
}
