//! Kernels so short that the device waits for each launch call: eager execution of small operators.

use anyhow::Result;

use crate::clock::now_ns;
use crate::cpu;
use crate::stage::{Options, Stage, simulate};

const KERNELS: u64 = 300;
const WORK_NS: u64 = 2_000;

pub fn run(options: &Options) -> Result<()> {
    // What a launch costs with a framework's arguments.
    simulate("SIMCUDA_LAUNCH_NS", "25000");
    Stage::open(options)?.pinned().rounds(|stage, _| {
        let switches = cpu::involuntary_switches();
        let start = now_ns();
        for _ in 0..KERNELS {
            stage.gpu.kernel(WORK_NS)?;
        }
        let end = now_ns();
        stage.gpu.synchronize()?;
        stage.truth.planted(start, end, &["cuda.launch"], None);
        if cpu::involuntary_switches() != switches {
            stage.truth.disturbed();
        }
        Ok(())
    })
}
