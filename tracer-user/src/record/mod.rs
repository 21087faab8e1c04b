//! Live recording: load the probes, follow the process tree, drain the rings, resolve names, convert clocks, write rows.
//!
//! ```text
//! probes (kernel records) ─┐                    ┌─ rows (off_cpu, syscalls, block_io …)
//!                          ├─ session ─ tree ───┤                                        ─> store
//! gpu (shim records) ──────┘           objects ─┘
//! ```

pub mod clocks;
pub mod gpu;
pub mod launch;
pub mod objects;
pub mod probes;
pub mod procfs;
pub mod rows;
pub mod syscall;
pub mod tree;
