//! The model of the devices.
//!
//! A device does not depend on how busy the host's CPUs are, so its timeline is virtual: [`machine::Machine`] is a
//! discrete-event simulation whose events are worked off, in the order of their own times, whenever somebody looks. The
//! times of an operation follow from when it was given, what it had to wait for, and which engines were free; never from
//! when a host thread came round to compute them. Only what the host takes part in (host functions, the moving of the
//! data, the release of waiting threads) happens in host threads, which sleep until the earliest time at which there
//! can be something to do.

pub mod channel;
pub mod data;
pub mod machine;
pub mod rendezvous;
mod shared;
pub mod threads;
pub mod wait;
