//! A loop that waits for each kernel before it launches the next: between two kernels the device waits for the
//! synchronisation to return, for the host to come from there to the launch call, for that call, and for what it launched
//! to arrive. Which of these is how long is the machine's affair; what was planted is that the queue was empty, so the
//! truth names the synchronisation as the enabler of the gap.
//!
//! Such a gap is microseconds long, and any program that takes the CPU for a moment is a large part of the sum: an act during
//! which the kernel counts an involuntary switch is marked as disturbed.

use anyhow::Result;

use crate::clock::now_ns;
use crate::cpu;
use crate::stage::{Options, Stage};

const KERNELS: u64 = 400;
const WORK_NS: u64 = 20_000;

pub fn run(options: &Options) -> Result<()> {
    Stage::open(options)?.pinned().rounds(|stage, _| {
        let mut switches = cpu::involuntary_switches();
        for _ in 0..KERNELS {
            let start = now_ns();
            stage.gpu.kernel(WORK_NS)?;
            let launched = now_ns();
            stage.gpu.synchronize()?;
            // The device is busy in the middle of it; the planted gap is what it has at both ends.
            stage.truth.planted(start, now_ns(), &["cuda.sync", "cuda.launch", "gpu.submit_latency"], None);
            stage.truth.along_with("host.cpu.user");
            // If an interrupt came in between, the kernel was over before the call began, and the call drained nothing.
            if launched - start < WORK_NS as i64 {
                stage.truth.enabled_by("cuStreamSynchronize");
            }
            let before = std::mem::replace(&mut switches, cpu::involuntary_switches());
            if switches != before {
                stage.truth.disturbed();
            }
        }
        Ok(())
    })
}
