//! Other clients of CUPTI in a recorded process, by the calls with which they come and go.
//!
//! Two clients of CUPTI's global functions steal each other's buffers: the last to register its call-backs gets all. Nothing
//! says so to the one before, so these calls are watched from outside. They are rare; nothing is probed on the way of a launch.

use std::collections::{BTreeMap, BTreeSet};

use aya::maps::HashMap;
use aya::programs::UProbe;
use aya::programs::uprobe::{UProbeAttachLocation, UProbeAttachPoint, UProbeLinkId, UProbeScope};
use aya::{Ebpf, Pod};
use tracer_abi::kernel::ClientCall;

use crate::event::{MonoNs, Pid};
use crate::record::inject::{Client, Cupti};

/// The program's name in the object.
const PROGRAM: &str = "cupti_client";
/// The map's.
const MAP: &str = "CUPTI_CLIENTS";

#[derive(Clone, Copy)]
#[repr(transparent)]
struct PodClientCall(ClientCall);
// SAFETY: two integers.
unsafe impl Pod for PodClientCall {}

/// The libraries that are watched.
#[derive(Debug, Default)]
pub struct CuptiWatch {
    files: BTreeSet<(u64, u64)>,
    links: Vec<UProbeLinkId>,
}

impl CuptiWatch {
    /// Watches a libcupti from now on; one that is watched already is left as it is. `false`: the kernel refuses.
    pub fn add(&mut self, ebpf: &mut Ebpf, cupti: &Cupti) -> bool {
        if !self.files.insert(cupti.file) {
            return true;
        }
        let Some(program) =
            ebpf.program_mut(PROGRAM).and_then(|program| <&mut UProbe>::try_from(program).ok())
        else {
            return false;
        };
        // Loaded already: another library was before.
        let _ = program.load();
        for &(offset, what) in &cupti.clients {
            let point = UProbeAttachPoint {
                location: UProbeAttachLocation::AbsoluteOffset(offset),
                cookie: Some(what as u64),
            };
            self.links.extend(program.attach(point, &cupti.path, UProbeScope::AllProcesses));
        }
        !self.links.is_empty()
    }
}

/// When clients of each process last made which call.
pub fn calls(ebpf: &Ebpf) -> BTreeMap<Pid, BTreeMap<Client, MonoNs>> {
    let map = ebpf.map(MAP).and_then(|map| HashMap::<_, u64, PodClientCall>::try_from(map).ok());
    let mut calls: BTreeMap<Pid, BTreeMap<Client, MonoNs>> = BTreeMap::new();
    for (key, PodClientCall(call)) in map.iter().flat_map(|map| map.iter().flatten()) {
        let what = match key as u32 {
            1 => Client::Registers,
            2 => Client::Enables,
            3 => Client::Disables,
            4 => Client::Leaves,
            5 => Client::Flushes,
            _ => continue,
        };
        calls.entry(Pid((key >> 32) as i32)).or_default().insert(what, MonoNs(call.last_ns as i64));
    }
    calls
}
