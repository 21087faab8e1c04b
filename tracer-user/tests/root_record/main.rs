//! Recording on the real kernel, without a GPU (the demo brings a simulated one). All of it loads eBPF programs, which
//! needs root:
//! `sudo -E cargo test --test root_record -- --ignored --test-threads=1`.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod attach;
mod chain;
mod cpu;
mod demo;
mod duckdb;
mod endings;
mod group;
mod gtrace;
mod inject;
mod interpreter_lock;
mod ownership;
mod pressure;
mod quota;
mod refusals;
mod stacks;
mod timeline;
mod top;
