//! A simulated `libcuda.so.1`.
//!
//! The exported functions have the real names and the real meaning; the devices behind them are simulated. `device` is
//! the model of the hardware, the modules beside it are the driver's objects (contexts, streams, memory, …), and `api`
//! is the exported C interface.
#![allow(
    clippy::missing_safety_doc,
    reason = "the contracts of the exported functions are those of the CUDA driver API"
)]

mod api;
mod capture;
mod clock;
mod config;
mod context;
mod copy;
mod device;
mod error;
mod event;
mod handle;
mod hook;
mod memory;
mod module;
mod process;
mod stream;
mod submit;
