//! Chrome trace-event JSON, for chrome://tracing (catapult's trace viewer), ui.perfetto.dev and all that read it.
//!
//! The format: <https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU>. What becomes what:
//!
//! | recorded | in the trace |
//! |---|---|
//! | a GPU | a process, with a track of its gaps (the gap, and in it its segments, named and coloured by cause) and a track a stream |
//! | a thread | two tracks of its process: its state (running, runnable, blocked on …), and its CUDA and system calls |
//! | a block device | a track of its requests: in the queue, in the device |
//! | launch → op, waker → woken, leaf of a chain → segment | flow arrows `launch`, `wake`, `cause` |
//! | lost events | a track for each source |
//!
//! Events are written as they are read: memory is needed for gaps and segments, and for what arrows join, not for events.

mod calls;
mod counts;
mod error;
mod events;
mod gaps;
mod host;
mod json;
mod names;
mod ops;
mod plan;
mod select;
mod states;
mod tracks;

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::Path;

use crate::event::{GapId, MonoNs};
use crate::store::Bundle;

pub use counts::Counts;
pub use error::ExportError;

use events::Events;
use json::Object;
use names::Names;
use plan::Story;
use select::Selection;
use tracks::Tracks;

/// What to export.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Only what touches this gap and a margin around it.
    pub around_gap: Option<GapId>,
    /// The largest file wanted, in bytes. What stays are the longest gaps with what touches them, as many as fit.
    pub max_bytes: Option<u64>,
}

/// What was exported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Size of the JSON in bytes.
    pub bytes: u64,
    /// Rows by table: exported and left out.
    pub counts: Counts,
    /// What stays, in words.
    pub choice: String,
}

/// Exports to a file. It gets its name only when it is whole; a file of that name is replaced.
///
/// # Errors
/// The bundle cannot be read, the file cannot be written, or nothing fits into [`Options::max_bytes`].
pub fn export_to_file(bundle: &Bundle, path: &Path, options: &Options) -> Result<Summary, ExportError> {
    let failed = |source| ExportError::Write { path: path.to_owned(), source };
    let name = path.file_name().ok_or_else(|| failed(std::io::ErrorKind::IsADirectory.into()))?;
    let mut temporary = std::ffi::OsString::from(".");
    temporary.push(name);
    temporary.push(format!(".{}.tmp", std::process::id()));
    let temporary = path.with_file_name(temporary);
    // Created new, so that no link in a shared folder leads it elsewhere.
    let file = OpenOptions::new().write(true).create_new(true).open(&temporary).map_err(failed)?;
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

fn export_to(bundle: &Bundle, file: File, options: &Options) -> Result<(Summary, File), ExportError> {
    let mut out = BufWriter::with_capacity(1 << 20, file);
    let summary = export(bundle, &mut out, options)?;
    let file = out.into_inner().map_err(|error| ExportError::out(error.into_error()))?;
    Ok((summary, file))
}

/// Exports to anything.
///
/// # Errors
/// The bundle cannot be read, `out` cannot be written, or nothing fits into [`Options::max_bytes`].
pub fn export(bundle: &Bundle, out: impl Write, options: &Options) -> Result<Summary, ExportError> {
    let story = Story::load(bundle)?;
    let plan = plan::plan(bundle, &story, options)?;
    let (bytes, counts) = write(bundle, &story, &plan.selection, &plan.choice, out)?;
    Ok(Summary { bytes, counts, choice: plan.choice })
}

/// Writes one whole trace of what is selected.
fn write(
    bundle: &Bundle,
    story: &Story,
    selection: &Selection,
    choice: &str,
    out: impl Write,
) -> Result<(u64, Counts), ExportError> {
    let meta = bundle.meta();
    let mut pass = Pass {
        bundle,
        story,
        selection,
        names: &story.names,
        end: story.end,
        events: Events::begin(out, MonoNs(meta.started_ns)).map_err(ExportError::out)?,
        tracks: Tracks::default(),
        counts: Counts::default(),
    };
    let gaps = pass.gaps()?;
    let launches = pass.ops()?;
    pass.calls(&launches)?;
    let requests = pass.states(&gaps)?;
    pass.block_io(&requests)?;
    pass.overhead()?;
    pass.losses()?;
    pass.track_names()?;
    let about = pass.about(choice);
    let bytes = pass.events.finish(about).map_err(ExportError::out)?;
    Ok((bytes, pass.counts))
}

/// One writing of a trace.
struct Pass<'a, W> {
    bundle: &'a Bundle,
    story: &'a Story,
    selection: &'a Selection,
    names: &'a Names,
    /// What has no end of its own ends here.
    end: MonoNs,
    events: Events<W>,
    tracks: Tracks,
    counts: Counts,
}

impl<W: Write> Pass<'_, W> {
    /// `otherData`: what the trace is of, and what it leaves out.
    fn about(&self, choice: &str) -> Object {
        let meta = self.bundle.meta();
        let mut kept = Object::default();
        let mut left_out = Object::default();
        for (table, (exported, rows)) in self.counts.tables() {
            kept = kept.integer(table, exported as i64);
            left_out = left_out.integer(table, rows as i64);
        }
        let mut losses = Object::default();
        for (source, count) in &meta.losses {
            losses = losses.integer(source, *count as i64);
        }
        Object::default()
            .text("written_by", concat!("gtrace ", env!("CARGO_PKG_VERSION")))
            .text("recorded_by", &format!("gtrace {}", meta.gtrace_version))
            .text("host", &meta.host)
            .text("kernel", &meta.kernel)
            .text("command", &meta.command.join(" "))
            .text("ended", &meta.ended)
            .text("clock", "ts 0 is start_mono_ns of CLOCK_MONOTONIC; add utc_offset_ns to that for UTC")
            .text("start_mono_ns", &meta.started_ns.to_string())
            .text("utc_offset_ns", &meta.utc_offset_ns.to_string())
            .text("choice", choice)
            .text("threads", &self.story.threads_in_words(self.selection))
            .object("exported_rows", kept)
            .object("left_out_rows", left_out)
            .object("lost_events", losses)
    }
}
