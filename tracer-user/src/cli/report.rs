//! `gtrace report`.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::{ExitStatus, Failure, OrFail as _, Result, Ui};
use crate::report::{json, load, text};
use crate::store::schema::{Gap, GpuOp};
use crate::store::{Bundle, StoreError};

/// Arguments of `gtrace report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// The recording.
    #[arg(value_name = "DIR")]
    pub bundle: PathBuf,
    /// How to print it.
    #[arg(long, short, value_name = "FORMAT", default_value = "text")]
    pub format: ReportFormat,
}

/// How to print a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// For a person.
    #[default]
    Text,
    /// For a program: docs/reading-a-report.md describes its shape.
    Json,
}

/// Prints the report of a recording.
///
/// # Errors
/// The recording cannot be read, or stdout cannot be written.
pub fn run(args: &ReportArgs, ui: &Ui) -> Result<ExitStatus> {
    let bundle = open(&args.bundle)?;
    let progress = ui.progress("reading the recording", Some(load::rows_to_read(bundle.meta())));
    let report = load::report(&bundle, &|rows| progress.advance(rows)).or_fail(
        format!("cannot read the recording {}", args.bundle.display()),
        "if the error names a damaged file of gaps or gap_segments, `gtrace analyze` makes it anew",
    )?;
    drop(progress);
    let text = match args.format {
        ReportFormat::Text => text::render(&report, ui.style()),
        ReportFormat::Json => json::pretty(&report)?,
    };
    ui.print(&text)?;
    let adds_up =
        report.trust.uncovered_gaps == 0 && report.devices.iter().all(|device| device.imbalance_ns == 0);
    if !adds_up {
        ui.warn(
            "the report does not add up: this is an error of gtrace, please report it with the recording",
        );
        return Ok(ExitStatus::Failed);
    }
    Ok(ExitStatus::Done)
}

/// Opens a recording that was analysed.
///
/// # Errors
/// It is none, or was not analysed yet.
pub(super) fn open(path: &Path) -> Result<Bundle> {
    let bundle = open_raw(path)?;
    let unread = |error: StoreError| {
        Failure::new(format!("cannot read the recording {}", path.display())).because(error.to_string())
    };
    // One op has no gap beside it; from the second on there is something to analyse.
    if bundle.count::<Gap>().map_err(unread)? == 0 && bundle.count::<GpuOp>().map_err(unread)? > 1 {
        return Err(Failure::new(format!("there are no results in {}", path.display()))
            .because("the recording was not analysed yet")
            .try_this(format!("gtrace analyze {}", path.display()))
            .into());
    }
    Ok(bundle)
}

/// Opens a recording.
///
/// # Errors
/// It is none.
pub(super) fn open_raw(path: &Path) -> Result<Bundle> {
    Ok(Bundle::open(path).or_fail(
        format!("cannot open the recording {}", path.display()),
        "give the folder that `gtrace run -o` or `gtrace attach -o` wrote, usually NAME.gtrace",
    )?)
}
