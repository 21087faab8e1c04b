//! The driver's calls one by one, where CUPTI is not.

use std::collections::BTreeSet;

use aya::Ebpf;
use aya::programs::UProbe;
use aya::programs::uprobe::{UProbeAttachLocation, UProbeAttachPoint, UProbeLinkId, UProbeScope};

use crate::record::inject::Calls;

const SUBMIT: &str = "cuda_submit";
const BEGIN: &str = "cuda_begin";
const END: &str = "cuda_end";

/// The drivers whose calls are recorded.
#[derive(Debug, Default)]
pub struct CallProbes {
    files: BTreeSet<(u64, u64)>,
    links: Vec<UProbeLinkId>,
}

impl CallProbes {
    /// Records the calls of a driver from now on, in all recorded processes that have it. `false`: the kernel refuses.
    pub fn add(&mut self, ebpf: &mut Ebpf, calls: &Calls) -> bool {
        if !self.files.insert(calls.file) {
            return true;
        }
        let before = self.links.len();
        for &(offset, cookie, with_return) in &calls.places {
            // The return first: a call that is under way meanwhile has a return without an entry, which is nothing.
            let programs: &[&str] = if with_return { &[END, BEGIN] } else { &[SUBMIT] };
            for name in programs {
                let program =
                    ebpf.program_mut(name).and_then(|program| <&mut UProbe>::try_from(program).ok());
                let Some(program) = program else { continue };
                // Loaded already, but for the first time.
                let _ = program.load();
                let location = UProbeAttachLocation::AbsoluteOffset(offset);
                let point = UProbeAttachPoint { location, cookie: Some(cookie) };
                self.links.extend(program.attach(point, &calls.path, UProbeScope::AllProcesses));
            }
        }
        self.links.len() > before
    }
}
