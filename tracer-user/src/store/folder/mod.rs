//! Folders, opened once and then worked in by handle.
//!
//! The recorder runs as root and writes into a folder that belongs to the user who called it. Any path below that folder
//! may be turned into a symbolic link by that user between two system calls. So nothing below it is ever named by path:
//! every file is created new in an open folder, and nothing is followed.

#[cfg(not(unix))]
mod portable;
#[cfg(unix)]
mod unix;

#[cfg(not(unix))]
pub use portable::Folder;
#[cfg(unix)]
pub use unix::Folder;

/// User and group that a bundle is given to.
pub type Owner = (u32, u32);
