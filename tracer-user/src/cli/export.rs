//! `gtrace export`.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::{ExitStatus, Failure, Result, Ui, Unfinished, parse_bytes};
use crate::event::GapId;
use crate::export::{self, ExportError, Format, Options, Summary};
use crate::store::Bundle;

/// Arguments of `gtrace export`.
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// The recording.
    #[arg(value_name = "DIR")]
    pub bundle: PathBuf,
    /// What to write.
    #[arg(long, short, value_name = "FORMAT", default_value = "chrome")]
    pub format: ExportFormat,
    /// Where to write it [default: beside the recording].
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Only what surrounds this gap.
    #[arg(long, value_name = "GAP")]
    pub around_gap: Option<i64>,
    /// Keep only the longest gaps and what surrounds them where the file would be larger (200M, 1G). Where not even
    /// one fits, less of what surrounds it.
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub max_size: Option<u64>,
}

/// A format of a trace viewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// Chrome trace-event JSON: opens in chrome://tracing, ui.perfetto.dev and speedscope.
    Chrome,
    /// Perfetto's own format: opens in ui.perfetto.dev and its trace processor.
    Perfetto,
}

impl ExportFormat {
    fn format(self) -> Format {
        match self {
            Self::Chrome => Format::Chrome,
            Self::Perfetto => Format::Perfetto,
        }
    }

    /// What a file of it is called after the recording's name.
    fn extension(self) -> &'static str {
        match self {
            Self::Chrome => ".trace.json",
            Self::Perfetto => ".perfetto-trace",
        }
    }

    fn viewers(self) -> &'static str {
        match self {
            Self::Chrome => "chrome://tracing or ui.perfetto.dev",
            Self::Perfetto => "ui.perfetto.dev",
        }
    }
}

/// Writes a recording for a trace viewer.
///
/// # Errors
/// The recording cannot be read, or the file cannot be written.
pub fn run(args: &ExportArgs, ui: &Ui) -> Result<ExitStatus> {
    let what = format!("cannot export {}", args.bundle.display());
    let bundle = Bundle::open(&args.bundle)
        .map_err(|error| Failure::new(&what).because(error.to_string()).try_this(error.remedy()))?;
    let output = args.output.clone().unwrap_or_else(|| beside(&args.bundle, args.format));
    let options = Options {
        format: args.format.format(),
        around_gap: args.around_gap.map(GapId),
        max_bytes: args.max_size,
    };
    let progress = ui.progress(&format!("exporting to {}", output.display()), None);
    progress.advance(0);
    let _unfinished = export::unfinished_name(&output).as_deref().and_then(Unfinished::at);
    let summary = export::export_to_file(&bundle, &output, &options)
        .map_err(|error| Failure::new(&what).because(error.to_string()).try_this(remedy(&error)))?;
    drop(progress);
    tell(ui, &summary, args.format);
    ui.print(&format!("{}\n", output.display()))?;
    Ok(ExitStatus::Done)
}

/// `x.gtrace` becomes `x.trace.json` or `x.perfetto-trace`.
fn beside(bundle: &Path, format: ExportFormat) -> PathBuf {
    // `x.gtrace/..` and the like have no name of their own.
    let mut name = bundle.file_stem().unwrap_or("gtrace".as_ref()).to_owned();
    name.push(format.extension());
    bundle.with_file_name(name)
}

fn tell(ui: &Ui, summary: &Summary, format: ExportFormat) {
    ui.say(&format!(
        "exported {} ({:.1} MB); open it in {}",
        summary.choice,
        summary.bytes as f64 / 1e6,
        format.viewers()
    ));
    if summary.counts.left_out() > 0 {
        for (table, (exported, left_out)) in summary.counts.tables().filter(|(_, counts)| counts.1 > 0) {
            ui.detail(&format!("{table}: {exported} rows exported, {left_out} left out"));
        }
    }
}

fn remedy(error: &ExportError) -> &'static str {
    match error {
        ExportError::Store(error) => error.remedy(),
        ExportError::NoGap { .. } => "name a gap that `gtrace report` lists",
        ExportError::TooSmall { .. } => "allow more with --max-size",
        _ => "name another file with -o",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_lies_beside_the_recording() {
        let chrome = |bundle: &str| beside(Path::new(bundle), ExportFormat::Chrome);
        assert_eq!(chrome("/a/x.gtrace"), Path::new("/a/x.trace.json"));
        assert_eq!(chrome("x.gtrace/"), Path::new("x.trace.json"));
        assert_eq!(chrome("x"), Path::new("x.trace.json"));
        let perfetto = beside(Path::new("/a/x.gtrace"), ExportFormat::Perfetto);
        assert_eq!(perfetto, Path::new("/a/x.perfetto-trace"));
    }
}
