//! The library inside the GPU process. libcuda loads it (`CUDA_INJECTION64_PATH`) and calls [`InitializeInjection`];
//! from then on it reads CUPTI's records and writes them to a ring (`tracer_abi::shim`) that the recorder finds.
//!
//! The process is somebody else's and sacred: no panic leaves this library, nothing waits in the program's threads,
//! nothing is allocated or locked where CUPTI calls back, a full ring drops and counts, and what cannot be understood
//! is refused with a reason instead of tried. In a forked child it is dead.
//!
//! The way of the data: [`bind`] finds the process's own libcupti and its functions; [`session`] switches collection on
//! for a recorder and off when it is gone; CUPTI takes buffers from [`pool`] and gives them back to [`callbacks`];
//! [`parse`] reads their records by the offsets in [`layout`] and writes them to the ring made in [`ring`]. The thread
//! in [`worker`] flushes; [`lifecycle`] handles fork and exit.
//!
//! Libraries that use NVTX load it as well (`NVTX_INJECTION64_PATH`) and tell it what they mark, NCCL its calls ([`nvtx`]).
//!
//! `GTRACE_START=1` in the environment starts collection at load (`gtrace run`). Without it the library sleeps until a
//! recorder appears in its ring. `GTRACE_RING_BYTES` sets the size of the ring,
//! `GTRACE_COLLECT` how much is collected until a recorder says so.

pub mod bind;
pub mod callbacks;
pub mod cbids;
pub mod clock;
pub mod collector;
pub mod entry;
pub mod layout;
pub mod lifecycle;
pub mod names;
pub mod nvtx;
mod old_glibc;
pub mod parse;
pub mod pool;
pub mod ring;
pub mod session;
pub mod worker;

pub use entry::InitializeInjection;
pub use nvtx::{InitializeInjectionNvtx2, InitializeInjectionNvtxExtension};
