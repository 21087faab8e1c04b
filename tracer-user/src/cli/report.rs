//! `gtrace report`.

use std::fs::OpenOptions;
use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::{ExitStatus, Failure, OrFail as _, Result, Ui};
use crate::report::text::style::Style;
use crate::report::{compare, html, json, load, text};
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
    /// Say what got better or worse since this recording of the same program, by cause, beyond noise.
    #[arg(long, value_name = "DIR")]
    pub against: Option<PathBuf>,
    /// Write it into this new file instead of to stdout.
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// How to print a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// For a person.
    #[default]
    Text,
    /// For a program: docs/reading-a-report.md describes its shape.
    Json,
    /// For a browser: one file with charts, a timeline to zoom in and the chain behind each of the longest gaps.
    Html,
}

const ANALYZE: &str =
    "if the error names a damaged file of gaps or gap_segments, `gtrace analyze` makes it anew";

/// Prints the report of a recording.
///
/// # Errors
/// The recording cannot be read, or stdout cannot be written.
pub fn run(args: &ReportArgs, ui: &Ui) -> Result<ExitStatus> {
    if args.format == ReportFormat::Html && args.output.is_none() && std::io::stdout().is_terminal() {
        return Err(Failure::new("the page would be written on the terminal")
            .because("it is one long file of HTML")
            .try_this(format!("gtrace report {} -f html -o report.html", args.bundle.display()))
            .wrong_usage()
            .into());
    }
    if let Some(before) = &args.against {
        return against(args, before, ui);
    }
    let bundle = open(&args.bundle)?;
    let progress = ui.progress("reading the recording", Some(load::rows_to_read(bundle.meta())));
    let report = load::report(&bundle, &|rows| progress.advance(rows))
        .or_fail(format!("cannot read the recording {}", args.bundle.display()), ANALYZE)?;
    let text = match args.format {
        ReportFormat::Text => text::render(&report, plain_in_a_file(ui.style(), args)),
        ReportFormat::Json => json::pretty(&report)?,
        ReportFormat::Html => html::render(&bundle, &report, &|rows| progress.advance(rows))
            .or_fail(format!("cannot read the recording {}", args.bundle.display()), ANALYZE)?,
    };
    drop(progress);
    put(args, &text, ui)?;
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

/// Prints how a recording differs from an earlier one.
fn against(args: &ReportArgs, before: &Path, ui: &Ui) -> Result<ExitStatus> {
    let (after_bundle, before_bundle) = (open(&args.bundle)?, open(before)?);
    let rows = |bundle: &Bundle| 2 * load::rows_to_read(bundle.meta());
    let progress = ui.progress("comparing the recordings", Some(rows(&after_bundle) + rows(&before_bundle)));
    let comparison = compare::compare(&after_bundle, &before_bundle, &|rows| progress.advance(rows))
        .or_fail(format!("cannot compare {} with {}", args.bundle.display(), before.display()), ANALYZE)?;
    drop(progress);
    let text = match args.format {
        ReportFormat::Text => compare::text::render(&comparison, plain_in_a_file(ui.style(), args)),
        ReportFormat::Json => json::pretty(&comparison)?,
        ReportFormat::Html => compare::html::render(&comparison),
    };
    put(args, &text, ui)?;
    Ok(ExitStatus::Done)
}

/// Prints a text, or writes it into the file that was named.
fn put(args: &ReportArgs, text: &str, ui: &Ui) -> Result<()> {
    match &args.output {
        None => ui.print(text)?,
        Some(path) => {
            write_new(path, text)?;
            ui.say(&format!("wrote {} ({:.1} MB)", path.display(), text.len() as f64 / 1e6));
        }
    }
    Ok(())
}

/// A file has no colours.
fn plain_in_a_file(style: Style, args: &ReportArgs) -> Style {
    if args.output.is_some() { Style { colors: false, columns: 120 } } else { style }
}

/// Writes a file that was not there, readable by its owner alone as the recording is.
fn write_new(path: &Path, text: &str) -> Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(path).and_then(|mut file| {
        file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).inspect_err(|_| {
            // Half a page is none. Made a moment ago, it is nobody else's file.
            let _ = std::fs::remove_file(path);
        })
    });
    written.map_err(|error| {
        Failure::new(format!("cannot write {}", path.display()))
            .because(error.to_string())
            .try_this("name another file with -o; one that is there is not overwritten")
            .into()
    })
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
