//! The device has a second user, outside the recording: queued work waits while it computes. What was planted is what a
//! kernel took longer than its own length.

use std::time::Duration;

use anyhow::Result;

use crate::clock::now_ns;
use crate::gpu::Gpu;
use crate::stage::{Options, Stage};

const WORK_NS: u64 = 4_000_000;
/// How long the other process computes at a time.
const OTHER_NS: u64 = 12_000_000;
/// From the call to the start of a kernel, and from its end to the return of the wait: less is no delay.
const NOISE_NS: i64 = 300_000;

pub fn run(options: &Options) -> Result<()> {
    Stage::open(options)?.pinned().rounds(|stage, _| {
        stage.gpu.kernel(WORK_NS)?;
        let launched = now_ns();
        stage.gpu.synchronize()?;
        let began = now_ns() - WORK_NS as i64;
        if began - launched > NOISE_NS {
            stage.truth.planted(launched, began, &["gpu.queued", "gpu.other_process"], None);
        }
        Ok(())
    })
}

/// The other process: computes in bursts on the same device until it is killed.
///
/// # Errors
/// There is no GPU, or its output cannot be written.
pub fn share() -> Result<()> {
    let gpu = Gpu::open()?;
    println!("READY {}", std::process::id());
    loop {
        gpu.kernel(OTHER_NS)?;
        gpu.synchronize()?;
        std::thread::sleep(Duration::from_millis(20));
    }
}
