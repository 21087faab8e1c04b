//! Other people's recordings: real ones, and broken ones.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod broken;
mod causes;
mod cli;
mod folder;
mod numbers;
mod small;
