//! `gtrace explain`.

use std::path::PathBuf;

use clap::Args;

use super::report::open;
use super::{ExitStatus, Failure, Moment, Result, Ui};
use crate::event::{GapId, MonoNs};
use crate::report::explain::{Choice, ExplainError, explain, render};

/// Arguments of `gtrace explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// The recording.
    #[arg(value_name = "DIR")]
    pub bundle: PathBuf,
    /// The gap, by its number in the report [default: the longest].
    #[arg(long, value_name = "GAP", conflicts_with = "at")]
    pub gap: Option<i64>,
    /// The gap at this time: 12.5s after the beginning of the recording, or a value of the *_ns columns.
    #[arg(long, value_name = "TIME")]
    pub at: Option<Moment>,
}

/// Explains one gap.
///
/// # Errors
/// The recording cannot be read, there is no such gap, or stdout cannot be written.
pub fn run(args: &ExplainArgs, ui: &Ui) -> Result<ExitStatus> {
    let bundle = open(&args.bundle)?;
    let choice = match (args.gap, args.at) {
        (Some(gap), _) => Choice::Gap(GapId(gap)),
        (None, Some(moment)) => Choice::At(moment.resolve(MonoNs(bundle.meta().started_ns))),
        (None, None) => Choice::Longest,
    };
    let progress = ui.progress("looking the gap up", None);
    let explanation = explain(&bundle, choice).map_err(|error| failure(args, &error))?;
    drop(progress);
    ui.print(&render(&explanation, ui.style()))?;
    if explanation.imbalance_ns() != 0 {
        ui.warn(
            "the gap is not covered exactly: this is an error of gtrace, please report it with the recording",
        );
        return Ok(ExitStatus::Failed);
    }
    Ok(ExitStatus::Done)
}

fn failure(args: &ExplainArgs, error: &ExplainError) -> Failure {
    let bundle = args.bundle.display();
    let failure = Failure::new(format!("cannot explain a gap of {bundle}")).because(error.to_string());
    match error {
        ExplainError::Store(_) => failure,
        ExplainError::NoGaps => {
            failure.try_this(format!("gtrace report {bundle} says what the recording holds"))
        }
        ExplainError::NoGapThere { nearest, .. } => {
            failure.try_this(format!("gtrace explain {bundle} --gap {nearest}"))
        }
        ExplainError::NoSuchGap(..) => {
            failure.try_this(format!("gtrace report {bundle} lists the longest gaps"))
        }
    }
}
