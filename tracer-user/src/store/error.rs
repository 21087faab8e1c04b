//! What can go wrong with a bundle.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::meta::SchemaVersion;
use super::table::RowError;

/// A bundle cannot be written or read.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The folder to create is there already.
    #[error("{} exists already; name another folder with -o, or remove that one", .0.display())]
    Exists(PathBuf),
    /// The folder is no bundle.
    #[error("{} is no recording: it has no meta.json; name the folder that `gtrace run` or `attach` wrote", .0.display())]
    NotABundle(PathBuf),
    /// No space, or no quota, for what was to be written.
    #[error(
        "no space left for {}: what was written before stays readable; free some space, or record to another disk with -o",
        .0.display()
    )]
    DiskFull(PathBuf),
    /// The operating system refused.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried: `create`, `write` …
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        source: Arc<io::Error>,
    },
    /// A part is not what was written, or was written by something else.
    #[error("{} is damaged: {reason}; move that file away to read the rest of the recording", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A part holds other columns than the schema says.
    #[error("{}: {source}", path.display())]
    Rows {
        /// The file.
        path: PathBuf,
        /// Which column.
        source: RowError,
    },
    /// `meta.json` cannot be understood.
    #[error("{} cannot be understood: {reason}", path.display())]
    Meta {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The bundle was written by a newer gtrace.
    #[error(
        "{} has schema {}.{}, this gtrace reads up to {}.x; open it with gtrace {gtrace_version} or newer",
        path.display(), found.major, found.minor, SchemaVersion::CURRENT.major
    )]
    NewerSchema {
        /// The bundle.
        path: PathBuf,
        /// Its schema.
        found: SchemaVersion,
        /// What wrote it.
        gtrace_version: String,
    },
    /// The rows could not be encoded as Parquet.
    #[error("cannot encode table `{table}` as Parquet: {reason}")]
    Encode {
        /// The table.
        table: &'static str,
        /// Why not.
        reason: String,
    },
}

impl StoreError {
    /// An error of the operating system; a full disk is told apart.
    #[must_use]
    pub fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        if is_full(&source) {
            return Self::DiskFull(path.into());
        }
        Self::Io { action, path: path.into(), source: Arc::new(source) }
    }

    /// Whether space ran out.
    #[must_use]
    pub fn is_disk_full(&self) -> bool {
        matches!(self, Self::DiskFull(_))
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
