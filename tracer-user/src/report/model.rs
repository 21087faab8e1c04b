//! The report as data: what `--format json` prints and what the text is made from.
//!
//! The shape is stable: fields are added, never renamed or given another meaning, while [`VERSION`] stays. Every time
//! is an integer of nanoseconds and every name is as it was recorded (JSON escapes it; the text escapes it itself).

use serde::Serialize;

use super::questions::Answer;
use super::steps::Steps;
use super::what_if::WhatIf;

/// Version of the shape.
pub const VERSION: u32 = 1;

/// What a recording says.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// `gtrace.report`.
    pub format: &'static str,
    /// [`VERSION`].
    pub version: u32,
    /// What was recorded, when, where.
    pub recording: Recording,
    /// The answer in a sentence or two.
    pub verdict: Verdict,
    /// Each GPU's time.
    pub devices: Vec<Device>,
    /// The GPUs' time together.
    pub totals: Totals,
    /// The ledger: gap time by cause, the largest first. Sums to `totals.gap_ns`.
    pub causes: Vec<Cause>,
    /// Waiting that went through Python's interpreter lock, whatever its holder did meanwhile. Absent without any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gil: Option<Gil>,
    /// Ranks for which GPUs of other ranks waited in collectives, the worst first. Absent without any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub late_ranks: Vec<LateRank>,
    /// Gap time by what the program was at. Sums to `totals.gap_ns`.
    pub stages: Vec<Stage>,
    /// Gap time by the thread at the end of the causal chain. With `threadless_ns` it sums to `totals.gap_ns`.
    pub threads: Vec<Thread>,
    /// Gap time whose chain ends in no thread (a device, a peer, nothing known).
    pub threadless_ns: i64,
    /// Gap time by file, block device and network peer.
    pub objects: Objects,
    /// Gap time by the synchronising call that had drained the launch queue before the gap.
    pub enablers: Vec<Enabler>,
    /// The longest gaps.
    pub worst_gaps: Vec<WorstGap>,
    /// The steps of each GPU; none where the program marked none and its work does not repeat.
    pub steps: Vec<Steps>,
    /// What would be if a cause were gone, the most helpful first.
    pub what_if: Vec<WhatIf>,
    /// The usual questions, in the order in which they are asked; only those that the recording answers.
    pub answers: Vec<Answer>,
    /// What to change, for the causes that matter.
    pub advice: Vec<Advice>,
    /// What the block devices did, whoever waited for them.
    pub disks: Vec<Disk>,
    /// How far to trust it.
    pub trust: Trust,
}

/// What was recorded.
#[derive(Clone, Debug, Serialize)]
pub struct Recording {
    /// The bundle, as the command line named it.
    pub path: String,
    /// `run`, `attach` or `import`.
    pub mode: String,
    /// The command and its arguments.
    pub command: Vec<String>,
    /// Root of the recorded tree.
    pub root_pid: Option<i32>,
    /// Host name.
    pub host: String,
    /// Kernel release.
    pub kernel: String,
    /// CPUs online.
    pub cpus: u32,
    /// When the recorder began, CLOCK_MONOTONIC.
    pub began_ns: i64,
    /// Beginning of what was kept: later than `began_ns` if only the last stretch was (`--rotate`).
    pub started_ns: i64,
    /// End; the last event if the recorder did not live to say.
    pub ended_ns: i64,
    /// How it ended.
    pub ended: String,
    /// Add to a time to get UTC.
    pub utc_offset_ns: i64,
    /// The gtrace that recorded.
    pub gtrace_version: String,
    /// The GPU was the simulated one: its times are those of a timer, not of a chip.
    pub simulated_gpu: bool,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// `healthy`, `waiting`, `unknown` (too much is unknown to say), `no_gpu_work`.
    pub state: &'static str,
    /// In words.
    pub says: String,
}

/// A GPU's time: `window = compute + idle + exposed_comm + exposed_copy`.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Device {
    /// Its number in the tables.
    pub device: i32,
    /// Its name.
    pub name: String,
    /// Start of its first op.
    pub window_start_ns: i64,
    /// End of its last op.
    pub window_end_ns: i64,
    /// Time with some computing kernel running.
    pub compute_ns: i64,
    /// Time with no op.
    pub idle_ns: i64,
    /// Time with only collectives.
    pub exposed_comm_ns: i64,
    /// Time with only copies and sets.
    pub exposed_copy_ns: i64,
    /// Gaps.
    pub gaps: u64,
    /// From the beginning of the recording to the first op.
    pub edge_before_ns: i64,
    /// From the last op to the end of the recording.
    pub edge_after_ns: i64,
    /// Kernels (and graphs) that ran.
    pub kernels: u64,
    /// Copies and sets that ran.
    pub copies: u64,
    /// Bytes copied and set.
    pub bytes: i64,
    /// Difference between the ops' own busy time and `window - gaps`. Anything but 0 is an error of gtrace.
    pub imbalance_ns: i64,
}

impl Device {
    /// From its first op to its last.
    #[must_use]
    pub fn window_ns(&self) -> i64 {
        self.window_end_ns - self.window_start_ns
    }

    /// Gap time of all kinds.
    #[must_use]
    pub fn gap_ns(&self) -> i64 {
        self.idle_ns + self.exposed_comm_ns + self.exposed_copy_ns
    }
}

/// Sums over all devices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Windows.
    pub window_ns: i64,
    /// Computing.
    pub compute_ns: i64,
    /// Gaps.
    pub gap_ns: i64,
    /// How many.
    pub gaps: u64,
}

/// Gap time of one cause.
#[derive(Clone, Debug, Serialize)]
pub struct Cause {
    /// Its code.
    pub cause: String,
    /// What the code says, in words.
    pub says: String,
    /// Gap time.
    pub ns: i64,
    /// Of it, resting on edges recorded as they happened; the rest is inferred.
    pub exact_ns: i64,
    /// Segments.
    pub segments: u64,
    /// By stage, the largest first.
    pub stages: Vec<Share>,
    /// By object, the largest first, at most [`super::ledger::MOST_OBJECTS`].
    pub objects: Vec<Share>,
    /// How many objects there are.
    pub object_count: u64,
    /// By thread at the end of the chain, the largest first, at most [`super::ledger::MOST_OBJECTS`].
    pub threads: Vec<ThreadShare>,
    /// `host.cpu.user`: stack samples that fell into its time.
    pub samples: u64,
    /// The functions that they were in, the most frequent first, at most [`super::ledger::MOST_OBJECTS`].
    pub functions: Vec<FunctionShare>,
}

/// A function's part of the samples in a cause's time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FunctionShare {
    /// `train.py: decode`, `libjpeg: jpeg_idct_islow`.
    pub name: String,
    /// Samples in it.
    pub samples: u64,
    /// Where in it most of them were: `train.py:61 decode, in libz: inflate`.
    pub mostly: String,
}

/// A part of a sum.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Share {
    /// Of what.
    pub name: String,
    /// Gap time.
    pub ns: i64,
}

/// A thread's part of a sum.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ThreadShare {
    /// The thread.
    pub thread: ThreadName,
    /// Gap time.
    pub ns: i64,
}

/// A thread, as a person calls it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct ThreadName {
    /// Process.
    pub pid: i32,
    /// Thread.
    pub tid: i32,
    /// The thread's name.
    pub name: String,
    /// The process's name.
    pub process: String,
    /// What it does, where that is known.
    pub role: Option<String>,
}

/// Gap time in which a thread on the chain waited for Python's interpreter lock.
#[derive(Clone, Debug, Serialize)]
pub struct Gil {
    /// Gap time.
    pub ns: i64,
    /// The threads that held it, by the time for which others waited, the largest first.
    pub holders: Vec<ThreadShare>,
}

/// A rank that came late to collectives.
#[derive(Clone, Debug, Serialize)]
pub struct LateRank {
    /// `rank 2`; where the number is not known its GPU.
    pub rank: String,
    /// Collectives to which it came last, by more than noise.
    pub last: usize,
    /// Collectives of which all ranks are recorded.
    pub collectives: usize,
    /// By how much on average after the first.
    pub behind_ns: i64,
    /// Gap time of other GPUs whose chain goes over it.
    pub ns: i64,
    /// That time by cause, the largest first.
    pub causes: Vec<Share>,
}

/// Gap time of one stage.
#[derive(Clone, Debug, Serialize)]
pub struct Stage {
    /// `data_loading`, `h2d`, …
    pub stage: String,
    /// Gap time.
    pub ns: i64,
    /// By cause, the largest first.
    pub causes: Vec<Share>,
}

/// Gap time of one thread.
#[derive(Clone, Debug, Serialize)]
pub struct Thread {
    /// Which.
    pub thread: ThreadName,
    /// Gap time whose chain ends in it.
    pub ns: i64,
    /// How long it was on a CPU during the recording. `null`: its timeline is not known.
    pub on_cpu_ns: Option<i64>,
    /// By cause, the largest first.
    pub causes: Vec<Share>,
}

/// Gap time by things outside threads. A segment counts in each list where it has something to count.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Objects {
    /// Files (`storage.*`, `memory.major_fault`).
    pub files: Vec<Share>,
    /// Block devices of the requests that the segments rest on.
    pub block_devices: Vec<Share>,
    /// Peers (`net.*`).
    pub peers: Vec<Share>,
}

/// Gap time behind one synchronising call.
#[derive(Clone, Debug, Serialize)]
pub struct Enabler {
    /// The call.
    pub call: String,
    /// Length of the gaps before which it had drained the queue.
    pub ns: i64,
    /// How many.
    pub gaps: u64,
}

/// One of the longest gaps.
#[derive(Clone, Debug, Serialize)]
pub struct WorstGap {
    /// Its number: `gtrace explain --gap`.
    pub gap_id: i64,
    /// The GPU.
    pub device: i32,
    /// `idle`, `exposed_comm`, `exposed_copy`.
    pub kind: String,
    /// Start.
    pub start_ns: i64,
    /// Length.
    pub ns: i64,
    /// The cause that most of it has.
    pub cause: String,
    /// How much of it.
    pub cause_ns: i64,
    /// The object of the longest segment of that cause.
    pub object: Option<String>,
    /// The thread at the end of that segment's chain.
    pub thread: Option<ThreadName>,
    /// Its stage.
    pub stage: String,
}

/// What to change.
#[derive(Clone, Debug, Serialize)]
pub struct Advice {
    /// The cause.
    pub cause: String,
    /// The stage that it has most.
    pub stage: String,
    /// Gap time behind it: the most that can be won.
    pub ns: i64,
    /// What was found, in words.
    pub found: String,
    /// What to change, the most promising first.
    pub change: Vec<String>,
    /// The experiment that would show this to be wrong.
    pub disproof: String,
}

/// What one block device did.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Disk {
    /// Its name.
    pub device: String,
    /// Reads.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: i64,
    /// Writes.
    pub writes: u64,
    /// Bytes written.
    pub written_bytes: i64,
    /// Time with at least one request in the driver.
    pub busy_ns: i64,
    /// Median of issue to completion, to 1/8 of a power of two.
    pub median_ns: i64,
    /// 99th percentile of the same.
    pub p99_ns: i64,
    /// Sum of the times between queueing and issue.
    pub queue_ns: i64,
}

/// How far to trust the report.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Trust {
    /// Gap time with a cause resting on recorded edges.
    pub exact_ns: i64,
    /// Gap time with an inferred cause.
    pub inferred_ns: i64,
    /// Gap time without a known cause, by reason.
    pub unknown: Vec<Share>,
    /// Sum of `unknown`.
    pub unknown_ns: i64,
    /// Lost or refused events.
    pub losses: Vec<Loss>,
    /// Events of all tables.
    pub events: u64,
    /// Probes that were not attached.
    pub missing_probes: Vec<MissingProbe>,
    /// Why there is no GPU side, where there is none.
    pub gpu_missing: Option<String>,
    /// Processes whose shim collects nothing, and why.
    pub gpu_refused: Vec<GpuRefused>,
    /// Recorded processes that hold a GPU and sent it no work: pid, name, GPU, bytes of its memory.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub idle_holders: Vec<IdleHolder>,
    /// Processes whose GPU side is made of the driver's calls alone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gpu_bounds: Vec<i32>,
    /// What was collected of processes of which not everything was, and each change of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gpu_modes: Vec<GpuModes>,
    /// Largest error of the conversion of GPU times.
    pub clock_residual_ns: i64,
    /// The recorder's own CPU time.
    pub recorder_cpu_ns: i64,
    /// CPU time that the hypervisor took from the machine. Absent where it took none, or does not tell.
    #[serde(skip_serializing_if = "is_zero")]
    pub stolen_cpu_ns: i64,
    /// Gap time that gtrace or CUPTI itself caused.
    pub tool_overhead_ns: i64,
    /// Gaps whose segments do not cover them exactly. Anything but 0 is an error of gtrace.
    pub uncovered_gaps: u64,
    /// The recording did not end cleanly: how.
    pub unclean_end: Option<String>,
}

/// A process that holds a GPU and sent it no work.
#[derive(Clone, Debug, Serialize)]
pub struct IdleHolder {
    /// The process.
    pub pid: i32,
    /// Its name.
    pub comm: String,
    /// The GPU's name and address.
    pub gpu: String,
    /// Bytes of the GPU's memory that it has; 0 if unknown.
    pub memory_bytes: u64,
}

/// What was collected of a process.
#[derive(Clone, Debug, Serialize)]
pub struct GpuModes {
    /// The process.
    pub pid: i32,
    /// The changes; the first is what it began with.
    pub changes: Vec<GpuModeChange>,
}

/// From when on what was collected.
#[derive(Clone, Debug, Serialize)]
pub struct GpuModeChange {
    /// Since the recording's beginning.
    pub since_ns: i64,
    /// What.
    pub mode: String,
    /// Why.
    pub why: String,
}

/// Events lost at one place for one reason.
#[derive(Clone, Debug, Serialize)]
pub struct Loss {
    /// Where.
    pub source: String,
    /// What was wrong.
    pub reason: String,
    /// How many.
    pub count: i64,
    /// Length of the intervals in which they were lost.
    pub ns: i64,
}

/// A probe that was not attached.
#[derive(Clone, Debug, Serialize)]
pub struct MissingProbe {
    /// Its name.
    pub name: String,
    /// Why.
    pub reason: Option<String>,
    /// Causes that cannot be found without it.
    pub unknowable: Vec<String>,
}

/// A process whose GPU side was refused.
#[derive(Clone, Debug, Serialize)]
pub struct GpuRefused {
    /// The process.
    pub pid: i32,
    /// Why.
    pub reason: String,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(ns: &i64) -> bool {
    *ns == 0
}
