//! What can go wrong with an export.

use std::io;
use std::path::{Path, PathBuf};

use crate::store::StoreError;

/// A recording cannot be exported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The recording cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The file cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The gap to export is not there.
    #[error("the recording has no gap {gap}; it has {}", in_words(*gaps))]
    NoGap {
        /// Its number.
        gap: i64,
        /// How many there are.
        gaps: usize,
    },
    /// Not even one gap without anything around it fits.
    #[error("{what} needs {needed} bytes, more than the {limit} allowed")]
    TooSmall {
        /// What.
        what: String,
        /// Its size.
        needed: u64,
        /// The limit.
        limit: u64,
    },
}

fn in_words(gaps: usize) -> String {
    if gaps == 0 {
        "none: `gtrace analyze` finds them".into()
    } else {
        format!("{gaps}, numbered in `gtrace report`")
    }
}

impl ExportError {
    /// The sink refused.
    pub(super) fn out(source: io::Error) -> Self {
        Self::Write { path: PathBuf::new(), source }
    }

    /// Names the file.
    pub(super) fn in_file(self, file: &Path) -> Self {
        match self {
            Self::Write { source, .. } => Self::Write { path: file.into(), source },
            other => other,
        }
    }
}
