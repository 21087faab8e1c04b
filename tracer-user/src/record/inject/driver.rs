//! The CUDA driver in a process.

use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use super::calls::FUNCTIONS;
use super::elf::{self, Mapped};
use super::target;
use crate::event::Pid;

/// Entry points that launch graphs; the second is that of programs with a default stream a thread.
const GRAPH_LAUNCHES: [&str; 2] = ["cuGraphLaunch", "cuGraphLaunch_ptsz"];
/// Entry points that launch one kernel.
const LAUNCHES: [&str; 6] = [
    "cuLaunchKernel",
    "cuLaunchKernel_ptsz",
    "cuLaunchKernelEx",
    "cuLaunchKernelEx_ptsz",
    "cuLaunchCooperativeKernel",
    "cuLaunchCooperativeKernel_ptsz",
];
/// Entry points that send other work. A program that makes none of these calls does nothing on a device.
const WORK: [&str; 4] = [
    "cuMemcpyHtoDAsync_v2",
    "cuMemcpyHtoDAsync_v2_ptsz",
    "cuMemcpyDtoHAsync_v2",
    "cuMemcpyDtoHAsync_v2_ptsz",
];

/// CUPTI's functions by which a client comes or goes, each with its number ([`Client`]).
const CLIENT_CALLS: [(&str, Client); 10] = [
    ("cuptiActivityRegisterCallbacks", Client::Registers),
    ("cuptiActivityRegisterCallbacks_v2", Client::Registers),
    ("cuptiActivityEnable", Client::Enables),
    ("cuptiActivityEnable_v2", Client::Enables),
    ("cuptiActivityEnableAndDump", Client::Enables),
    ("cuptiActivityDisable", Client::Disables),
    ("cuptiActivityDisable_v2", Client::Disables),
    ("cuptiUnsubscribe", Client::Leaves),
    ("cuptiFinalize", Client::Leaves),
    ("cuptiActivityFlushAll", Client::Flushes),
];

/// What a client of CUPTI does with a call.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Client {
    /// Takes over who gives and gets buffers.
    Registers = 1,
    /// Switches records on.
    Enables = 2,
    /// Switches them off.
    Disables = 3,
    /// Goes.
    Leaves = 4,
    /// Asks for what there is.
    Flushes = 5,
}

/// The libcupti of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cupti {
    /// A path that leads to the very file that is mapped.
    pub path: PathBuf,
    /// Device and inode: processes may share it.
    pub file: (u64, u64),
    /// Where in the file clients come and go.
    pub clients: Vec<(u64, Client)>,
}

impl Cupti {
    /// Of a process; `None` if it has none.
    #[must_use]
    pub fn of(pid: Pid) -> Option<Self> {
        let mapped = target::files(pid).into_iter().find(|file| file.path.contains("/libcupti.so"))?;
        let path = mapped.link(pid);
        let metadata = std::fs::metadata(&path).ok()?;
        let bytes = mapped.read(pid)?;
        let clients =
            CLIENT_CALLS.iter().filter_map(|(name, what)| Some((elf::function_offset(&bytes, name)?, *what)));
        Some(Self { clients: clients.collect(), path, file: (metadata.dev(), metadata.ino()) })
    }
}

/// Where distributions and containers put the driver.
const INSTALLED: [&str; 5] =
    ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/lib/wsl/lib"];

/// The driver's file as it is mapped into a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Driver {
    /// A path that leads to the very file that is mapped, wherever the process sees it.
    pub path: PathBuf,
    /// Device and inode: processes may share it.
    pub file: (u64, u64),
    /// Where in the file CUDA graphs are launched.
    pub graph_launches: Vec<u64>,
    /// Where kernels are launched.
    pub launches: Vec<u64>,
    /// Where other work is sent to a device.
    pub work: Vec<u64>,
    /// Where every function that says what a device has to do lies.
    pub functions: Vec<(&'static str, u64)>,
}

impl Driver {
    /// Of a process; `None` if it has none.
    #[must_use]
    pub fn of(pid: Pid) -> Option<Self> {
        Self::at(mapped(pid)?.link(pid))
    }

    /// The drivers that a program started now would find: in `LD_LIBRARY_PATH` and where distributions put them.
    #[must_use]
    pub fn installed() -> Vec<Self> {
        let named = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
        let folders = std::env::split_paths(&named).chain(INSTALLED.iter().map(PathBuf::from));
        let mut drivers: Vec<Self> = Vec::new();
        for folder in folders.filter(|folder| folder.is_absolute()) {
            if let Some(driver) = Self::at(folder.join("libcuda.so.1"))
                && drivers.iter().all(|known| known.file != driver.file)
            {
                drivers.push(driver);
            }
        }
        drivers
    }

    fn at(path: PathBuf) -> Option<Self> {
        let metadata = std::fs::metadata(&path).ok()?;
        let bytes = elf::read(&path)?;
        let offsets =
            |names: &[&str]| names.iter().filter_map(|name| elf::function_offset(&bytes, name)).collect();
        let functions = FUNCTIONS.iter().map(|function| function.symbol);
        Some(Self {
            functions: functions
                .filter_map(|name| Some((name, elf::function_offset(&bytes, name)?)))
                .collect(),
            path,
            file: (metadata.dev(), metadata.ino()),
            graph_launches: offsets(&GRAPH_LAUNCHES),
            launches: offsets(&LAUNCHES),
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
