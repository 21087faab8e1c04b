//! `libcupti.so.12` of the simulated stack: the exported functions of [`sim_cupti`], under this file's SONAME.
pub use sim_cupti::*;
