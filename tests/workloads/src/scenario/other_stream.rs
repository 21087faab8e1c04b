//! Work that is queued behind another stream, which waits for a function on the host.

use anyhow::Result;

use crate::gpu::HostSleep;
use crate::stage::{Options, Stage};

const SLEEP_NS: u64 = 6_000_000;
const WORK_NS: u64 = 4_000_000;

pub fn run(options: &Options) -> Result<()> {
    let stage = Stage::open(options)?;
    let other = stage.gpu.another_stream()?;
    let event = stage.gpu.event()?;
    let sleep = HostSleep::new(SLEEP_NS);
    stage.pinned().rounds(|stage, _| {
        stage.gpu.kernel(WORK_NS)?;
        stage.gpu.synchronize()?;
        other.call_host(sleep)?;
        other.record(event)?;
        stage.gpu.wait_for(event)?;
        stage.gpu.kernel(WORK_NS)?;
        stage.gpu.synchronize()?;
        let (start, end) = sleep.ran();
        stage.truth.planted(start, end, &["gpu.dependency"], None);
        Ok(())
    })
}
