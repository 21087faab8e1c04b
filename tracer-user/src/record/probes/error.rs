//! Why the kernel side cannot record, and what to do about it.

use super::btf::BtfError;
use super::offsets::MissingField;

/// Why the programs could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// This build has no eBPF object in it.
    #[error("gtrace was built without the eBPF object: run `cargo xtask build`")]
    NotBuilt,
    /// Not allowed to load eBPF programs.
    #[error(
        "loading eBPF programs needs root (or CAP_BPF, CAP_PERFMON and CAP_SYS_RESOURCE): run gtrace with sudo"
    )]
    NotPermitted,
    /// The kernel shows no type information.
    #[error(
        "{0}: gtrace needs a kernel of 5.11 or later, built with CONFIG_DEBUG_INFO_BTF (every common distribution's is)"
    )]
    NoBtf(#[source] BtfError),
    /// The kernel lacks a field.
    #[error(transparent)]
    MissingField(#[from] MissingField),
    /// The object was refused as a whole.
    #[error("the kernel refused gtrace's eBPF maps: {0}")]
    Load(#[source] aya::EbpfError),
    /// A program was refused without which nothing can be recorded.
    #[error("the kernel refused the probe {program}, without which nothing can be recorded: {reason}")]
    Essential {
        /// The program.
        program: &'static str,
        /// The kernel's words.
        reason: String,
    },
    /// The object in this build does not fit this build.
    #[error("the embedded eBPF object does not belong to this build ({0}): run `cargo xtask build`")]
    Mismatch(String),
    /// A map could not be read or written.
    #[error("cannot {action} the eBPF map {map}: {reason}")]
    Map {
        /// What was tried.
        action: &'static str,
        /// The map.
        map: &'static str,
        /// Why it failed.
        reason: String,
    },
}
