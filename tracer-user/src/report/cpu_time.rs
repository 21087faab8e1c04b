//! How long each thread was on a CPU.

use std::collections::HashMap;

use super::union::Union;
use crate::store::schema::{OffCpu, Thread};

/// Collects the time that threads spent off the CPU.
#[derive(Debug, Default)]
pub struct CpuTally {
    off: HashMap<(i32, i32), i64>,
}

impl CpuTally {
    /// Counts an interval off the CPU, as far as it lies in the recording, which is given by its beginning and end.
    pub fn off_cpu(&mut self, row: &OffCpu, (started, end): (i64, i64)) {
        let until = row.on_ns.map_or(end, |on| on.0);
        *self.off.entry((row.pid.0, row.tid.0)).or_default() += (until - row.off_ns.0.max(started)).max(0);
    }

    /// Time on the CPU of each thread between `started` and `ended`: its life less the time off the CPU. Threads without
    /// any interval are left out, since their timeline is not known.
    #[must_use]
    pub fn finish(self, threads: &[Thread], started: i64, ended: i64) -> HashMap<(i32, i32), i64> {
        // A number can belong to several lives, and a life can be listed in pieces.
        let mut lives: Vec<(i64, &Thread)> =
            threads.iter().map(|thread| (thread.start_ns.0.max(started), thread)).collect();
        lives.sort_by_key(|(start, _)| *start);
        let mut life: HashMap<(i32, i32), Union> = HashMap::new();
        for (start, thread) in lives {
            let end = thread.end_ns.map_or(ended, |end| end.0.min(ended));
            life.entry((thread.pid.0, thread.tid.0)).or_default().add(start, end);
        }
        self.off
            .into_iter()
            .filter_map(|(key, off)| Some((key, (life.get(&key)?.length() - off).max(0))))
            .collect()
    }
}
