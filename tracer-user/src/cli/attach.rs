//! `gtrace attach`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::collect::CollectArgs;
use super::recording::{KeepArgs, StackArgs, announce, conclude, failure, owner};
use super::{ExitStatus, Result, Ui, parse_duration};
use crate::event::Pid;
use crate::record::{Request, Target, record};

/// Arguments of `gtrace attach`.
#[derive(Debug, Args)]
pub struct AttachArgs {
    /// The process; all its descendants are recorded with it.
    #[arg(value_name = "PID")]
    pub pid: i32,
    /// Where to write the recording [default: a new NAME.gtrace in the working directory].
    #[arg(long, short, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Stop after so long (30s, 2m); without it: on Ctrl-C, or when the process ends.
    #[arg(long, short, value_name = "TIME", value_parser = parse_duration)]
    pub duration: Option<Duration>,
    /// How much of it all is kept.
    #[command(flatten)]
    pub keep: KeepArgs,
    /// Bring nothing into the process: the GPU side is made of the driver's calls alone, and its gaps are bounds.
    #[arg(long, conflicts_with_all = ["cupti", "graphs", "window"])]
    pub no_cupti: bool,
    /// What is collected of the GPU side.
    #[command(flatten)]
    pub collect: CollectArgs,
    /// Stack samples.
    #[command(flatten)]
    pub stacks: StackArgs,
    /// Record only: neither analyse nor report.
    #[arg(long)]
    pub no_report: bool,
}

/// Records a running process, then analyses and reports.
///
/// # Errors
/// The process cannot be recorded, or the recording cannot be written.
pub fn run(args: &AttachArgs, ui: &Ui) -> Result<ExitStatus> {
    let request = Request {
        target: Target::Attach(Pid(args.pid)),
        output: args.output.clone(),
        duration: args.duration,
        calls_over: args.keep.calls_over,
        stack_rate: args.stacks.rate(),
        inject: !args.no_cupti,
        no_cupti: args.no_cupti,
        wish: args.collect.wish(),
        owner: owner(),
        keep: args.keep.rotate,
        seal_after: None,
    };
    let until = if args.duration.is_some() { "" } else { " until Ctrl-C" };
    let recorded = record(&request, &mut |notice| announce(notice, ui, until))
        .map_err(|error| failure(format!("cannot record process {}", args.pid), &error))?;
    conclude(&recorded, !args.no_report, ui)
}
