//! Other people's recordings as bundles of ours.
//!
//! ```text
//! file ─> input (plain or gzip; text or SQLite) ─┬─> kineto ─┬─> tables ─> store
//!                                                └─> nsys ───┘     └ losses
//! ```
//!
//! A file is read once, from its beginning to its end, with memory for a window of it. What a record says that cannot be
//! true is refused and counted by kind; where it may have been GPU work, its time is unknown to the attribution.

mod correlations;
mod error;
mod input;
mod intern;
mod kineto;
mod losses;
mod nsys;
mod tables;
mod words;

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

pub use error::ImportError;
pub use tables::Counts;

use crate::store::Meta;
use crate::store::meta::GpuInfo;
use input::{Format, Input, ReadAhead};
use kineto::NotATrace;
use tables::Tables;

/// What an import came to.
#[derive(Debug)]
pub struct Imported {
    /// The bundle.
    pub output: PathBuf,
    /// What its `meta.json` says.
    pub meta: Meta,
    /// What it holds.
    pub counts: Counts,
    /// Refused records by source and reason, the most frequent first.
    pub refused: Vec<(&'static str, String, i64)>,
    /// Why the end of the file is missing, if it is.
    pub cut: Option<String>,
    /// This process's place in its job, where the trace says it.
    pub rank: Option<i32>,
    /// Ranks of the job.
    pub world_size: Option<i32>,
}

impl Imported {
    /// How many records were refused.
    #[must_use]
    pub fn refused_records(&self) -> i64 {
        self.refused.iter().map(|(.., count)| count).sum()
    }
}

/// Imports one file into a new bundle in the folder `output`.
///
/// # Errors
/// The file cannot be read or is no trace, or the bundle cannot be written. No bundle is left then.
pub fn import_file(path: &Path, output: &Path) -> Result<Imported, ImportError> {
    let unreadable = |source| ImportError::Unreadable { path: path.into(), source };
    let input = input::open(path).map_err(unreadable)?;
    let meta = Meta {
        gtrace_version: env!("CARGO_PKG_VERSION").into(),
        mode: "import".into(),
        command: vec![path.file_name().unwrap_or(OsStr::new("")).to_string_lossy().into_owned()],
        // Until it is whole.
        ended: "running".into(),
        ..Meta::default()
    };
    let mut tables = Tables::create(output, meta.clone())?;
    let result = match input.format {
        Format::Text => {
            let contents = ReadAhead::start(input.contents).map_err(unreadable);
            contents.and_then(|contents| read_kineto(path, contents, &mut tables, meta))
        }
        Format::Sqlite => read_nsys(path, input, output, &mut tables, meta),
    };
    let finished = result.and_then(|read| finish(path, output, tables, read));
    if finished.is_err() {
        // Made by this call, and nothing in it is of use.
        let _ = std::fs::remove_dir_all(output);
    }
    finished
}

/// What one of the formats came to.
struct FileRead {
    meta: Meta,
    cut: Option<String>,
    rank: Option<i32>,
    world_size: Option<i32>,
    /// What there was instead, if nothing was of use.
    found: String,
}

fn read_kineto(
    path: &Path,
    contents: impl Read,
    tables: &mut Tables,
    meta: Meta,
) -> Result<FileRead, ImportError> {
    let outcome = kineto::read(contents, tables).map_err(|error| match error {
        NotATrace::Unreadable(source) => ImportError::Unreadable { path: path.into(), source },
        other => ImportError::NotATrace { path: path.into(), reason: other.to_string() },
    })?;
    let header = outcome.header;
    let mut found = format!("{} events of other kinds", outcome.events);
    if outcome.malformed > 0 {
        let _ = write!(found, ", {} pieces of text that are no event", outcome.malformed);
    }
    if let Some(cut) = &outcome.cut {
        let _ = write!(found, ", and {cut}");
    }
    Ok(FileRead {
        meta: Meta { gpus: header.gpus, host: header.host, utc_offset_ns: header.base_ns, ..meta },
        cut: outcome.cut,
        rank: header.rank,
        world_size: header.world_size,
        found,
    })
}

/// SQLite reads a file of its own: what is compressed is unpacked beside the tables for as long.
fn read_nsys(
    path: &Path,
    input: Input,
    output: &Path,
    tables: &mut Tables,
    meta: Meta,
) -> Result<FileRead, ImportError> {
    let unpacked = output.join(".unpacked.sqlite");
    let mut cut = None;
    let database = if input.compressed {
        let mut contents = input.contents;
        let mut file = std::fs::File::create_new(&unpacked)
            .map_err(|source| ImportError::Unpack { path: unpacked.clone(), source })?;
        // A cut stream leaves the pages that came before the cut.
        if let Err(error) = io::copy(&mut contents, &mut file) {
            if error.kind() == io::ErrorKind::StorageFull {
                return Err(ImportError::Unpack { path: unpacked, source: error });
            }
            cut = Some(format!("unpacking it failed in the middle: {error}"));
        }
        &unpacked
    } else {
        path
    };
    let outcome = nsys::read(database, tables);
    if input.compressed {
        let _ = std::fs::remove_file(&unpacked);
    }
    let not_a_trace = |reason| match &cut {
        Some(cut) => ImportError::NotATrace { path: path.into(), reason: format!("{reason}; {cut}") },
        None => ImportError::NotATrace { path: path.into(), reason },
    };
    let outcome = outcome.map_err(not_a_trace)?;
    if cut.is_some() && outcome.cut.is_none() {
        tables.lose_everything("the end of the file is missing");
    }
    Ok(FileRead {
        meta: Meta { gpus: outcome.gpus, host: outcome.host, utc_offset_ns: outcome.base_ns, ..meta },
        cut: cut.or(outcome.cut),
        rank: None,
        world_size: None,
        found: "a database without any event".into(),
    })
}

fn finish(path: &Path, output: &Path, tables: Tables, read: FileRead) -> Result<Imported, ImportError> {
    let counts = tables.counts();
    let refused = tables.losses.by_reason();
    if tables.span().is_none() {
        let mut reason = read.found;
        for (_, why, count) in refused.iter().take(3) {
            let _ = write!(reason, "; {count} × {why}");
        }
        return Err(ImportError::NothingIn { path: path.into(), reason });
    }
    let mut meta = read.meta;
    if counts.ops == 0 {
        meta.gpu_missing =
            Some("the trace holds no GPU work: it was taken without the GPU's activities".into());
    }
    meta.gpus.retain(|gpu: &GpuInfo| gpu.device >= 0);
    let meta = tables.finish(meta, read.rank)?;
    Ok(Imported {
        output: output.into(),
        meta,
        counts,
        refused,
        cut: read.cut,
        rank: read.rank,
        world_size: read.world_size,
    })
}
