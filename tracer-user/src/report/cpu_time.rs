//! How long each thread was on a CPU.

use std::collections::HashMap;

use crate::store::schema::{OffCpu, Thread};

/// Collects the time that threads spent off the CPU.
#[derive(Debug, Default)]
pub struct CpuTally {
    off: HashMap<(i32, i32), i64>,
}

impl CpuTally {
    /// Counts an interval off the CPU; `end` is the end of the recording.
    pub fn off_cpu(&mut self, row: &OffCpu, end: i64) {
        let until = row.on_ns.map_or(end, |on| on.0);
        *self.off.entry((row.pid.0, row.tid.0)).or_default() += (until - row.off_ns.0).max(0);
    }

    /// Time on the CPU of each thread between `started` and `ended`: its life less the time off the CPU. Threads without
    /// any interval are left out, since their timeline is not known.
    #[must_use]
    pub fn finish(self, threads: &[Thread], started: i64, ended: i64) -> HashMap<(i32, i32), i64> {
        let mut on_cpu = HashMap::new();
        for thread in threads {
            let key = (thread.pid.0, thread.tid.0);
            if let Some(off) = self.off.get(&key) {
                let life =
                    thread.end_ns.map_or(ended, |end| end.0.min(ended)) - thread.start_ns.0.max(started);
                on_cpu.insert(key, (life - off).max(0));
            }
        }
        on_cpu
    }
}
