//! `gtrace run`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::collect::CollectArgs;
use super::recording::{KeepArgs, StackArgs, announce, conclude, failure, owner};
use super::{ExitStatus, Failure, Result, Ui, parse_duration};
use crate::record::launch::CommandLine;
use crate::record::{RecordError, Request, Target, exit_code, injection, record};

/// Arguments of `gtrace run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Where to write the recording [default: a new NAME.gtrace in the working directory].
    #[arg(long, short, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Stop recording after so long (30s, 2m); the command goes on.
    #[arg(long, short, value_name = "TIME", value_parser = parse_duration)]
    pub duration: Option<Duration>,
    /// How much of it all is kept.
    #[command(flatten)]
    pub keep: KeepArgs,
    /// Bring nothing into the command: the GPU side is made of the driver's calls alone, and its gaps are bounds.
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
    /// The command and its arguments, after `--`. It runs as gtrace itself does: under sudo as root. `sudo gtrace run --
    /// runuser -u NAME -- CMD` runs it as another user (`sudo -u` would clear the variable that brings gtrace into it).
    #[arg(value_name = "CMD", required = true, last = true)]
    pub command: Vec<OsString>,
}

/// Records a command from its start, then analyses and reports. Ends with the command's exit status.
///
/// # Errors
/// The command cannot be started or recorded. If it ran, what went wrong with its recording is said, and its exit
/// status stays its own.
pub fn run(args: &RunArgs, ui: &Ui) -> Result<ExitStatus> {
    let mut line = CommandLine { words: args.command.clone(), variables: Vec::new() };
    match injection::variable() {
        _ if args.no_cupti => {}
        Ok(variable) => {
            line.variables.extend(variable);
            // A program may be under another tool that listens to its marks; those are then left to it.
            if let (Ok(shim), None) = (injection::library(), std::env::var_os(injection::NVTX_VARIABLE)) {
                line.variables.push((injection::NVTX_VARIABLE.into(), shim.into()));
            }
            // Without this the shim waits for a recorder to find it, and the first calls are missed.
            line.variables.push((injection::START.into(), "1".into()));
            let collection = args.collect.wish().collection.to_raw();
            line.variables.push((injection::COLLECT.into(), collection.to_string().into()));
        }
        Err(obstacle) => ui.warn(&obstacle.to_string()),
    }
    let request = Request {
        target: Target::Run(line),
        output: args.output.clone(),
        duration: args.duration,
        calls_over: args.keep.calls_over,
        stack_rate: args.stacks.rate(),
        inject: false,
        no_cupti: args.no_cupti,
        wish: args.collect.wish(),
        owner: owner(),
        keep: args.keep.rotate,
        seal_after: None,
    };
    let recorded = match record(&request, &mut |notice| announce(notice, ui, " until it ends")) {
        Ok(recorded) => recorded,
        Err(error) => return not_run(&error, args, ui),
    };
    let own = conclude(&recorded, !args.no_report, ui);
    match (recorded.command.map(exit_code), own) {
        (Some(code), own) => {
            if let Err(error) = own {
                ui.error(&error);
            }
            Ok(ExitStatus::Command(code))
        }
        (None, own) => own,
    }
}

/// The command did not run. A program that cannot be executed ends as it does in a shell: 127 if there is none, 126 if
/// it may not be executed.
fn not_run(error: &RecordError, args: &RunArgs, ui: &Ui) -> Result<ExitStatus> {
    let status = match error {
        RecordError::Command { source, .. } => Some(match source.kind() {
            std::io::ErrorKind::NotFound => 127,
            _ => 126,
        }),
        _ => None,
    };
    let failure: Failure =
        failure(format!("cannot record {}", args.command.join(" ".as_ref()).display()), error);
    match status {
        Some(code) => {
            ui.error(&failure.into());
            Ok(ExitStatus::Command(code))
        }
        None => Err(failure.into()),
    }
}
