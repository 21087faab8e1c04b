//! Which running processes the shim is brought into, and when.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use crate::event::{MonoNs, Pid};
use crate::record::gpu::maps_cuda;
use crate::record::inject::{Refusal, inject};
use crate::record::injection;

/// From the first look at a process to the next; it doubles up to [`LONGEST_NS`]. A process map of a large program takes a
/// millisecond to read, and there may be hundreds of processes.
const FIRST_NS: i64 = 1_000_000_000;
const LONGEST_NS: i64 = 30_000_000_000;

/// Watches the processes of a tree for the CUDA driver.
#[derive(Debug)]
pub struct Injector {
    shim: Result<PathBuf, String>,
    watched: BTreeMap<Pid, Watch>,
    /// Why a process is left alone.
    refused: BTreeMap<Pid, String>,
}

#[derive(Clone, Copy, Debug)]
struct Watch {
    next: MonoNs,
    pause_ns: i64,
    done: bool,
}

impl Injector {
    /// With gtrace's own library.
    pub fn new() -> Self {
        let shim = injection::library().map_err(|obstacle| obstacle.to_string());
        Self { shim, watched: BTreeMap::new(), refused: BTreeMap::new() }
    }

    /// Looks at the processes that are due, and brings the shim into those that use CUDA and have no ring. Those that use
    /// CUDA are added to `cuda`.
    pub fn look(
        &mut self,
        members: &[Pid],
        with_ring: &BTreeSet<Pid>,
        cuda: &mut BTreeSet<Pid>,
        now: MonoNs,
    ) {
        let living: BTreeSet<Pid> = members.iter().copied().collect();
        self.watched.retain(|pid, _| living.contains(pid));
        for &pid in members {
            let watch =
                self.watched.entry(pid).or_insert(Watch { next: now, pause_ns: FIRST_NS, done: false });
            if watch.done || now < watch.next {
                continue;
            }
            watch.next = MonoNs(now.0 + watch.pause_ns);
            watch.pause_ns = (watch.pause_ns * 2).min(LONGEST_NS);
            if with_ring.contains(&pid) {
                watch.done = true;
            } else if maps_cuda(pid) {
                cuda.insert(pid);
                let done = self.enter(pid);
                if let Some(watch) = self.watched.get_mut(&pid) {
                    watch.done = done;
                }
            }
        }
    }

    /// Whether there is nothing more to try.
    fn enter(&mut self, pid: Pid) -> bool {
        let outcome = match &self.shim {
            Ok(shim) => inject(pid, shim),
            Err(reason) => Err(Refusal::NoShim(reason.clone())),
        };
        match outcome {
            Ok(()) => {
                self.refused.remove(&pid);
                true
            }
            Err(Refusal::Ended(_)) => true,
            Err(refusal) => {
                let again = matches!(refusal, Refusal::NoSafePoint { .. } | Refusal::Traced { .. });
                self.refused.insert(pid, refusal.to_string());
                !again
            }
        }
    }

    /// Why one of these processes was left alone.
    pub fn refusal(&self, pids: &[Pid]) -> Option<&str> {
        pids.iter().find_map(|pid| self.refused.get(pid)).map(String::as_str)
    }
}
