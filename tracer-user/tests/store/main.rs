//! Bundles, as their users meet them.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod arbitrary;
mod chrome;
mod docs;
mod fixtures;
mod hostile;
mod killed;
mod perfetto;
mod round_trip;
mod samples;
mod size;
mod sql;
mod story;
mod wire;
mod writer;
