//! Why a recording could not be made.

use std::io;
use std::path::PathBuf;

use super::probes::ProbeError;
use crate::event::{Pid, Text};
use crate::store::StoreError;

/// Why a recording could not be made, or not to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The caller is not root.
    #[error("recording reads what the kernel and other processes do, which only root may")]
    NotRoot,
    /// The recorder runs in a container with pids of its own.
    #[error("gtrace runs in a pid namespace of its own, so the process ids it sees are not the kernel's")]
    PidNamespace,
    /// There is no such process.
    #[error("there is no process {0}")]
    NoSuchProcess(Pid),
    /// The process has ended, and its parent has not taken note.
    #[error("process {0} has ended already, only its parent has not noticed")]
    AlreadyEnded(Pid),
    /// The process ended while it was attached to.
    #[error("process {0} ended while gtrace attached to it")]
    EndedMeanwhile(Pid),
    /// The process is gtrace.
    #[error("process {0} is gtrace itself")]
    OwnProcess(Pid),
    /// The process started gtrace.
    #[error("process {0} ({1}) started this gtrace, so recording its tree would record the recorder")]
    OwnAncestor(Pid, Text),
    /// The id is a thread's.
    #[error("{0} is a thread of process {1}")]
    IsThread(Pid, Pid),
    /// The process belongs to the kernel.
    #[error("process {0} ({1}) is a thread of the kernel")]
    KernelThread(Pid, Text),
    /// Something is at the output's place.
    #[error("{} exists already", .0.display())]
    OutputExists(PathBuf),
    /// The output's folder cannot be used.
    #[error("the folder {} cannot be written: {reason}", folder.display())]
    OutputFolder {
        /// The folder.
        folder: PathBuf,
        /// Why.
        reason: String,
    },
    /// The command cannot be started.
    #[error("{program} cannot be started: {source}")]
    Command {
        /// What was to be started.
        program: String,
        /// Why not.
        source: io::Error,
    },
    /// The kernel side refused.
    #[error(transparent)]
    Probes(#[from] ProbeError),
    /// The recording cannot be written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A call of the operating system that should not fail did.
    #[error("{action}: {source}")]
    System {
        /// What was tried.
        action: &'static str,
        /// Why it failed.
        source: io::Error,
    },
}

impl RecordError {
    /// An unexpected failure of the operating system.
    pub fn system(action: &'static str) -> impl FnOnce(nix::errno::Errno) -> Self {
        move |error| Self::System { action, source: error.into() }
    }
}
