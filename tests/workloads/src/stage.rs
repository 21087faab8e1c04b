//! What every scenario has: the GPU, the truth, the rounds.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;

use crate::cpu;
use crate::gpu::Gpu;
use crate::neighbour::{Inside, Neighbour};
use crate::truth::Truth;

/// Set by SIGTERM and SIGINT: the round under way is the last one.
static STOP: AtomicBool = AtomicBool::new(false);

extern "C" fn stop(_signal: libc::c_int) {
    STOP.store(true, Ordering::Relaxed);
}

/// Lets SIGTERM and SIGINT end the round under way, and not the program.
pub fn catch_signals() {
    let handler = stop as extern "C" fn(libc::c_int) as usize;
    for signal in [libc::SIGTERM, libc::SIGINT] {
        // SAFETY: the handler only stores to an atomic.
        unsafe { libc::signal(signal, handler) };
    }
}

/// Leaves SIGTERM and SIGINT to another process.
pub fn ignore_signals() {
    for signal in [libc::SIGTERM, libc::SIGINT] {
        // SAFETY: ignoring a signal has no preconditions.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// Whether a signal came.
pub fn is_to_stop() -> bool {
    STOP.load(Ordering::Relaxed)
}

/// How a scenario is to run.
pub struct Options {
    /// How many rounds; 0: until a signal.
    pub rounds: u64,
    /// A folder on a real disk, for files.
    pub data: PathBuf,
    /// The address of the peer, for scenarios that have one.
    pub peer: Option<String>,
    /// Who is loud beside it, in the same process.
    pub neighbour: Option<Inside>,
    /// Which composed scenario.
    pub seed: u64,
    /// What a composed scenario leaves out.
    pub without: Option<String>,
}

/// A scenario's surroundings.
pub struct Stage {
    /// The GPU.
    pub gpu: Gpu,
    /// What the main thread planted.
    pub truth: Truth,
    rounds: u64,
    neighbour: Option<Neighbour>,
}

/// How long the device works in each round.
const WORK_NS: u64 = 4_000_000;

impl Stage {
    /// Opens the GPU, has it do its first work, and lets the neighbour begin.
    ///
    /// # Errors
    /// There is no GPU, or the neighbour cannot begin.
    pub fn open(options: &Options) -> Result<Self> {
        catch_signals();
        let gpu = Gpu::open()?;
        // Threads that the driver makes at the first launch inherit the CPUs of the thread that launches.
        gpu.kernel(WORK_NS)?;
        gpu.synchronize()?;
        let neighbour = options.neighbour.map(Inside::begin).transpose()?;
        Ok(Self { gpu, truth: Truth::from_environment(), rounds: options.rounds, neighbour })
    }

    /// Keeps the main thread on the CPU for what is planted: for acts of its own. Threads of the driver that inherited
    /// nothing stay free to use the others.
    #[must_use]
    pub fn pinned(self) -> Self {
        cpu::pin(cpu::stage());
        self
    }

    /// Runs `act` once a round, after work for the device. In every second round the act begins while the device still
    /// works, so that only its rest is a gap.
    ///
    /// # Errors
    /// A CUDA call or the act fails.
    pub fn play(&mut self, mut act: impl FnMut(&mut Self) -> Result<()>) -> Result<()> {
        self.rounds(|stage, round| {
            stage.gpu.kernel(WORK_NS)?;
            if round % 2 == 0 {
                stage.gpu.synchronize()?;
            }
            act(stage)
        })
    }

    /// Runs `round` until there were enough of them, or a signal came.
    ///
    /// # Errors
    /// A round fails, or the truth cannot be written.
    pub fn rounds(&mut self, mut round: impl FnMut(&mut Self, u64) -> Result<()>) -> Result<()> {
        println!("READY {}", std::process::id());
        let mut number = 0;
        while !STOP.load(Ordering::Relaxed) && (self.rounds == 0 || number < self.rounds) {
            round(self, number)?;
            number += 1;
        }
        // One more op, so that the last act ends a gap and not the recording.
        self.gpu.kernel(WORK_NS)?;
        self.gpu.synchronize()?;
        if let Some(neighbour) = self.neighbour.take() {
            neighbour.end();
        }
        self.truth.write()
    }
}

/// Sets a setting of the simulated GPU, which a real one does not look at. Before the first CUDA call, in the only thread.
pub fn simulate(name: &str, value: &str) {
    // SAFETY: there is no other thread yet that could read the environment.
    unsafe { std::env::set_var(name, value) };
}
