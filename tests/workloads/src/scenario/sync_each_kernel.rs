//! A loop that waits for each kernel before it launches the next: between two kernels the device waits for the
//! synchronisation to return, for the launch call, and for what was launched to arrive.

use anyhow::Result;

use crate::clock::now_ns;
use crate::stage::{Options, Stage};

const KERNELS: u64 = 100;
const WORK_NS: u64 = 150_000;

pub fn run(options: &Options) -> Result<()> {
    Stage::open(options)?.pinned().rounds(|stage, _| {
        for _ in 0..KERNELS {
            let start = now_ns();
            stage.gpu.kernel(WORK_NS)?;
            stage.gpu.synchronize()?;
            // The device is busy in the middle of it; the planted gap is what it has at both ends.
            stage.truth.planted(start, now_ns(), &["cuda.launch", "gpu.submit_latency", "cuda.sync"], None);
            stage.truth.enabled_by("cuStreamSynchronize");
        }
        Ok(())
    })
}
