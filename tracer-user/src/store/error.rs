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
    #[error("{} exists already", .0.display())]
    Exists(PathBuf),
    /// The folder is no bundle.
    #[error("{} is no recording: it has no meta.json", .0.display())]
    NotABundle(PathBuf),
    /// No space, or no quota, for what was to be written.
    #[error("no space left on the disk of {}; what was written before stays readable", .0.display())]
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
    #[error("{} is damaged: {reason}", path.display())]
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
        "{} has schema {}.{}, written by gtrace {gtrace_version}; this gtrace reads up to {}.x",
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

    /// What to do about it.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Exists(_) => "name another folder with -o, or remove that one",
            Self::NotABundle(_) => "name the folder that `gtrace run` or `gtrace attach` wrote",
            Self::DiskFull(_) => "free some space, or record to another disk with -o",
            Self::Io { source, .. } => match source.kind() {
                io::ErrorKind::PermissionDenied => "use a folder that is yours, or run this with sudo",
                io::ErrorKind::NotFound => "check the name; the folder that it is in must exist",
                io::ErrorKind::ReadOnlyFilesystem => "use a folder on another file system",
                _ => "check that the file system is well and that this is a plain file or folder on it",
            },
            Self::Damaged { .. } | Self::Rows { .. } => {
                "move that file away to read the rest of the recording"
            }
            Self::Meta { .. } => "restore meta.json; without it the tables can still be read with SQL",
            Self::NewerSchema { .. } => "open it with that version of gtrace, or a newer one",
            Self::Encode { .. } => "report this as a defect of gtrace, with this message",
        }
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
