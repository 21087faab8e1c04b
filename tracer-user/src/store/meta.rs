//! `meta.json`: what a bundle says about its recording.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::schema::{SCHEMA_MAJOR, SCHEMA_MINOR};

/// The contents of `meta.json`. What an older gtrace did not write reads as empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Meta {
    /// Version of the tables.
    pub schema: SchemaVersion,
    /// Version of gtrace that wrote it.
    pub gtrace_version: String,
    /// `run`, `attach` or `import`.
    pub mode: String,
    /// The recorded command, or the command line of the process attached to.
    pub command: Vec<String>,
    /// The root of the recorded tree.
    pub root_pid: Option<i32>,
    /// Host name.
    pub host: String,
    /// Kernel release (`uname -r`).
    pub kernel: String,
    /// CPUs online.
    pub cpus: u32,
    /// Nanoseconds to add to CLOCK_MONOTONIC for UTC: `utc_ns = mono_ns + utc_offset_ns`.
    pub utc_offset_ns: i64,
    /// Beginning of the recording, CLOCK_MONOTONIC.
    pub started_ns: i64,
    /// When the recorder began, where only the end of the recording was kept (`--rotate`): `started_ns` is later then, and
    /// everything that ended after it is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub began_ns: Option<i64>,
    /// End of the recording; `None` while it runs, or if the recorder was killed.
    pub ended_ns: Option<i64>,
    /// How it ended: `running`, `duration`, `interrupted`, `target_exited`, `disk_full`, `failed`.
    pub ended: String,
    /// The GPUs seen.
    pub gpus: Vec<GpuInfo>,
    /// All GPUs of the machine, and who holds them, where NVIDIA's management library tells.
    pub gpu_devices: Vec<GpuFacts>,
    /// The GPU side: one entry for each process whose shim was found.
    pub gpu_processes: Vec<GpuProcess>,
    /// Why there is no GPU side, where there is none.
    pub gpu_missing: Option<String>,
    /// Processes whose GPU side is made of the driver's calls alone: their gaps are bounds.
    pub gpu_bounds: Vec<i32>,
    /// Every probe, attached or not.
    pub probes: Vec<ProbeStatus>,
    /// Records by table.
    pub rows: BTreeMap<String, u64>,
    /// Lost or refused events by source (`losses.source`).
    pub losses: BTreeMap<String, u64>,
    /// Control groups (`processes.cgroup`; empty for the topmost) that a CPU quota held back during the recording,
    /// themselves or by a group above them, and for how long, in ns: `throttled_usec` or `throttled_time` of their `cpu.stat`.
    pub cpu_throttled_ns: BTreeMap<String, i64>,
    /// How many of the recorded processes ran which CPython, by version: `3.11`, `3.13 free-threaded` (which has no
    /// interpreter lock). Only those in which a thread waited for a futex are looked at.
    pub interpreters: BTreeMap<String, u64>,
    /// Largest error of the conversion of GPU times to CLOCK_MONOTONIC, in ns.
    pub clock_residual_ns: i64,
    /// CPU time that the hypervisor took from this machine during the recording, all CPUs together, in ns.
    pub stolen_cpu_ns: i64,
    /// The recorder's own CPU time, in ns.
    pub recorder_cpu_ns: i64,
    /// The recorder's process, so that the analysis can tell its own cost.
    pub recorder_pid: Option<i32>,
}

/// Version of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchemaVersion {
    /// A reader refuses a newer one.
    pub major: u32,
    /// Grows with added columns and tables.
    pub minor: u32,
}

impl Default for SchemaVersion {
    fn default() -> Self {
        Self::CURRENT
    }
}

impl SchemaVersion {
    /// What this program writes.
    pub const CURRENT: Self = Self { major: SCHEMA_MAJOR, minor: SCHEMA_MINOR };
}

/// A GPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GpuInfo {
    /// Its number in the tables.
    pub device: i32,
    /// `NVIDIA H200`, `Simulated GPU`.
    pub name: String,
    /// UUID, as 32 hex digits; empty if unknown.
    pub uuid: String,
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Bytes of memory.
    pub memory_bytes: u64,
}

/// What NVIDIA's management library says of a GPU of the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GpuFacts {
    /// `NVIDIA H200`.
    pub name: String,
    /// UUID, as 32 hex digits.
    pub uuid: String,
    /// Its address on the bus: `00000000:01:00.0`.
    pub pci: String,
    /// The memory node that is near it.
    pub numa_node: Option<i32>,
    /// Whether it is divided into instances.
    pub mig: bool,
    /// Bytes of memory.
    pub memory_bytes: u64,
    /// Bytes that were in use when it was asked last.
    pub memory_used_bytes: u64,
    /// The processes with contexts on it, at the beginning or the end of the recording.
    pub holders: Vec<GpuHolder>,
}

/// A process that holds a GPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GpuHolder {
    /// The process.
    pub pid: i32,
    /// Its name.
    pub comm: String,
    /// Bytes of the GPU's memory that it has; 0 if unknown.
    pub memory_bytes: u64,
    /// Whether it is part of the recording.
    pub recorded: bool,
    /// Whether work of it was recorded.
    pub sent_work: bool,
}

/// A process with a shim.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GpuProcess {
    /// The process.
    pub pid: i32,
    /// What `cuptiGetVersion` said.
    pub cupti_version: u32,
    /// Path of the libcupti that was bound.
    pub cupti_path: String,
    /// What `cuDriverGetVersion` said.
    pub driver_version: u32,
    /// `monotonic` (our time-stamp callback) or `realtime` (converted by samples).
    pub clock: String,
    /// Why the shim collects nothing, if so.
    pub refused: Option<String>,
    /// GPU records that came through.
    pub records: u64,
    /// What was collected, and each change of it.
    pub modes: Vec<GpuMode>,
}

/// From when on a shim collected what.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GpuMode {
    /// Since when, CLOCK_MONOTONIC.
    pub since_ns: i64,
    /// `full`, `full, whole graphs`, `light, whole graphs`, `paused`.
    pub mode: String,
    /// Why it changed.
    pub why: String,
}

/// A probe of the kernel side.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProbeStatus {
    /// `sched_switch`, `block_rq_issue` …
    pub name: String,
    /// Whether it is attached.
    pub attached: bool,
    /// Why not.
    pub reason: Option<String>,
    /// What cannot be known without it (codes or families of causes).
    pub unknowable: Vec<String>,
}
