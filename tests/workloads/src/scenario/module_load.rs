//! The main thread loads code in every step, as a compiler at run time does for each new shape.

use anyhow::Result;

use crate::clock::now_ns;
use crate::stage::{Options, Stage};

const MODULES: usize = 12;

pub fn run(options: &Options) -> Result<()> {
    Stage::open(options)?.pinned().play(|stage| {
        let start = now_ns();
        for _ in 0..MODULES {
            stage.gpu.load_code()?;
        }
        stage.truth.planted(start, now_ns(), &["cuda.module_load"], None);
        Ok(())
    })
}
