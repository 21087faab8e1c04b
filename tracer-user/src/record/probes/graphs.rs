//! Whether processes launch CUDA graphs: counted for a moment before CUPTI comes into them.
//!
//! Before CUDA 12.6 a process that replays graphs made before CUPTI was there can crash under it (pytorch#75504, #100441,
//! #112507). Which CUPTI a process has is known only inside it; so the launches are counted here, and the shim decides.
//!
//! One program attached once for all processors: a perf event for each thread or processor would take the kernel 80 ms to
//! take away, each.

use std::collections::{BTreeMap, BTreeSet};

use aya::Ebpf;
use aya::maps::HashMap;
use aya::programs::UProbe;
use aya::programs::uprobe::{UProbeLinkId, UProbeScope};

use crate::event::Pid;
use crate::record::inject::Driver;

/// The program's name in the object.
const PROGRAM: &str = "cuda_graph_launch";

/// Launches being counted.
#[derive(Default)]
pub struct GraphWatch {
    links: Vec<UProbeLinkId>,
}

impl GraphWatch {
    /// Begins to count the launches that go through these drivers' files.
    pub fn begin(ebpf: &mut Ebpf, drivers: &[Driver]) -> Self {
        let Some(program) = program(ebpf) else { return Self::default() };
        // Loaded already: another watch was before.
        let _ = program.load();
        let mut files = BTreeSet::new();
        let mut links = Vec::new();
        for driver in drivers.iter().filter(|driver| files.insert(driver.file)) {
            for &offset in &driver.graph_launches {
                links.extend(program.attach(offset, &driver.path, UProbeScope::AllProcesses));
            }
        }
        Self { links }
    }

    /// Ends it. How many each process launched.
    pub fn end(self, ebpf: &mut Ebpf) -> BTreeMap<Pid, u64> {
        if let Some(program) = program(ebpf) {
            for link in self.links {
                // A link that cannot be detached now is closed with the object.
                let _ = program.detach(link);
            }
        }
        let map = ebpf.map("GRAPH_LAUNCHES").and_then(|map| HashMap::<_, u32, u64>::try_from(map).ok());
        let Some(map) = map else { return BTreeMap::new() };
        map.iter().flatten().map(|(tgid, count)| (Pid(tgid as i32), count)).collect()
    }
}

fn program(ebpf: &mut Ebpf) -> Option<&mut UProbe> {
    ebpf.program_mut(PROGRAM)?.try_into().ok()
}
