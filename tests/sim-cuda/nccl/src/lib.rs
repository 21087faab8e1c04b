//! A simulated `libnccl.so.2`.
//!
//! The exported functions have the real names, types and results ([`api`]). Ranks in any processes of the machine meet in
//! shared memory ([`shared`]) and form communicators ([`comm`]); a collective launches a kernel of a real name on the
//! simulated driver ([`launch`], [`kernel_name`]), which starts when its stream reaches it and ends on all ranks when the
//! last has started and the bytes have moved. Calls in a group are put together ([`group`]). Each call is an NVTX range
//! with the payload that the real library gives ([`nvtx`]). No data is moved.
#![allow(clippy::missing_safety_doc, reason = "the contracts of the exported functions are those of NCCL")]

mod api;
mod comm;
mod config;
mod driver;
mod group;
mod kernel_name;
mod launch;
mod nvtx;
mod operation;
mod result;
mod shared;
