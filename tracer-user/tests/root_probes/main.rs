//! The kernel side on the real kernel: small Python programs do one thing each, and what the probes record of it is
//! compared with what happened. They need root and the eBPF object (`cargo xtask build`).

mod block;
mod harness;
mod identity;
mod load;
mod network;
mod process;
mod scheduler;
mod syscalls;
mod wake;
