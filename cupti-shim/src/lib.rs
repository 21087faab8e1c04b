//! The library inside the GPU process.
