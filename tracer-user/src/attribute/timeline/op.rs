//! A GPU op of the timeline.

use crate::attribute::names::Name;
use crate::event::{ContextId, CorrelationId, DeviceId, Interval, MonoNs, OpId, Pid, StreamId};

/// What an op is, as far as idle time is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum OpClass {
    /// A kernel, or a whole graph: the device computes.
    Compute,
    /// A kernel of a collective.
    Communication,
    /// A copy or a memset.
    Copy,
}

/// What kind of memory a copy reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyKind {
    /// No copy.
    None,
    /// One end is pageable host memory.
    Pageable,
    /// One end is pinned host memory.
    Pinned,
    /// Between devices.
    Peer,
    /// Pages of unified memory that the driver moved.
    Migration,
    /// Within the device.
    Device,
    /// A memset.
    Memset,
}

/// One op; see the table `gpu_ops`.
#[derive(Clone, Copy, Debug)]
pub struct Op {
    /// Its row.
    pub id: OpId,
    /// The process that launched it.
    pub pid: Pid,
    /// The GPU.
    pub device: DeviceId,
    /// CUDA context.
    pub context: ContextId,
    /// CUDA stream.
    pub stream: StreamId,
    /// What it is.
    pub class: OpClass,
    /// What it copies.
    pub copy: CopyKind,
    /// Kernel's name, or `HtoD`.
    pub name: Name,
    /// Time on the device.
    pub time: Interval,
    /// Joins with its launch.
    pub correlation: CorrelationId,
    /// Bytes copied or set.
    pub bytes: i64,
    /// Index of its launch among the calls; `u32::MAX` if it is not recorded.
    pub launch: u32,
    /// No op of its name and process came before it on its device or another one.
    pub first_of_name: bool,
}

impl Op {
    /// Its start.
    #[must_use]
    pub const fn start(&self) -> MonoNs {
        self.time.start
    }

    /// Its end.
    #[must_use]
    pub const fn end(&self) -> MonoNs {
        self.time.end
    }

    /// Whether it copies to the device.
    #[must_use]
    pub fn copies_to_device(&self, name: &str) -> bool {
        self.class == OpClass::Copy && name.starts_with("HtoD")
    }
}

/// Whether a kernel's name is that of a collective: NCCL's are `ncclKernel_…` and `ncclDevKernel_…`, RCCL's alike.
#[must_use]
pub fn is_collective(kernel: &str) -> bool {
    ["ncclKernel", "ncclDevKernel", "rcclKernel"].iter().any(|prefix| kernel.starts_with(prefix))
}

/// What the copy of a `gpu_ops` row is.
#[must_use]
pub fn copy_kind(
    kind: &str,
    copy: Option<&str>,
    source: Option<&str>,
    destination: Option<&str>,
) -> CopyKind {
    let any = |wanted: &str| source == Some(wanted) || destination == Some(wanted);
    match kind {
        "memset" => CopyKind::Memset,
        "memcpy" if copy == Some("PtoP") => CopyKind::Peer,
        "memcpy" if source == Some("managed") && destination == Some("managed") => CopyKind::Migration,
        "memcpy" if any("pageable") => CopyKind::Pageable,
        "memcpy" if copy == Some("DtoD") => CopyKind::Device,
        "memcpy" => CopyKind::Pinned,
        _ => CopyKind::None,
    }
}
