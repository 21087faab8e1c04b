//! The CUDA driver in a process.

use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use super::{elf, target};
use crate::event::Pid;

/// Entry points that launch graphs; the second is that of programs with a default stream a thread.
const GRAPH_LAUNCHES: [&str; 2] = ["cuGraphLaunch", "cuGraphLaunch_ptsz"];

/// The driver's file as it is mapped into a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Driver {
    /// A path that leads to the very file that is mapped, wherever the process sees it.
    pub path: PathBuf,
    /// Device and inode: processes may share it.
    pub file: (u64, u64),
    /// Where in the file CUDA graphs are launched.
    pub graph_launches: Vec<u64>,
}

impl Driver {
    /// Of a process; `None` if it has none.
    #[must_use]
    pub fn of(pid: Pid) -> Option<Self> {
        let mapped = target::files(pid).into_iter().find(|file| file.path.contains("/libcuda.so"))?;
        let path = mapped.link(pid);
        let metadata = std::fs::metadata(&path).ok()?;
        let bytes = mapped.read(pid)?;
        let graph_launches =
            GRAPH_LAUNCHES.iter().filter_map(|name| elf::function_offset(&bytes, name)).collect();
        Some(Self { path, file: (metadata.dev(), metadata.ino()), graph_launches })
    }
}
