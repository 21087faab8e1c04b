//! The main thread copies ordinary memory to the device, and waits for it.

use anyhow::Result;

use crate::clock::now_ns;
use crate::gpu::DeviceMemory;
use crate::stage::{Options, Stage};

const BYTES: usize = 64 << 20;

pub fn run(options: &Options) -> Result<()> {
    let from = vec![1_u8; BYTES];
    let mut stage = Stage::open(options)?;
    let to = stage.gpu.alloc(BYTES)?;
    // The driver makes its staging buffer, and threads for it, at the first copy.
    copy(&mut stage, to, &from)?;
    stage.pinned().play(|stage| copy(stage, to, &from))
}

fn copy(stage: &mut Stage, to: DeviceMemory, from: &[u8]) -> Result<()> {
    let start = now_ns();
    stage.gpu.copy_pageable(to, from)?;
    stage.truth.planted(start, now_ns(), &["copy.pageable"], None);
    Ok(())
}
