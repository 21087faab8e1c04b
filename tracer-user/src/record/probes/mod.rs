//! The kernel side: loads the eBPF programs (`tracer-ebpf`), attaches each to its tracepoint, and hands out their
//! records.
//!
//! ```no_run
//! use gtrace::record::probes::{LoadConfig, Probes, RawRecord};
//!
//! let mut probes = Probes::load(&LoadConfig::default())?;
//! probes.track_process(4711)?;
//! probes.drain(10_000, &mut |record| {
//!     if let RawRecord::Fork(fork) = record {
//!         println!("{} made {}", fork.parent_tid, fork.child_tid);
//!     }
//! });
//! # Ok::<(), gtrace::record::probes::ProbeError>(())
//! ```
//!
//! The order of use: load; [`Probes::track_process`] for each process of the tree (forks are followed in the kernel
//! from then on); [`Probes::insert_blocked_thread`] for each of their threads that `/proc` shows blocked; then
//! [`Probes::drain`] on a timer (nothing wakes the reader); at the end [`Probes::stop`], a last drain,
//! [`Probes::threads`] for what is still open and [`Probes::final_syscall_counts`].

mod arch;
pub mod btf;
mod cuda_calls;
mod cuda_watch;
mod cupti_watch;
mod error;
mod features;
mod life;
mod load;
mod maps;
mod offsets;
mod page;
mod programs;
mod raw;
mod recursion;
mod rings;
mod sampler;
mod session;

pub use cuda_watch::{Counted, CudaCalls, CudaWatch};
pub use error::ProbeError;
pub use load::{LoadConfig, probe_check};
pub use offsets::MissingField;
pub use page::kernels_markdown;
pub use programs::OLDEST;
pub use raw::RawRecord;
pub use rings::RingAnnouncements;
pub use sampler::StackSource;
pub use session::Probes;
