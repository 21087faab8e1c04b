//! What processes call of the CUDA driver: counted for a moment before CUPTI comes into them.
//!
//! - **Graphs.** Before CUDA 12.6 a process that replays graphs made before CUPTI was there can crash under it
//!   (pytorch#75504, #100441, #112507). Which CUPTI a process has is known only inside it; so the launches are counted here,
//!   and the shim decides.
//! - **Work.** A process that was forked from one that uses CUDA has the driver mapped and cannot use it. Only calls tell it
//!   from one that does.
//!
//! Each program is attached once for all processors and processes: a perf event for each thread would take the kernel 80 ms
//! to take away, each.

use std::collections::{BTreeMap, BTreeSet};

use aya::Ebpf;
use aya::maps::HashMap;
use aya::programs::UProbe;
use aya::programs::uprobe::{UProbeLinkId, UProbeScope};

use crate::event::Pid;
use crate::record::inject::Driver;

/// The programs' names in the object.
const GRAPH_LAUNCH: &str = "cuda_graph_launch";
const CALL: &str = "cuda_call";

/// Calls being counted.
#[derive(Default)]
pub struct CudaWatch {
    links: Vec<(&'static str, UProbeLinkId)>,
}

/// Calls counted so far in this recording, by process.
#[derive(Clone, Debug, Default)]
pub struct CudaCalls {
    /// Graphs launched.
    pub graphs: BTreeMap<Pid, u64>,
    /// Calls that send work to a device, these included.
    pub work: BTreeMap<Pid, u64>,
}

impl CudaWatch {
    /// Begins to count what goes through these drivers' files. `work`: not only graphs.
    pub fn begin(ebpf: &mut Ebpf, drivers: &[Driver], work: bool) -> Self {
        let mut links = Vec::new();
        let programs: &[&'static str] = if work { &[GRAPH_LAUNCH, CALL] } else { &[GRAPH_LAUNCH] };
        for &name in programs {
            let Some(program) = program(ebpf, name) else { continue };
            // Loaded already: another watch was before.
            let _ = program.load();
            let mut files = BTreeSet::new();
            for driver in drivers.iter().filter(|driver| files.insert(driver.file)) {
                let offsets = if name == CALL { &driver.work } else { &driver.graph_launches };
                for &offset in offsets {
                    let link = program.attach(offset, &driver.path, UProbeScope::AllProcesses);
                    links.extend(link.map(|link| (name, link)));
                }
            }
        }
        Self { links }
    }

    /// Ends it.
    pub fn end(self, ebpf: &mut Ebpf) -> CudaCalls {
        for (name, link) in self.links {
            if let Some(program) = program(ebpf, name) {
                // A link that cannot be detached now is closed with the object.
                let _ = program.detach(link);
            }
        }
        CudaCalls { graphs: counts(ebpf, "GRAPH_LAUNCHES"), work: counts(ebpf, "CUDA_CALLS") }
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
