//! Instructions that the shim takes for a kernel's record, counted by callgrind: exact, whatever else the machine does.
//!
//! The program runs itself under `valgrind --tool=callgrind` with `gapbench shim-loop`, and collects within one function at a
//! time: what CUPTI calls in the program's own threads, and what it calls in its own or the shim's.

use std::hint::black_box;
use std::process::Command;
use std::ptr;
use std::sync::atomic::AtomicU64;

use anyhow::{Context, Result, bail};
use gtrace_cupti::bind::Cupti;
use gtrace_cupti::callbacks::{buffer_completed, buffer_requested};
use gtrace_cupti::collector::Collector;
use gtrace_cupti::layout::{Version, kernel, kind};
use gtrace_cupti::pool::BUFFER_BYTES;
use tracer_abi::shim::{Consumer, Next, Producer, RingHeader};

/// Bytes of a kernel's record in CUDA 13.0.
const RECORD: usize = 216;
/// Buffers that are filled.
const BUFFERS: usize = 20;
/// Kernels in each: as many as fit.
const KERNELS: usize = BUFFER_BYTES / RECORD;
/// Names of kernels.
const NAMES: usize = 40;

/// What was counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Counted {
    /// In the program's threads: a buffer is asked for, once for a thousand kernels.
    pub own: f64,
    /// In CUPTI's thread or the shim's: the record is read and written to the ring.
    pub others: f64,
}

/// Counts; `None` if there is no valgrind.
///
/// # Errors
/// Valgrind fails.
pub fn count() -> Result<Option<Counted>> {
    if Command::new("valgrind").arg("--version").output().is_err() {
        return Ok(None);
    }
    let kernels = (BUFFERS * KERNELS) as f64;
    Ok(Some(Counted {
        own: collected("gtrace_cost_requests")? / kernels,
        others: collected("gtrace_cost_completions")? / kernels,
    }))
}

fn collected(function: &str) -> Result<f64> {
    let program = std::env::current_exe().context("cannot find this program")?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--collect-atstart=no"])
        .arg(format!("--toggle-collect={function}"))
        .arg(program)
        .arg("shim-loop")
        .output()
        .context("cannot start valgrind")?;
    let text = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        bail!("valgrind ended with {}: {text}", output.status);
    }
    let line = text.lines().find_map(|line| line.split("Collected :").nth(1));
    let number = line.with_context(|| format!("valgrind counted nothing: {text}"))?.trim();
    number.parse().with_context(|| format!("valgrind counted `{number}`"))
}

/// Walks records of one size, as CUPTI would. Its own instructions are part of the count.
unsafe extern "C" fn next_record(buffer: *mut u8, valid: usize, record: *mut *mut u8) -> u32 {
    // SAFETY: the shim's own variable.
    let last = unsafe { record.read() };
    let offset = if last.is_null() { 0 } else { last as usize - buffer as usize + RECORD };
    if offset + RECORD > valid {
        return 12;
    }
    // SAFETY: within the buffer.
    unsafe { record.write(buffer.add(offset)) };
    0
}

/// What valgrind runs: buffers of kernels go the way that CUPTI sends them.
///
/// # Errors
/// Something was lost on the way.
pub fn run_loop() -> Result<()> {
    // SAFETY: all zero is a valid header.
    let header: &'static RingHeader = Box::leak(unsafe { Box::new(std::mem::zeroed::<RingHeader>()) });
    let data: &'static [AtomicU64] = (0..1 << 20).map(|_| AtomicU64::new(0)).collect::<Vec<_>>().leak();
    let cupti = Cupti { get_next_record: Some(next_record), ..Cupti::default() };
    Collector::new(Producer::new(header, data), cupti, Version(130_001))?.publish();
    let mut ring = Consumer::new(header, data).map_err(|fault| anyhow::anyhow!("{fault}"))?;
    let names: Vec<_> =
        (0..NAMES).filter_map(|n| std::ffi::CString::new(format!("_Z6kernel{n}PKfPfi")).ok()).collect();
    let records: Vec<u8> = (0..KERNELS as u64)
        .flat_map(|number| {
            let name = names[number as usize % names.len()].as_ptr().expose_provenance() as u64;
            let mut record = [0_u8; RECORD];
            let mut put = |at: usize, bytes: &[u8]| record[at..at + bytes.len()].copy_from_slice(bytes);
            put(0, &kind::CONCURRENT_KERNEL.to_ne_bytes());
            put(kernel::START, &(1_000 + number).to_ne_bytes());
            put(kernel::END, &(2_000 + number).to_ne_bytes());
            put(kernel::CORRELATION, &(number as u32).to_ne_bytes());
            put(kernel::NAME, &name.to_ne_bytes());
            record
        })
        .collect();
    let mut read = 0;
    for _ in 0..BUFFERS {
        let buffer = gtrace_cost_requests();
        if buffer.is_null() {
            bail!("no buffer");
        }
        // SAFETY: the buffer holds that many bytes.
        unsafe { ptr::copy_nonoverlapping(records.as_ptr(), buffer, records.len()) };
        gtrace_cost_completions(buffer, records.len());
        while let Ok(Next::Record(_)) = ring.take() {
            read += 1;
        }
    }
    if read != BUFFERS * KERNELS + NAMES {
        bail!("{read} records came of {}", BUFFERS * KERNELS + NAMES);
    }
    Ok(())
}

/// What happens in the program's thread.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn gtrace_cost_requests() -> *mut u8 {
    let (mut buffer, mut size, mut most) = (ptr::null_mut(), 0, 0);
    // SAFETY: variables of ours.
    unsafe { buffer_requested(&raw mut buffer, &raw mut size, &raw mut most) };
    black_box(buffer)
}

/// What happens elsewhere.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn gtrace_cost_completions(buffer: *mut u8, valid: usize) {
    // SAFETY: a buffer that was requested, with so many bytes of records.
    unsafe { buffer_completed(ptr::null_mut(), 0, black_box(buffer), BUFFER_BYTES, valid) };
}

#[cfg(test)]
mod tests {
    #[test]
    fn everything_comes_through() {
        super::run_loop().expect("all records");
    }
}
