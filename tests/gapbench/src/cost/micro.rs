//! Small loops, each with nothing attached, then while gtrace records something else, then recorded itself.

use std::io::Write as _;
use std::process::Stdio;

use anyhow::{Context, Result};

use super::ratio::{Ratio, median};
use super::recorder::Recorder;
use crate::beside::Beside;
use crate::place::Place;

/// A loop.
pub struct Spec {
    /// Its name in the table.
    pub name: &'static str,
    /// The loop of `workloads micro`.
    mode: &'static str,
    /// How often it runs.
    count: u64,
    /// What one operation is.
    what: &'static str,
    /// What `gtrace` is told beside the process and the bundle.
    options: &'static [&'static str],
}

const fn plain(name: &'static str, count: u64, what: &'static str) -> Spec {
    Spec { name, mode: name, count, what, options: &[] }
}

/// Every call of the loop becomes a row.
const EMIT: &[&str] = &["--calls-over", "1ns"];

/// What is measured.
pub const LOOPS: [Spec; 7] = [
    plain("getppid", 3_000_000, "the shortest system call: counted, not emitted"),
    Spec {
        name: "getppid-emitted",
        mode: "getppid",
        count: 1_000_000,
        what: "the same, each emitted (--calls-over 1ns)",
        options: EMIT,
    },
    plain("pread", 1_500_000, "pread of 512 cached bytes: counted, not emitted"),
    Spec {
        name: "pread-emitted",
        mode: "pread",
        count: 750_000,
        what: "the same, each emitted",
        options: EMIT,
    },
    plain(
        "pingpong",
        100_000,
        "a pipe round trip between two processes on one CPU: 2 calls that block, each emitted, and 2 switches",
    ),
    plain("scan", 100_000, "open, fstat, read, close of a small cached file"),
    plain("cpu", 150_000, "computing in user code"),
];

/// The result of one loop.
pub struct Measured {
    /// Its name.
    pub name: &'static str,
    /// What one operation is.
    pub what: &'static str,
    /// Nanoseconds an operation with nothing attached (median).
    pub plain_ns: f64,
    /// While gtrace records something else.
    pub beside: Ratio,
    /// While gtrace records it.
    pub recorded: Ratio,
    /// Events lost while it was recorded, over all pairs.
    pub lost: u64,
    /// The recorder's most memory, in bytes.
    pub memory: u64,
}

/// Measures a loop in so many pairs.
///
/// # Errors
/// A program cannot be started or fails.
pub fn measure(place: &Place, spec: &Spec, pairs: u32) -> Result<Measured> {
    let &Spec { name, mode, count, what, options } = spec;
    let (mut plain, mut beside, mut own_ratios) = (Vec::new(), Vec::new(), Vec::new());
    let (mut lost, mut memory) = (0, 0);
    let bundle = place.work.join(format!("cost-{name}.gtrace"));
    for _ in 0..pairs {
        let without = Loop::start(place, mode, count)?.time()?;
        plain.push(without);

        let other = Loop::start(place, "getppid", 1)?;
        let recorder = Recorder::attach(place, other.pid(), &bundle, options)?;
        beside.push((Loop::start(place, mode, count)?.time()?, without));
        recorder.end()?;
        drop(other);

        let mut own = Loop::start(place, mode, count)?;
        let recorder = Recorder::attach(place, own.pid(), &bundle, options)?;
        own_ratios.push((own.go()?, without));
        memory = memory.max(recorder.peak_memory().unwrap_or(0));
        lost += recorder.end()?.losses.values().sum::<u64>();
        own.end()?;
    }
    plain.sort_by(f64::total_cmp);
    let ratio = |pairs: &[(f64, f64)]| Ratio::of(pairs).with_context(|| format!("{name} measured nothing"));
    Ok(Measured {
        name,
        what,
        plain_ns: median(&plain),
        beside: ratio(&beside)?,
        recorded: ratio(&own_ratios)?,
        lost,
        memory,
    })
}

/// A loop that is ready to go.
struct Loop(Beside);

impl Loop {
    fn start(place: &Place, name: &str, count: u64) -> Result<Self> {
        // The last CPU; the recorder may use the others.
        let cpu = std::thread::available_parallelism().map_or(1, std::num::NonZero::get) - 1;
        let mut command = place.program("workloads");
        command
            .args(["micro", name, &count.to_string(), &cpu.to_string()])
            .arg(place.data())
            .stdin(Stdio::piped());
        Ok(Self(Beside::start(&mut command)?))
    }

    fn pid(&self) -> u32 {
        self.0.pid()
    }

    /// Lets it run. Nanoseconds an operation.
    fn go(&mut self) -> Result<f64> {
        self.0.input().context("the loop has no input")?.write_all(b"g").context("the loop has ended")?;
        let line = self.0.line().context("the loop ended without a result")?;
        let value = line.strip_prefix("RESULT ").with_context(|| format!("the loop said `{line}`"))?;
        value.parse().with_context(|| format!("the loop's result is `{value}`"))
    }

    fn end(mut self) -> Result<()> {
        self.0.input().context("the loop has no input")?.write_all(b"e").context("the loop has ended")?;
        self.0.wait()?;
        Ok(())
    }

    fn time(mut self) -> Result<f64> {
        let result = self.go()?;
        self.end()?;
        Ok(result)
    }
}
