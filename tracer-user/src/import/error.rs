//! What can go wrong with an import.

use std::io;
use std::path::PathBuf;

use crate::store::StoreError;

/// A file cannot be imported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// It cannot be opened or read.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It is neither a PyTorch profiler trace nor an Nsight Systems export.
    #[error("{}: {reason}", path.display())]
    NotATrace {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// It is a trace, and nothing in it is of use.
    #[error("{}: no event of it could be used: {reason}", path.display())]
    NothingIn {
        /// The file.
        path: PathBuf,
        /// What was found instead.
        reason: String,
    },
    /// A compressed database cannot be unpacked.
    #[error("cannot unpack it to {}: {source}", path.display())]
    Unpack {
        /// Where.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The bundle cannot be written.
    #[error(transparent)]
    Store(#[from] StoreError),
}
