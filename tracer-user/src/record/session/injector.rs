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

    /// Looks at the processes whose turn it is: those that use CUDA and have no ring.
    pub fn due(&mut self, members: &[Pid], with_ring: &BTreeSet<Pid>, now: MonoNs) -> Vec<Pid> {
        let living: BTreeSet<Pid> = members.iter().copied().collect();
        self.watched.retain(|pid, _| living.contains(pid));
        let mut due = Vec::new();
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
                due.push(pid);
            }
        }
        due
    }

    /// These are due at the next look.
    pub fn look_again(&mut self, pids: impl IntoIterator<Item = Pid>) {
        for pid in pids {
            if let Some(watch) = self.watched.get_mut(&pid) {
                watch.next = MonoNs(0);
            }
        }
    }

    /// Brings the shim into a process.
    pub fn enter(&mut self, pid: Pid) {
        let outcome = match &self.shim {
            Ok(shim) => inject(pid, shim),
            Err(reason) => Err(Refusal::NoShim(reason.clone())),
        };
        let done = match outcome {
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
        };
        if let Some(watch) = self.watched.get_mut(&pid) {
            watch.done = done;
        }
    }

    /// The processes that are left alone.
    pub fn refused(&self) -> impl Iterator<Item = Pid> + '_ {
        self.refused.keys().copied()
    }

    /// Why one of these processes was left alone.
    pub fn refusal(&self, pids: &[Pid]) -> Option<&str> {
        pids.iter().find_map(|pid| self.refused.get(pid)).map(String::as_str)
    }
}
