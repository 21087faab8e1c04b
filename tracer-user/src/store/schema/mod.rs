//! The tables of a bundle, one a file. This is the only place where a column is declared.

mod block_io;
mod clocks;
mod collectives;
mod cuda_api;
mod cuda_overhead;
mod cuda_sync;
mod gap_segments;
mod gaps;
mod gpu_ops;
mod interrupts;
mod losses;
mod markers;
mod memory_stalls;
mod off_cpu;
mod processes;
mod retransmits;
mod samples;
mod steps;
mod syscall_counts;
mod syscalls;
mod threads;
mod what_if;

use super::table::Table;

pub use block_io::BlockIo;
pub use clocks::ClockSample;
pub use collectives::Collective;
pub use cuda_api::CudaApi;
pub use cuda_overhead::CudaOverhead;
pub use cuda_sync::CudaSync;
pub use gap_segments::{Evidence, GapSegment, Hop};
pub use gaps::Gap;
pub use gpu_ops::GpuOp;
pub use interrupts::Interrupt;
pub use losses::Loss;
pub use markers::Marker;
pub use memory_stalls::MemoryStall;
pub use off_cpu::OffCpu;
pub use processes::Process;
pub use retransmits::Retransmit;
pub use samples::{Frame, Sample};
pub use steps::Step;
pub use syscall_counts::SyscallCount;
pub use syscalls::Syscall;
pub use threads::Thread;
pub use what_if::WhatIf;

/// Version of the whole schema, `major.minor`. A reader refuses a newer major version and reads every older one.
pub const SCHEMA_MAJOR: u32 = 1;
/// Raised when columns or tables are added.
pub const SCHEMA_MINOR: u32 = 4;

/// Something that is done with each table.
pub trait TableVisitor {
    /// Does it with the table `T`.
    fn visit<T: Table>(&mut self);
}

/// Shows every table to `visitor`: those of the GPU, of the host, of the recording itself, of the analysis.
pub fn visit_tables(visitor: &mut impl TableVisitor) {
    visitor.visit::<GpuOp>();
    visitor.visit::<CudaApi>();
    visitor.visit::<CudaSync>();
    visitor.visit::<CudaOverhead>();
    visitor.visit::<Collective>();
    visitor.visit::<Marker>();
    visitor.visit::<Process>();
    visitor.visit::<Thread>();
    visitor.visit::<OffCpu>();
    visitor.visit::<Syscall>();
    visitor.visit::<SyscallCount>();
    visitor.visit::<BlockIo>();
    visitor.visit::<MemoryStall>();
    visitor.visit::<Interrupt>();
    visitor.visit::<Retransmit>();
    visitor.visit::<Sample>();
    visitor.visit::<Loss>();
    visitor.visit::<ClockSample>();
    visitor.visit::<Gap>();
    visitor.visit::<GapSegment>();
    visitor.visit::<Step>();
    visitor.visit::<WhatIf>();
}
