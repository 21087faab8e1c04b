//! The eBPF programs of gtrace, one file a subsystem of the kernel.
//!
//! All but two ([`cuda`], [`sample`]) are raw tracepoints: perf's are skipped while another program runs on the CPU (`bpf_prog_active`), which would
//! lose an interrupt's exit now and then. Field offsets come from the running kernel's BTF as constants (`config`), so
//! one object serves every kernel from 5.11.
#![no_std]
#![no_main]
#![feature(asm_experimental_arch)]
#![allow(missing_docs, reason = "a program, no library")]

mod block;
mod config;
mod counts;
mod cpu;
mod cuda;
mod cuda_calls;
mod emit;
mod irq;
mod kernel;
mod maps;
mod memory;
mod net;
mod object;
mod path;
mod poll;
mod process;
mod runq;
mod sample;
mod sched;
mod syscalls;
mod threads;
mod timer;
mod wake;

#[panic_handler]
fn panic(_info: &core::panic::PanicInfo) -> ! {
    loop {}
}

#[unsafe(link_section = "license")]
#[unsafe(no_mangle)]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";
