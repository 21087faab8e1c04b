//! Live recording: load the probes, follow the process tree, drain the rings, resolve names, convert clocks, write rows.

pub mod gpu;
pub mod probes;
