//! What was planted, and when: JSON lines in the file that `GTRACE_TRUTH` names.
//!
//! Lines are kept in memory and written when the program ends, so that writing them is not itself a stall.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::Serialize;

/// Tells a late rank and its workers which it is.
pub const LATE_RANK: &str = "GTRACE_WORKLOAD_LATE_RANK";

/// One planted stall.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// Just before the act, CLOCK_MONOTONIC.
    pub start_ns: i64,
    /// Just after it.
    pub end_ns: i64,
    /// Codes of the cause, or prefixes of them: what the act honestly consists of.
    pub cause: &'static [&'static str],
    /// Codes that go with the cause in this interval, and have other reasons elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub also: Option<&'static str>,
    /// The file or peer, if the act has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// The synchronising call that had emptied the queue, if the act is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabler: Option<&'static str>,
    /// What was done, where a scenario does several things.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deed: Option<&'static str>,
    /// Other programs took the CPU from it meanwhile: what happened is not what was planted.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub disturbed: bool,
    /// The process that commits it.
    pub pid: u32,
    /// The thread that commits it.
    pub tid: i32,
    /// Its rank; 0 where there is one process with a GPU.
    pub rank: u32,
    /// Where there are several ranks, the process that uses this one's GPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_pid: Option<u32>,
    /// Other ranks wait for this one meanwhile: what the chains of their waits lead over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late: Option<String>,
}

/// Collects the lines of one thread.
pub struct Truth {
    path: Option<PathBuf>,
    rank: u32,
    late: Option<String>,
    gpu_pid: Option<u32>,
    lines: Vec<Line>,
}

impl Truth {
    /// Writes to where `GTRACE_TRUTH` says, or nowhere.
    #[must_use]
    pub fn from_environment() -> Self {
        let path = std::env::var_os("GTRACE_TRUTH").map(PathBuf::from);
        let late = std::env::var(LATE_RANK).ok().map(|rank| format!("rank {rank}"));
        // A worker's parent is the rank.
        let gpu_pid = late.is_some().then(std::os::unix::process::parent_id);
        Self { path, rank: 0, late, gpu_pid, lines: Vec::new() }
    }

    /// Writes to the same place as a rank, whose process uses a GPU.
    #[must_use]
    pub fn of_rank(rank: usize) -> Self {
        let gpu_pid = Some(std::process::id());
        Self { rank: rank as u32, gpu_pid, ..Self::from_environment() }
    }

    /// Adds what the calling thread planted between two readings of the clock.
    pub fn planted(
        &mut self,
        start_ns: i64,
        end_ns: i64,
        cause: &'static [&'static str],
        object: Option<String>,
    ) {
        // SAFETY: gettid has no preconditions.
        let tid = unsafe { libc::gettid() };
        let pid = std::process::id();
        self.lines.push(Line {
            start_ns,
            end_ns,
            cause,
            also: None,
            object,
            enabler: None,
            deed: None,
            disturbed: false,
            pid,
            tid,
            rank: self.rank,
            gpu_pid: self.gpu_pid,
            late: self.late.clone(),
        });
    }

    /// Says of the last line what goes with it.
    pub fn along_with(&mut self, code: &'static str) {
        if let Some(line) = self.lines.last_mut() {
            line.also = Some(code);
        }
    }

    /// Says of the last line which synchronising call had emptied the queue.
    pub fn enabled_by(&mut self, call: &'static str) {
        if let Some(line) = self.lines.last_mut() {
            line.enabler = Some(call);
        }
    }

    /// Says of the last line what was done.
    pub fn by(&mut self, deed: &'static str) {
        if let Some(line) = self.lines.last_mut() {
            line.deed = Some(deed);
        }
    }

    /// Says of the last line that other programs took the CPU from it meanwhile.
    pub fn disturbed(&mut self) {
        if let Some(line) = self.lines.last_mut() {
            line.disturbed = true;
        }
    }

    /// Appends the lines to the file. Each is one write to a file opened for appending, so that several processes can
    /// write the same one.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&mut self) -> Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        let open = OpenOptions::new().append(true).create(true).open(path);
        let mut file = open.with_context(|| format!("cannot write the truth to {}", path.display()))?;
        for line in self.lines.drain(..) {
            let mut text = serde_json::to_vec(&line)?;
            text.push(b'\n');
            file.write_all(&text).context("cannot write the truth")?;
        }
        Ok(())
    }
}
