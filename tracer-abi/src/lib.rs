//! The records that cross a boundary of gtrace: from the kernel (`kernel`) and from the GPU process (`shim`) to the
//! recorder. `no_std`, `#[repr(C)]`, sizes asserted, no pointers. All times are nanoseconds of `CLOCK_MONOTONIC`
//! (`bpf_ktime_get_ns`) unless a field says otherwise.
//!
//! Everything here is written by one side and read by another that must not trust it: a reader checks lengths, kinds
//! and enumerations before use.
#![no_std]
#![allow(missing_docs, reason = "fields whose name is the kernel's own need no second one")]

pub mod kernel;
#[cfg(not(target_arch = "bpf"))]
pub mod shim;
