//! One thread feeds two devices, and the queue of the first is full: its launches block, and the second device has nothing.

use anyhow::Result;

use crate::clock::now_ns;
use crate::gpu::Gpu;
use crate::stage::{Options, Stage, simulate};

/// More than a queue holds.
const KERNELS: u64 = 1_300;
/// Length of one of them: longer than a launch takes.
const SHORT_NS: u64 = 20_000;
const WORK_NS: u64 = 4_000_000;

pub fn run(options: &Options) -> Result<()> {
    simulate("SIMCUDA_DEVICES", "2");
    let second = Gpu::open_device(1)?;
    second.kernel(WORK_NS)?;
    second.synchronize()?;
    let stage = Stage::open(options)?;
    stage.pinned().rounds(|stage, _| {
        second.make_current()?;
        second.kernel(WORK_NS)?;
        second.synchronize()?;
        stage.gpu.make_current()?;
        let start = now_ns();
        for _ in 0..KERNELS {
            stage.gpu.kernel(SHORT_NS)?;
        }
        stage.truth.planted(start, now_ns(), &["cuda.launch"], None);
        second.make_current()?;
        second.kernel(WORK_NS)?;
        second.synchronize()?;
        stage.gpu.make_current()?;
        stage.gpu.synchronize()
    })
}
