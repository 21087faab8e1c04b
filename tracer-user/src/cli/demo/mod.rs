//! `gtrace demo`: a small training loop, recorded and reported, and beside it the same loop unrecorded. It lies in the
//! program, so that a machine with nothing but gtrace and Python can show what a report looks like.

mod outcome;
mod training;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::collect::CollectArgs;
use super::explain::{self, ExplainArgs};
use super::recording::{KeepArgs, StackArgs};
use super::report::open;
use super::run::{self, RunArgs};
use super::{ExitStatus, Failure, OrFail as _, Result, Ui, parse_duration};
use crate::record::CALLS_OVER;
use crate::report::load;
use outcome::Paces;
use training::Training;

/// A stretch of the loop without gtrace is so much shorter than the recorded one; there are two.
const UNRECORDED_PART: u32 = 4;

/// What the loop is made to wait for.
const PLANTED: &str = "\
planted: worker processes read samples from cold files, which takes most of their time, and decode them; the GPU could
planted: take batches faster than they come. Every 10 steps the loss is read (a synchronising call); now and then a
planted: checkpoint is written and synced. So the report should name reading first (storage.read: the disk, and its queue
planted: behind the other workers), in a worker process, with its file and disk; decoding after it (host.cpu.user); and a
planted: little for the checkpoint. Where something else wants the CPUs, waits for a CPU (host.runq) come to that.";

/// Arguments of `gtrace demo`.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Where to write the recording [default: demo.gtrace in the working directory].
    #[arg(long, short, visible_alias = "out", value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// How long to record the loop. Before and after it runs for a quarter of that without gtrace, to compare.
    #[arg(long, short, value_name = "TIME", default_value = "14s", value_parser = parse_duration)]
    pub duration: Duration,
    /// Where the demo keeps its program and its data set, about 540 MB on a real disk [default:
    /// ~/.cache/gtrace/demo].
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
}

/// Records the demo and reports it.
///
/// # Errors
/// The demo cannot be started or recorded.
pub fn run(args: &DemoArgs, ui: &Ui) -> Result<ExitStatus> {
    let output = args.output.clone().unwrap_or_else(|| "demo.gtrace".into());
    if output.exists() {
        return Err(Failure::new(format!("cannot record to {}", output.display()))
            .because("it exists already")
            .try_this("name another folder with --out, or remove that one")
            .wrong_usage()
            .into());
    }
    let folder = args.data.clone().map_or_else(default_folder, Ok)?;
    let training = Training::set_up(&folder, ui)?;
    training.prepare()?;
    for line in PLANTED.lines() {
        ui.say(line);
    }
    let short = args.duration / UNRECORDED_PART;
    let seconds = |time: Duration| time.as_secs_f64();
    ui.say(&format!("demo: {:.1} s without gtrace", seconds(short)));
    let before = training.run(short)?;
    let recorded = RunArgs {
        output: Some(output.clone()),
        duration: None,
        keep: KeepArgs { rotate: None, calls_over: CALLS_OVER },
        no_cupti: false,
        collect: CollectArgs::default(),
        stacks: StackArgs::default(),
        no_report: false,
        command: training.command_line(args.duration),
    };
    let status = run::run(&recorded, ui)?;
    let recorded = training.result();
    let (ExitStatus::Command(0), Some(recorded)) = (status, recorded) else {
        return Ok(status);
    };
    ui.say(&format!("demo: {:.1} s without gtrace", seconds(short)));
    let after = training.run(short)?;
    let bundle = open(&output)?;
    let unread = || format!("cannot read the recording {}", output.display());
    let remedy = "make it anew with `gtrace demo`";
    let gap = outcome::typical_gap(&bundle).or_fail(unread(), remedy)?;
    if let Some(gap) = gap {
        explain::run(&ExplainArgs { bundle: output.clone(), gap: Some(gap.0), at: None }, ui)?;
    }
    let report = load::report(&bundle, &|_| ()).or_fail(unread(), remedy)?;
    let paces = Paces { before, recorded, after };
    ui.print(&outcome::render(&report, &paces, gap))?;
    Ok(status)
}

/// The user's own cache: nobody else can have put anything there, and it lies on a disk.
fn default_folder() -> Result<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|folder| folder.is_absolute());
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let cache = cache.or_else(home).ok_or_else(|| {
        Failure::new("cannot find a place for the demo's data")
            .because("neither XDG_CACHE_HOME nor HOME is set")
            .try_this("name a folder with --data")
            .wrong_usage()
    })?;
    Ok(cache.join("gtrace").join("demo"))
}
