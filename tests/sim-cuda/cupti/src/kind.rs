//! Activity kinds by number.
#![allow(missing_docs, reason = "the names are CUPTI's")]

pub const MEMCPY: u32 = 1;
pub const MEMSET: u32 = 2;
pub const KERNEL: u32 = 3;
pub const DRIVER: u32 = 4;
pub const DEVICE: u32 = 8;
pub const CONTEXT: u32 = 9;
pub const CONCURRENT_KERNEL: u32 = 10;
pub const OVERHEAD: u32 = 17;
pub const MEMCPY2: u32 = 22;
pub const MODULE: u32 = 27;
pub const CUDA_EVENT: u32 = 36;
pub const STREAM: u32 = 37;
pub const SYNCHRONIZATION: u32 = 38;
pub const EXTERNAL_CORRELATION: u32 = 39;
pub const MEMORY2: u32 = 49;
pub const GRAPH_TRACE: u32 = 51;
pub const GRAPH_HOST_NODE: u32 = 56;
pub const HOST_LAUNCH: u32 = 58;
/// No kind of any version: what the fault `SIMCUDA_UNKNOWN_KINDS` writes.
pub const UNKNOWN: u32 = 250;
/// Bytes of a record of that kind.
pub const UNKNOWN_SIZE: usize = 64;
