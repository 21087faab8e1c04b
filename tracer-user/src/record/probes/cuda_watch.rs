//! What processes call of the CUDA driver: counted for a moment before CUPTI comes into them.
//!
//! - **Graphs.** Before CUDA 12.6 a process that replays graphs made before CUPTI was there can crash under it
//!   (pytorch#75504, #100441, #112507). Which CUPTI a process has is known only inside it; so the launches are counted here,
//!   and the shim decides.
//! - **Work.** A process that was forked from one that uses CUDA has the driver mapped and cannot use it. Only calls tell it
//!   from one that does.
//!
//! - **Launches.** How fast a program launches without CUPTI: what it is compared with when it launches slower under it.
//!
//! Each program is attached once for all processors and processes: a perf event for each thread would take the kernel 80 ms
//! to take away, each.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use aya::Ebpf;
use aya::maps::HashMap;
use aya::programs::UProbe;
use aya::programs::uprobe::{UProbeLinkId, UProbeScope};

use crate::event::Pid;
use crate::record::inject::Driver;

/// The programs' names in the object.
const GRAPH_LAUNCH: &str = "cuda_graph_launch";
const LAUNCH: &str = "cuda_launch";
const CALL: &str = "cuda_call";

/// Calls being counted.
#[derive(Default)]
pub struct CudaWatch {
    links: Vec<(&'static str, UProbeLinkId)>,
    before: CudaCalls,
    begun: Option<Instant>,
}

/// Calls counted so far in this recording, by process.
#[derive(Clone, Debug, Default)]
pub struct CudaCalls {
    /// Graphs launched.
    pub graphs: BTreeMap<Pid, u64>,
    /// Calls that send work to a device, these included.
    pub work: BTreeMap<Pid, u64>,
    /// Kernels launched.
    pub launches: BTreeMap<Pid, u64>,
}

impl CudaCalls {
    fn read(ebpf: &Ebpf) -> Self {
        Self {
            graphs: counts(ebpf, "GRAPH_LAUNCHES"),
            work: counts(ebpf, "CUDA_CALLS"),
            launches: counts(ebpf, "LAUNCHES"),
        }
    }
}

/// What was counted in one watch.
#[derive(Clone, Debug, Default)]
pub struct Counted {
    /// Calls of the whole recording.
    pub calls: CudaCalls,
    /// Kernels launched in a second of this watch.
    pub launches_per_second: BTreeMap<Pid, f64>,
    /// Calls of this watch that send work.
    pub work: BTreeMap<Pid, u64>,
}

impl CudaWatch {
    /// Begins to count what goes through these drivers' files. `work`: not only what is launched.
    pub fn begin(ebpf: &mut Ebpf, drivers: &[Driver], work: bool) -> Self {
        let before = CudaCalls::read(ebpf);
        let mut links = Vec::new();
        let programs: &[&'static str] =
            if work { &[GRAPH_LAUNCH, LAUNCH, CALL] } else { &[GRAPH_LAUNCH, LAUNCH] };
        for &name in programs {
            let Some(program) = program(ebpf, name) else { continue };
            // Loaded already: another watch was before.
            let _ = program.load();
            let mut files = BTreeSet::new();
            for driver in drivers.iter().filter(|driver| files.insert(driver.file)) {
                let offsets = match name {
                    CALL => &driver.work,
                    LAUNCH => &driver.launches,
                    _ => &driver.graph_launches,
                };
                for &offset in offsets {
                    let link = program.attach(offset, &driver.path, UProbeScope::AllProcesses);
                    links.extend(link.map(|link| (name, link)));
                }
            }
        }
        Self { links, before, begun: Some(Instant::now()) }
    }

    /// Ends it.
    pub fn end(self, ebpf: &mut Ebpf) -> Counted {
        let calls = CudaCalls::read(ebpf);
        let seconds = self.begun.map_or(0.0, |begun| begun.elapsed().as_secs_f64());
        for (name, link) in self.links {
            if let Some(program) = program(ebpf, name) {
                // A link that cannot be detached now is closed with the object.
                let _ = program.detach(link);
            }
        }
        let since = |now: &BTreeMap<Pid, u64>, before: &BTreeMap<Pid, u64>| -> BTreeMap<Pid, u64> {
            now.iter().map(|(pid, count)| (*pid, count - before.get(pid).unwrap_or(&0).min(count))).collect()
        };
        let launched = since(&calls.launches, &self.before.launches);
        Counted {
            launches_per_second: launched
                .into_iter()
                .filter(|_| seconds > 0.5)
                .map(|(pid, count)| (pid, count as f64 / seconds))
                .collect(),
            work: since(&calls.work, &self.before.work),
            calls,
        }
    }
}

fn counts(ebpf: &Ebpf, map: &str) -> BTreeMap<Pid, u64> {
    let map = ebpf.map(map).and_then(|map| HashMap::<_, u32, u64>::try_from(map).ok());
    let Some(map) = map else { return BTreeMap::new() };
    map.iter().flatten().map(|(tgid, count)| (Pid(tgid as i32), count)).collect()
}

fn program<'a>(ebpf: &'a mut Ebpf, name: &str) -> Option<&'a mut UProbe> {
    ebpf.program_mut(name)?.try_into().ok()
}
