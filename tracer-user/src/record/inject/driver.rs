//! The CUDA driver in a process.

use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use super::elf::{self, Mapped};
use super::target;
use crate::event::Pid;

/// Entry points that launch graphs; the second is that of programs with a default stream a thread.
const GRAPH_LAUNCHES: [&str; 2] = ["cuGraphLaunch", "cuGraphLaunch_ptsz"];
/// Entry points that send other work. A program that makes none of these calls does nothing on a device.
const WORK: [&str; 8] = [
    "cuLaunchKernel",
    "cuLaunchKernel_ptsz",
    "cuLaunchKernelEx",
    "cuLaunchKernelEx_ptsz",
    "cuMemcpyHtoDAsync_v2",
    "cuMemcpyHtoDAsync_v2_ptsz",
    "cuMemcpyDtoHAsync_v2",
    "cuMemcpyDtoHAsync_v2_ptsz",
];

/// The driver's file as it is mapped into a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Driver {
    /// A path that leads to the very file that is mapped, wherever the process sees it.
    pub path: PathBuf,
    /// Device and inode: processes may share it.
    pub file: (u64, u64),
    /// Where in the file CUDA graphs are launched.
    pub graph_launches: Vec<u64>,
    /// Where other work is sent to a device.
    pub work: Vec<u64>,
}

impl Driver {
    /// Of a process; `None` if it has none.
    #[must_use]
    pub fn of(pid: Pid) -> Option<Self> {
        let mapped = mapped(pid)?;
        let path = mapped.link(pid);
        let metadata = std::fs::metadata(&path).ok()?;
        let bytes = mapped.read(pid)?;
        let offsets =
            |names: &[&str]| names.iter().filter_map(|name| elf::function_offset(&bytes, name)).collect();
        Some(Self {
            path,
            file: (metadata.dev(), metadata.ino()),
            graph_launches: offsets(&GRAPH_LAUNCHES),
            work: offsets(&WORK),
        })
    }
}

fn mapped(pid: Pid) -> Option<Mapped> {
    target::files(pid).into_iter().find(|file| file.path.contains("/libcuda.so"))
}

/// Whether a process has the driver from its parent, by a fork without an exec: mapped at the same address. CUDA does not
/// work in such a process if the parent had initialised it, and CUPTI must not be tried there.
#[must_use]
pub fn is_inherited(pid: Pid) -> bool {
    let parent = target::parent(pid).and_then(mapped);
    parent.is_some_and(|parent| {
        mapped(pid).is_some_and(|own| own.start == parent.start && own.path == parent.path)
    })
}
