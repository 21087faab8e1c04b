//! The main thread computes, and shares its CPU with a process outside the recording. What was planted is seen by the
//! victim itself: between two readings of the clock that lie far apart, it was not on the CPU.

use anyhow::Result;

use crate::clock::now_ns;
use crate::cpu;
use crate::stage::{Options, Stage};
use crate::truth::Truth;

/// How long the main thread computes in a round, by the wall clock.
const COMPUTE_NS: i64 = 40_000_000;
/// How long the device works in a round.
const WORK_NS: u64 = 4_000_000;
/// Readings of the clock that lie further apart than this are not explained by computing between them.
const JUMP_NS: i64 = 200_000;

pub fn run(options: &Options) -> Result<()> {
    // Nothing in a round ever waits: a wake-up onto the contended CPU would be a wait for it that nobody can time.
    Stage::open(options)?.pinned().rounds(|stage, _| {
        stage.gpu.kernel(WORK_NS)?;
        compute(&mut stage.truth);
        Ok(())
    })
}

/// Computes, and writes down when it was not on the CPU.
pub fn compute(truth: &mut Truth) {
    let end = now_ns() + COMPUTE_NS;
    let mut before = now_ns();
    let mut state = 1;
    while before < end {
        state = std::hint::black_box(cpu::xorshift(state, 500));
        let after = now_ns();
        if after - before > JUMP_NS {
            truth.planted(before, after, &["host.runq"], None);
        }
        before = after;
    }
}

/// The other process: computes in bursts on the same CPU until it is killed.
///
/// # Errors
/// Its output cannot be written.
pub fn compete() -> Result<()> {
    cpu::pin(cpu::stage());
    println!("READY {}", std::process::id());
    loop {
        cpu::burn(30_000_000);
        std::thread::sleep(std::time::Duration::from_millis(15));
    }
}
