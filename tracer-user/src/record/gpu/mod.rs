//! The GPU side: finds the rings of shims and turns their records into rows.
//!
//! A shim in a GPU process makes a memfd named `gtrace-ring` (`tracer_abi::shim`). It is found through `/proc/<pid>/fd`
//! (`discover`), checked and mapped (`mapping`), claimed and read (`process`). What is read refers to names, devices,
//! threads and clocks: `names`, `devices`, `threads`, `clock`; the rows are made in `convert`, and GPU work is held back
//! for a moment in `launches` until the call that launched it is known, since a record that starts before its launch is
//! none. [`GpuSide`] is all that the recorder sees.
//!
//! Marked ranges come through the same rings; those of NCCL say which collective a kernel is (`nccl`).
//!
//! Everything read here was written by a process that may be hostile.

mod announced;
mod api_names;
mod bounds;
mod claim;
mod clock;
mod convert;
mod devices;
mod discover;
mod held;
mod launches;
mod losses;
mod mapping;
mod modes;
mod names;
mod nccl;
mod process;
mod read;
mod row;
mod side;
mod threads;
mod words;

pub use discover::maps_cuda;
pub use mapping::RingError;
pub use row::GpuRow;
pub use side::GpuSide;
