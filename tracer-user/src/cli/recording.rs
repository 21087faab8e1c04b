//! What `run` and `attach` have in common: words for what can go wrong, for what happens meanwhile, and the analysis and
//! report afterwards.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use clap::Args;

use super::analyze::{self, AnalyzeArgs};
use super::report::{self, ReportArgs, ReportFormat};
use super::{ExitStatus, Failure, Result, Ui, parse_duration};
use crate::record::{Notice, RecordError, Recorded, STACK_RATE};
use crate::store::Owner;

/// Share of events that may be lost before a recording counts as incomplete.
const TOLERATED_LOSS: f64 = 0.001;

/// How much of what happens is kept.
#[derive(Debug, Args)]
pub struct KeepArgs {
    /// Keep only the last so long (10m): the recording may go on for hours and takes no more room.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub rotate: Option<Duration>,
    /// System calls that neither block nor last this long are counted, not written one by one (1ns: write all).
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "10us")]
    pub calls_over: Duration,
}

/// Whether and how often stacks are sampled.
#[derive(Debug, Args)]
pub struct StackArgs {
    /// Stack samples a second on each CPU: which function a thread was in.
    #[arg(long, value_name = "HZ", default_value_t = STACK_RATE, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub stack_rate: u32,
    /// Take no stack samples: time in a program's own code is named by the program only.
    #[arg(long, conflicts_with = "stack_rate")]
    pub no_stacks: bool,
}

impl Default for StackArgs {
    fn default() -> Self {
        Self { stack_rate: STACK_RATE, no_stacks: false }
    }
}

impl StackArgs {
    /// Samples a second, 0 for none.
    #[must_use]
    pub fn rate(&self) -> u32 {
        if self.no_stacks { 0 } else { self.stack_rate }
    }
}

/// The user who called `sudo`: the recording is given to them.
pub fn owner() -> Option<Owner> {
    let id = |name| std::env::var(name).ok()?.parse::<u32>().ok();
    Some((id("SUDO_UID")?, id("SUDO_GID")?))
}

/// The three parts of a failure to record.
pub fn failure(what: impl Into<String>, error: &RecordError) -> Failure {
    let failure = Failure::new(what).because(error.to_string());
    match error {
        RecordError::NotRoot => failure.try_this("run it again with sudo"),
        RecordError::PidNamespace => {
            failure.try_this("run gtrace on the host, or start the container with the host's pids (docker: --pid=host)")
        }
        RecordError::NoSuchProcess(_) | RecordError::AlreadyEnded(_) => {
            failure.try_this("look for it with `pgrep -af NAME`, and give the number of a process that runs").wrong_usage()
        }
        RecordError::EndedMeanwhile(_) => failure.try_this("start it under `gtrace run -- CMD` to have it from its beginning"),
        RecordError::OwnProcess(_) => failure.try_this("give the number of the program that is to be recorded").wrong_usage(),
        RecordError::OwnAncestor(..) => failure
            .try_this("run gtrace from another terminal, or give the number of the program itself, not of its shell")
            .wrong_usage(),
        RecordError::IsThread(_, process) => {
            failure.try_this(format!("give the process: `gtrace attach {process}` records all its threads")).wrong_usage()
        }
        RecordError::KernelThread(..) => failure
            .try_this("give the process that waits for it: what kernel threads do for it is recorded, too")
            .wrong_usage(),
        RecordError::OutputExists(_) => failure.try_this("name another folder with -o, or remove that one").wrong_usage(),
        RecordError::OutputFolder { .. } => failure.try_this("name another place with -o").wrong_usage(),
        RecordError::Command { .. } => failure.try_this("check its name and that it may be executed"),
        RecordError::Probes(_) => failure.try_this("`gtrace doctor` says what this machine can record"),
        RecordError::Store(_) => failure.try_this("name another place with -o"),
        _ => failure.try_this("`gtrace doctor` checks this machine"),
    }
}

/// Says what happens meanwhile.
pub fn announce(notice: Notice, ui: &Ui, until: &str) {
    match notice {
        Notice::HostAttached { root, name, processes, threads, output, missing_probes } => {
            ui.say(&format!(
                "host side attached: process {root} ({name}), {}, {}; recording to {}{until}",
                count(processes, "process", "processes"),
                count(threads, "thread", "threads"),
                output.display(),
            ));
            if !missing_probes.is_empty() {
                ui.warn(&format!(
                    "this kernel refused {} of the probes ({}): what depends on them reads unknown",
                    missing_probes.len(),
                    missing_probes.join(", ")
                ));
            }
        }
        Notice::GpuAttached { pids } => {
            let pids: Vec<String> = pids.iter().map(ToString::to_string).collect();
            ui.say(&format!("GPU side attached: records come from process {}", pids.join(", ")));
        }
        Notice::SteppedDown(words) => ui.warn(&words),
        Notice::Client { pid, here: true } => ui.warn(&format!(
            "another profiler began to use CUPTI in process {pid}: GPU work reads unknown until it ends"
        )),
        Notice::Client { pid, here: false } => {
            ui.say(&format!("the other profiler in process {pid} is gone: GPU work is recorded again"));
        }
        Notice::CommandGoesOn => ui.say("recording ended; the command goes on"),
        Notice::Ending(reason) => ui.detail(&format!("recording ends: {reason}")),
    }
}

fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// Says how the recording went, analyses it and prints its report.
///
/// # Errors
/// It could not be written to its end, analysed or printed.
pub fn conclude(recorded: &Recorded, report: bool, ui: &Ui) -> Result<ExitStatus> {
    let output = &recorded.output;
    if let Some(error) = &recorded.failure {
        return Err(Failure::new(format!("the recording {} is incomplete", output.display()))
            .because(error.to_string())
            .try_this(format!(
                "what was written before is readable: `gtrace analyze {0}`, then `gtrace report {0}`",
                output.display()
            ))
            .into());
    }
    ui.say(&summary(recorded));
    let missing = missing(recorded);
    for line in &missing {
        ui.warn(line);
    }
    if report {
        conclude_analysis(output, ui)?;
    }
    Ok(if missing.is_empty() { ExitStatus::Done } else { ExitStatus::Incomplete })
}

fn conclude_analysis(output: &Path, ui: &Ui) -> Result<()> {
    analyze::run(&AnalyzeArgs { bundle: output.to_owned() }, ui)?;
    report::run(
        &ReportArgs { bundle: output.to_owned(), format: ReportFormat::Text, against: None, output: None },
        ui,
    )?;
    Ok(())
}

fn summary(recorded: &Recorded) -> String {
    let meta = &recorded.meta;
    let since = |from: i64| meta.ended_ns.map_or(0.0, |ended| (ended - from) as f64 / 1e9);
    let seconds = since(meta.began_ns.unwrap_or(meta.started_ns));
    let mut text = format!("recorded {seconds:.1} s, {} events", recorded.events);
    if recorded.lost > 0 {
        let _ = write!(text, ", {} lost", recorded.lost);
    }
    if meta.began_ns.is_some() {
        let _ = write!(text, ", kept the last {:.1} s", since(meta.started_ns));
    }
    if seconds > 0.0 {
        let share = meta.recorder_cpu_ns as f64 / 1e9 / seconds * 100.0;
        let _ = write!(text, ", gtrace took {share:.1} % of one CPU");
    }
    let _ = write!(text, ": {}", recorded.output.display());
    text
}

/// What makes the recording incomplete, in words.
fn missing(recorded: &Recorded) -> Vec<String> {
    let mut lines = Vec::new();
    let all = recorded.events + recorded.lost;
    if recorded.lost as f64 > all as f64 * TOLERATED_LOSS {
        lines.push(format!(
            "{} of {all} events were lost: the time around them reads unknown (table `losses`)",
            recorded.lost
        ));
    }
    if let Some(reason) = &recorded.meta.gpu_missing {
        lines.push(reason.clone());
    }
    lines
}
