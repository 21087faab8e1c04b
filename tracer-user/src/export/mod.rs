//! Recordings for trace viewers.
//!
//! One pass over the bundle ([`pass`]) makes tracks, slices, arrows and counters; each format ([`chrome`], [`perfetto`]) is a
//! [`sink::Sink`] of these. What becomes what:
//!
//! | recorded | in the trace |
//! |---|---|
//! | a GPU | a process, with a track of its gaps (the gap, and in it its segments, named by cause), a track a stream, and a counter of the time in which it was busy |
//! | a thread | two tracks of its process: its state (running, runnable, blocked on …), and its CUDA and system calls |
//! | a block device | a track of its requests: in the queue, in the device; counters of their number and throughput |
//! | launch → op, waker → woken, leaf of a chain → segment | arrows `launch`, `wake`, `cause` |
//! | lost events | a track for each source |
//!
//! Events are written as they are read: memory is needed for gaps and segments, and for what arrows join, not for events.

mod background;
mod chrome;
mod counts;
mod error;
mod names;
mod pass;
mod perfetto;
mod plan;
mod select;
mod sink;
mod story;
mod text;
mod tracks;

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use crate::event::{GapId, MonoNs};
use crate::store::Bundle;

pub use counts::Counts;
pub use error::ExportError;

use background::Background;
use chrome::Chrome;
use perfetto::Perfetto;
use select::Selection;
use sink::Sink;
use story::Story;

/// A format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Chrome trace-event JSON.
    #[default]
    Chrome,
    /// Perfetto's protocol buffers.
    Perfetto,
}

/// What to export.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// As what.
    pub format: Format,
    /// Only what touches this gap and a margin around it.
    pub around_gap: Option<GapId>,
    /// The largest file wanted, in bytes. What stays are the longest gaps with what touches them, as many as fit.
    pub max_bytes: Option<u64>,
}

/// What was exported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Size of the trace in bytes.
    pub bytes: u64,
    /// Rows by table: exported and left out.
    pub counts: Counts,
    /// What stays, in words.
    pub choice: String,
}

/// Exports to a new file, which only its owner may read, as the recording. It gets its name only when it is whole.
///
/// # Errors
/// The bundle cannot be read, there is something of that name already, the file cannot be written, or nothing fits into [`Options::max_bytes`].
pub fn export_to_file(bundle: &Bundle, path: &Path, options: &Options) -> Result<Summary, ExportError> {
    let failed = |source| ExportError::Write { path: path.to_owned(), source };
    let temporary = unfinished_name(path).ok_or_else(|| failed(std::io::ErrorKind::IsADirectory.into()))?;
    // Whatever it is: a link, a device or a part of the recording as well.
    if path.symlink_metadata().is_ok() {
        return Err(failed(std::io::ErrorKind::AlreadyExists.into()));
    }
    // Created new, so that no link in a shared folder leads it elsewhere.
    let file =
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary).map_err(failed)?;
    let done =
        export_to(bundle, file, options).map_err(|error| error.in_file(path)).and_then(|(summary, file)| {
            file.sync_all().and_then(|()| std::fs::rename(&temporary, path)).map_err(failed)?;
            Ok(summary)
        });
    if done.is_err() {
        // Best effort: the error at hand says more.
        let _ = std::fs::remove_file(&temporary);
    }
    done
}

/// What the file `path` is called while this process writes it: `.NAME.PID.tmp` beside it. `None` if `path` names no file.
#[must_use]
pub fn unfinished_name(path: &Path) -> Option<PathBuf> {
    let mut temporary = std::ffi::OsString::from(".");
    temporary.push(path.file_name()?);
    temporary.push(format!(".{}.tmp", std::process::id()));
    Some(path.with_file_name(temporary))
}

fn export_to(bundle: &Bundle, file: File, options: &Options) -> Result<(Summary, File), ExportError> {
    let mut out = Background::begin(file).map_err(ExportError::out)?;
    let summary = export(bundle, &mut out, options)?;
    let file = out.finish().map_err(ExportError::out)?;
    Ok((summary, file))
}

/// Exports to anything.
///
/// # Errors
/// The bundle cannot be read, `out` cannot be written, or nothing fits into [`Options::max_bytes`].
pub fn export(bundle: &Bundle, out: impl Write, options: &Options) -> Result<Summary, ExportError> {
    let story = Story::load(bundle)?;
    let plan = plan::plan(bundle, &story, options)?;
    let (bytes, counts) = write(bundle, &story, &plan.selection, &plan.choice, options.format, out)?;
    Ok(Summary { bytes, counts, choice: plan.choice })
}

/// Writes one whole trace of what is selected.
fn write(
    bundle: &Bundle,
    story: &Story,
    selection: &Selection,
    choice: &str,
    format: Format,
    out: impl Write,
) -> Result<(u64, Counts), ExportError> {
    let started = MonoNs(bundle.meta().started_ns);
    let (mut chrome, mut perfetto);
    let sink: &mut dyn Sink = match format {
        Format::Chrome => {
            chrome = Chrome::begin(out, started).map_err(ExportError::out)?;
            &mut chrome
        }
        Format::Perfetto => {
            let utc = bundle.meta().utc_offset_ns;
            perfetto = Perfetto::begin(out, started, utc).map_err(ExportError::out)?;
            &mut perfetto
        }
    };
    pass::write(bundle, story, selection, choice, sink)
}
