//! A simulated CUPTI, the code of both `libcupti.so.12` and `libcupti.so.13`.
//!
//! The exported functions have the real names, results and protocols, the records the real layout of the CUDA version
//! that `SIMCUDA_CUPTI_VERSION` names. What there is to record comes from the simulated driver (`sim_abi`). `fault` holds
//! the ways in which it can be told to misbehave as real ones do.
#![allow(clippy::missing_safety_doc, reason = "the contracts of the exported functions are those of CUPTI")]

mod api;
mod buffer;
mod callback;
mod clock;
mod driver;
mod fault;
mod hook;
mod kind;
mod names;
pub mod record;
mod result;
mod selection;
pub mod sizes;
mod text;
mod version;
mod worker;

pub use version::absent_in;
