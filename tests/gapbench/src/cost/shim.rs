//! What the shim costs a loop that does nothing but launch, with the cost of the simulated CUPTI shown apart: the same records
//! are made for a client of CUPTI that throws them away.

use std::io::Write as _;
use std::process::Stdio;

use anyhow::{Context, Result};

use super::instructions::{self, Counted};
use super::ratio::median;
use crate::beside::Beside;
use crate::place::Place;

/// Launches of one run.
const LAUNCHES: u64 = 100_000;
/// What a launch costs in a program that is bound by launching (a framework's eager operator, 5 µs kernels).
pub const LAUNCH_BOUND_NS: f64 = 5_000.0;

/// The conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum With {
    Nothing,
    /// A client that throws the records of this mode away.
    Client(&'static str),
    /// The shim in this mode.
    Shim(&'static str),
}

/// The records of the modes, by kind, and the modes' numbers for the shim.
const FULL: (&str, &str) = ("10,1,22,2,38,17,4", "0");
const LIGHT: (&str, &str) = ("10,1,22,2,51,4", "257");

/// Nanoseconds a launch.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// With nothing attached.
    pub plain: f64,
    /// What the simulated CUPTI adds in the full mode, and in the light one.
    pub cupti: [f64; 2],
    /// What the shim adds to that.
    pub shim: [f64; 2],
    /// Instructions a kernel.
    pub instructions: Option<Counted>,
}

/// Measures in so many rounds.
///
/// # Errors
/// A program cannot be started or fails.
pub fn measure(place: &Place, rounds: u32) -> Result<Measured> {
    let conditions =
        [With::Nothing, With::Client(FULL.0), With::Shim(FULL.1), With::Client(LIGHT.0), With::Shim(LIGHT.1)];
    let mut times: Vec<Vec<f64>> = vec![Vec::new(); conditions.len()];
    for _ in 0..rounds {
        for (condition, times) in conditions.iter().zip(&mut times) {
            times.push(time(place, *condition)?);
        }
    }
    let of = |index: usize| {
        let mut sorted = times[index].clone();
        sorted.sort_by(f64::total_cmp);
        median(&sorted)
    };
    // Differences within a round: what the machine does to one it does to the next.
    let added = |with: usize, without: usize| {
        let mut sorted: Vec<f64> = times[with].iter().zip(&times[without]).map(|(a, b)| a - b).collect();
        sorted.sort_by(f64::total_cmp);
        median(&sorted)
    };
    Ok(Measured {
        plain: of(0),
        cupti: [added(1, 0), added(3, 0)],
        shim: [added(2, 1), added(4, 3)],
        instructions: instructions::count()?,
    })
}

fn time(place: &Place, with: With) -> Result<f64> {
    let cpu = std::thread::available_parallelism().map_or(1, std::num::NonZero::get) - 1;
    let mut command = place.program("workloads");
    command.args(["micro", "launch", &LAUNCHES.to_string(), &cpu.to_string()]).stdin(Stdio::piped());
    // Nothing of a launch's simulated length: what CUPTI and the shim add must not disappear in it.
    command.env("SIMCUDA_LAUNCH_NS", "0").env("SIMCUDA_KERNEL_GAP_NS", "0");
    match with {
        With::Nothing => {}
        With::Client(kinds) => {
            let client = place.release_dir.join("libsim_injected.so");
            command
                .env("CUDA_INJECTION64_PATH", std::path::absolute(client)?)
                .env("SIM_INJECTED_KINDS", kinds);
        }
        With::Shim(collection) => {
            command.env("CUDA_INJECTION64_PATH", place.shim()).env("GTRACE_START", "1");
            command.env("GTRACE_COLLECT", collection);
        }
    }
    let mut program = Beside::start(&mut command)?;
    program.input().context("the loop has no input")?.write_all(b"g").context("the loop has ended")?;
    let line = program.line().context("the loop ended without a result")?;
    let value = line.strip_prefix("RESULT ").with_context(|| format!("the loop said `{line}`"))?;
    let value = value.parse().with_context(|| format!("the loop's result is `{value}`"))?;
    program.input().context("the loop has no input")?.write_all(b"e").context("the loop has ended")?;
    program.wait()?;
    Ok(value)
}

/// The section of the page.
pub fn section(measured: &Measured) -> String {
    let share = |ns: f64| format!("{:.1} %", ns / LAUNCH_BOUND_NS * 100.0);
    let mut text = format!(
        "## The shim in a program that launches\n\nA loop that launches kernels and does nothing else, {:.0} ns a launch with \
         nothing attached (the simulated driver's own launch). The simulated CUPTI is not the real one: its cost is shown \
         apart. The share is of the {LAUNCH_BOUND_NS:.0} ns that a launch takes in a program that is bound by launching.\n\n",
        measured.plain
    );
    let head = ["mode", "the simulated CUPTI adds", "the shim adds", "share of a launch-bound step"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for (mode, index) in [("full", 0), ("light", 1)] {
        rows.push(vec![
            mode.to_owned(),
            format!("{:.0} ns", measured.cupti[index]),
            format!("{:.0} ns", measured.shim[index]),
            share(measured.shim[index]),
        ]);
    }
    text.push_str(&crate::table::aligned(&rows));
    let counted = measured.instructions.map_or_else(
        || "Instructions were not counted: there is no valgrind.".to_owned(),
        |counted| {
            format!(
                "Instructions for the record of a kernel, counted by callgrind: {:.1} in the program's own threads (a buffer is \
                 asked for once in a thousand kernels), {:.0} in CUPTI's thread or the shim's, where the record is read, its \
                 name looked up and the row written. In both nothing is allocated and nothing locked \
                 (`cupti-shim/tests/hot_path.rs`).",
                counted.own, counted.others
            )
        },
    );
    text.push('\n');
    text.push_str(&counted);
    text.push('\n');
    text.push('\n');
    text
}
