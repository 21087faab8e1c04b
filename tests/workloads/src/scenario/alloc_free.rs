//! The main thread allocates and frees device memory in every step, without a caching allocator.

use anyhow::Result;

use crate::clock::now_ns;
use crate::stage::{Options, Stage};

const BYTES: usize = 8 << 20;
/// Tensors of a step.
const BUFFERS: usize = 120;

pub fn run(options: &Options) -> Result<()> {
    Stage::open(options)?.pinned().play(|stage| {
        let start = now_ns();
        for _ in 0..BUFFERS {
            let memory = stage.gpu.alloc(BYTES)?;
            stage.gpu.free(memory)?;
        }
        stage.truth.planted(start, now_ns(), &["cuda.malloc", "cuda.free"], None);
        Ok(())
    })
}
