//! The main thread builds and instantiates a CUDA graph in every step, for a shape that it has not kept.

use anyhow::Result;

use crate::clock::now_ns;
use crate::stage::{Options, Stage, simulate};

/// Kernels of the graph.
const KERNELS: usize = 300;

pub fn run(options: &Options) -> Result<()> {
    // Instantiating is what takes the time; the calls that add nodes are too short to be recorded.
    simulate("SIMCUDA_GRAPH_INSTANTIATE_US", "25");
    Stage::open(options)?.pinned().play(|stage| {
        let start = now_ns();
        stage.gpu.build_graph(KERNELS)?;
        stage.truth.planted(start, now_ns(), &["cuda.graph_build"], None);
        Ok(())
    })
}
