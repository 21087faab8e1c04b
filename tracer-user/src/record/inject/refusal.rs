//! Why a process is left alone.

use std::io;

use crate::event::{Pid, Tid};

/// Why the shim does not come into a process. Each says what can be done about it; the process goes on as it was.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// gtrace's own library is missing.
    #[error("{0}")]
    NoShim(String),
    /// The library cannot be read.
    #[error("gtrace's library {path} cannot be read: {source}")]
    ShimUnreadable {
        /// Its path.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// No code for this processor.
    #[error("gtrace cannot yet enter a running process on {0}; start the program under `gtrace run`")]
    Processor(&'static str),
    /// A program of another word size or processor.
    #[error("process {0} is no program of this processor's 64-bit kind; start it under `gtrace run`")]
    OtherArchitecture(Pid),
    /// musl or a static program.
    #[error(
        "process {0} does not use the GNU C library ({1}), which CUDA's own libraries need; its GPU work is not seen"
    )]
    OtherLibc(Pid, &'static str),
    /// What has to be called is not in its libraries.
    #[error("process {0}: its C library has no `{1}`; start it under `gtrace run`")]
    NoSymbol(Pid, &'static str),
    /// A program that does not begin as the C library's start-up code does.
    #[error(
        "process {0}: its program does not begin with the C library's start-up code, in whose place gtrace's few \
         instructions would go; start it under `gtrace run`"
    )]
    NoPlace(Pid),
    /// Somebody else traces it.
    #[error("process {pid} is traced by process {tracer} (a debugger, strace?); end that, and attach again")]
    Traced {
        /// The process.
        pid: Pid,
        /// Who traces it.
        tracer: Pid,
    },
    /// The kernel does not allow it.
    #[error("the kernel does not let gtrace trace process {pid}: {source}{hint}")]
    NotAllowed {
        /// The process.
        pid: Pid,
        /// What the kernel said.
        source: io::Error,
        /// What is known about the reason.
        hint: &'static str,
    },
    /// Its system-call filter would kill it.
    #[error(
        "process {0}: its seccomp filter kills it for a system call that loading a library needs; start it under \
         `gtrace run`"
    )]
    SeccompKills(Pid),
    /// Its system-call filter cannot be read.
    #[error(
        "process {0} has a seccomp filter, and this kernel does not let it be read ({1}), so that it cannot be told \
         whether it would survive; start it under `gtrace run`"
    )]
    SeccompUnreadable(Pid, io::Error),
    /// A processor feature that would see the return as an attack.
    #[error("process {0} has a shadow stack; start it under `gtrace run`")]
    ShadowStack(Pid),
    /// No thread came to a place where it can be interrupted.
    #[error(
        "process {pid}: no thread of it waited in a system call at which it could be entered, for {seconds} s; attach \
         again later"
    )]
    NoSafePoint {
        /// The process.
        pid: Pid,
        /// How long it was watched.
        seconds: u64,
    },
    /// The library was not loaded.
    #[error("process {pid}: its loader refused gtrace's library: {reason}")]
    NotLoaded {
        /// The process.
        pid: Pid,
        /// What its loader said, bounded and escaped.
        reason: String,
    },
    /// The library does not work there.
    #[error(
        "process {0}: gtrace's library is loaded, but could not begin (no memory for its ring, or no thread)"
    )]
    NotStarted(Pid),
    /// It takes too long.
    #[error(
        "process {pid}: thread {tid} has not come back from loading the library after {seconds} s (a lock of its loader \
         is held?); it goes on by itself, and what it loads will be used"
    )]
    TooSlow {
        /// The process.
        pid: Pid,
        /// The thread.
        tid: Tid,
        /// How long.
        seconds: u64,
    },
    /// It is gone.
    #[error("process {0} ended meanwhile")]
    Ended(Pid),
    /// A call failed that should not.
    #[error("process {pid}: {what} failed: {source}")]
    System {
        /// The process.
        pid: Pid,
        /// What was tried.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
}
