//! Live recording: load the probes, follow the process tree, drain the rings, resolve names, convert clocks, write rows.
//!
//! ```text
//! probes (kernel records) ─┐                    ┌─ rows (off_cpu, syscalls, block_io …)
//!                          ├─ session ─ tree ───┤                                        ─> store
//! gpu (shim records) ──────┘           objects ─┘
//! ```

mod assembler;
pub mod clocks;
mod describe;
mod error;
pub mod gpu;
pub mod inject;
pub mod injection;
pub mod launch;
mod losses;
pub mod nvml;
pub mod objects;
pub mod preflight;
mod priority;
pub mod probes;
pub mod procfs;
pub mod rows;
mod session;
pub mod signals;
mod stacks;
pub mod syscall;
pub mod tree;

pub use error::RecordError;
pub use session::{
    CALLS_OVER, Notice, Recorded, Request, STACK_RATE, Target, Windows, Wish, exit_code, record,
};
