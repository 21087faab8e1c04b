//! The clock that takes stack samples: one software event on each CPU (`PERF_COUNT_SW_CPU_CLOCK`), which needs no
//! hardware counters and so works in virtual machines. It looks at whoever runs, and leaves whoever is not recorded at
//! once: cheaper than an event for each thread, and no thread is missed.

use aya::Ebpf;
use aya::maps::ring_buf::RingBufItem;
use aya::maps::{HashMap, MapData, RingBuf};
use aya::programs::perf_event::{
    PerfEventConfig, PerfEventLinkId, PerfEventScope, SamplePolicy, SoftwareEvent,
};
use aya::programs::{PerfEvent, ProgramError};
use aya::util::online_cpus;
use tracer_abi::kernel::PythonProcess;

use super::maps::PodPythonProcess;
use super::session;
use crate::store::meta::ProbeStatus;

/// The program's name in the object.
const CLOCK: &str = "cpu_clock";

/// Samples as the kernel takes them.
pub struct StackSource {
    ring: RingBuf<MapData>,
    python: HashMap<MapData, u32, PodPythonProcess>,
}

impl StackSource {
    pub(super) fn new(ebpf: &mut Ebpf) -> Option<Self> {
        Some(Self { ring: session::take(ebpf, "STACKS").ok()?, python: session::take(ebpf, "PYTHON").ok()? })
    }

    /// The next record of the ring.
    pub fn take(&mut self) -> Option<Vec<u8>> {
        self.ring.next().map(|item: RingBufItem<'_>| item.to_vec())
    }

    /// Tells the kernel where a process keeps its Python frames.
    pub fn tell_python(&mut self, tgid: u32, process: &PythonProcess) {
        // Full or refused: its samples stay without Python frames.
        let _ = self.python.insert(tgid, PodPythonProcess(*process), 0);
    }
}

/// Starts the clock on every CPU. What it takes ends in the ring until it is stopped.
pub(super) fn start(ebpf: &mut Ebpf, rate: u32) -> (Vec<PerfEventLinkId>, ProbeStatus) {
    let mut links = Vec::new();
    let outcome = attach(ebpf, rate, &mut links);
    if outcome.is_err() {
        stop(ebpf, std::mem::take(&mut links));
    }
    let unknowable: &[&str] = if outcome.is_ok() { &[] } else { &["the functions of host.cpu.user"] };
    let status = ProbeStatus {
        name: CLOCK.to_owned(),
        attached: outcome.is_ok(),
        reason: outcome.err(),
        unknowable: unknowable.iter().map(|&text| text.to_owned()).collect(),
    };
    (links, status)
}

fn attach(ebpf: &mut Ebpf, rate: u32, links: &mut Vec<PerfEventLinkId>) -> Result<(), String> {
    let program = clock(ebpf).ok_or("the embedded object has no such program")?;
    program.load().map_err(|error| super::load::explain(&error))?;
    for cpu in online_cpus().map_err(|(what, error)| format!("{what}: {error}"))? {
        let link = program.attach(
            PerfEventConfig::Software(SoftwareEvent::CpuClock),
            PerfEventScope::AllProcessesOneCpu { cpu },
            SamplePolicy::Frequency(u64::from(rate)),
            false,
        );
        links.push(link.map_err(|error| super::load::explain(&error))?);
    }
    Ok(())
}

/// Stops the clock.
pub(super) fn stop(ebpf: &mut Ebpf, links: Vec<PerfEventLinkId>) {
    let Some(program) = clock(ebpf) else { return };
    for link in links {
        // A link that cannot be detached now is closed with the object.
        let _ = program.detach(link);
    }
}

fn clock(ebpf: &mut Ebpf) -> Option<&mut PerfEvent> {
    let program: Result<&mut PerfEvent, ProgramError> = ebpf.program_mut(CLOCK)?.try_into();
    program.ok()
}
