//! All processes with rings.

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::os::fd::RawFd;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::thread;
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};
use tracer_abi::kernel::CudaCallRecord;
use tracer_abi::shim::{Collection, ShimState};

use super::announced::Announced;
use super::bounds::Bounds;
use super::clock::Clocks;
use super::devices::Devices;
use super::discover;
use super::mapping::{Found, Ring, RingError, identity};
use super::process::{Process, Shared};
use super::row::GpuRow;
use crate::event::{MonoNs, Pid};
use crate::record::probes::RingAnnouncements;
use crate::store::meta::{GpuInfo, GpuProcess};

/// How long a ring that was noticed may take to be ready.
const READY_WITHIN: Duration = Duration::from_secs(10);
/// Rings that are read.
const MOST_RINGS: usize = 4096;

/// The GPU side of a recording.
///
/// ```no_run
/// # use gtrace::{event::Pid, record::gpu::GpuSide};
/// # use std::time::Duration;
/// let mut gpu = GpuSide::new();
/// gpu.scan([Pid(4711)]); // at attach, and now and then for processes that map libcuda
/// gpu.notice_memfd(Pid(4712), 17); // when the kernel side reports a memfd of the name
/// loop {
///     gpu.drain(&mut |row| println!("{row:?}")); // several times a second
///     # break;
/// }
/// gpu.finish(Duration::from_secs(1), &mut |row| println!("{row:?}"));
/// ```
pub struct GpuSide {
    shared: Shared,
    processes: Vec<Process>,
    ended: Vec<GpuProcess>,
    /// Noticed, not ready yet.
    pending: Vec<(Found, Instant)>,
    /// Rings that the kernel side announces.
    announced: Option<Announced>,
    /// Rings that are read, were read, or never will be.
    known: HashSet<(u64, u64)>,
    problems: Vec<RingError>,
    attached: bool,
    /// Processes whose calls of the driver are all there is.
    bounds: BTreeMap<Pid, Bounds>,
}

impl Default for GpuSide {
    fn default() -> Self {
        Self::new()
    }
}

impl GpuSide {
    /// A GPU side without processes.
    #[must_use]
    pub fn new() -> Self {
        let now = clock_gettime(ClockId::CLOCK_MONOTONIC)
            .map_or(0, |time| time.tv_sec() * 1_000_000_000 + time.tv_nsec());
        // Unique to this recorder on this host, and never 0.
        let token = ((u64::from(std::process::id()) << 40) ^ now as u64) | 1;
        let shared = Shared {
            token,
            clocks: Clocks::new(),
            devices: Devices::default(),
            next_op: 0,
            next_api: 0,
            next_sync: 0,
            next_overhead: 0,
            next_marker: 0,
            graph_launches: BTreeMap::new(),
            wanted: (Collection::FULL, "from the beginning".to_owned()),
        };
        Self {
            shared,
            processes: Vec::new(),
            ended: Vec::new(),
            pending: Vec::new(),
            announced: None,
            known: HashSet::new(),
            problems: Vec::new(),
            attached: false,
            bounds: BTreeMap::new(),
        }
    }

    /// Takes hold of each ring that the kernel side announces from now on, the moment it is made.
    ///
    /// # Errors
    /// No thread can be made for it.
    pub fn listen(&mut self, announcements: RingAnnouncements) -> io::Result<()> {
        self.announced = Some(Announced::listen(announcements)?);
        Ok(())
    }

    /// A process has a file that may be a ring. It may not be filled yet, so it is looked at again with each drain.
    pub fn notice_memfd(&mut self, pid: Pid, fd: RawFd) {
        // A file that is gone was none, or its process is.
        if let Ok(found) = Found::look(pid, fd) {
            self.hold(found);
        }
        self.open_pending();
    }

    fn hold(&mut self, found: Found) {
        let known = |held: &(Found, Instant)| (held.0.pid, held.0.fd) == (found.pid, found.fd);
        if self.pending.len() < MOST_RINGS && !self.pending.iter().any(known) {
            self.pending.push((found, Instant::now()));
        }
    }

    /// Tells how many CUDA graphs processes were seen to launch. To be told before their rings are noticed.
    pub fn note_graph_launches(&mut self, launches: BTreeMap<Pid, u64>) {
        self.shared.graph_launches.extend(launches);
    }

    /// Has all processes collect this from now on, and says why. They follow within a tenth of a second.
    pub fn collect(&mut self, wanted: Collection, why: &str) {
        if self.shared.wanted.0 != wanted {
            self.shared.wanted = (wanted, why.to_owned());
        }
    }

    /// What is to be collected.
    #[must_use]
    pub fn wanted(&self) -> Collection {
        self.shared.wanted.0
    }

    /// Another client of CUPTI has had this process's records since `since`.
    pub fn taken(&mut self, pid: Pid, since: MonoNs) {
        self.processes
            .iter_mut()
            .filter(|process| process.pid == pid)
            .for_each(|process| process.taken_over(since));
    }

    /// It is gone: the shim begins anew.
    pub fn restart(&mut self, pid: Pid) {
        for process in self.processes.iter().filter(|process| process.pid == pid && process.is_held()) {
            process.header().reader.restarts.fetch_add(1, Release);
        }
    }

    /// The processes that collect at present, each with the launches that it counted and the records that came of it.
    pub fn counted(&self) -> impl Iterator<Item = (Pid, u64, u64)> + '_ {
        self.processes.iter().filter(|process| process.is_collecting()).map(|process| {
            let (launches, records) = process.counted();
            (process.pid, launches, records)
        })
    }

    /// Makes a GPU side of these calls of the driver, for processes whose shim collects nothing.
    pub fn take_calls(&mut self, calls: &[CudaCallRecord], sink: &mut impl FnMut(GpuRow)) {
        for call in calls {
            let pid = Pid(call.tgid as i32);
            if self.processes.iter().any(|process| process.pid == pid && process.is_collecting()) {
                // CUPTI came after all: what it tells is more.
                self.end_bounds(pid, sink);
                continue;
            }
            let device = self.shared.devices.get_or_invent(pid, 0);
            self.bounds.entry(pid).or_default().take(call, device, &mut self.shared.numbers(), sink);
        }
    }

    /// The processes of which calls were taken.
    pub fn bounds(&self) -> impl Iterator<Item = Pid> + '_ {
        self.bounds.iter().filter(|(_, bounds)| bounds.calls() > 0).map(|(pid, _)| *pid)
    }

    fn end_bounds(&mut self, pid: Pid, sink: &mut impl FnMut(GpuRow)) {
        let Some(mut bounds) = self.bounds.remove(&pid) else { return };
        let device = self.shared.devices.get_or_invent(pid, 0);
        let now = self.shared.clocks.now();
        bounds.finish(pid, now, device, &mut self.shared.numbers(), sink);
    }

    /// Looks for rings in these processes: one pass over their open files.
    pub fn scan(&mut self, pids: impl IntoIterator<Item = Pid>) {
        for pid in pids {
            for fd in discover::candidates(pid) {
                if identity(pid, fd).is_none_or(|ring| !self.known.contains(&ring)) {
                    self.notice_memfd(pid, fd);
                }
            }
        }
    }

    /// Hands out the rows of everything that has come since the last call. To be called several times a second: a shim
    /// that hears nothing for some seconds stops collecting.
    pub fn drain(&mut self, sink: &mut impl FnMut(GpuRow)) {
        self.shared.clocks.sample(sink);
        let announced: Vec<Found> = self.announced.iter().flat_map(Announced::found).collect();
        for found in announced {
            self.hold(found);
        }
        self.open_pending();
        for process in &mut self.processes {
            process.drain(&mut self.shared, sink);
            self.attached |= process.records > 0;
        }
        for process in self.processes.extract_if(.., |process| process.ended) {
            if process.only_marks() {
                continue;
            }
            self.ended.push(process.describe());
        }
    }

    /// Ends the recording: asks for a last flush, waits for it at most `patience`, hands out the rest, and lets the
    /// shims stop.
    pub fn finish(&mut self, patience: Duration, sink: &mut impl FnMut(GpuRow)) {
        let deadline = Instant::now() + patience;
        // Two flushes: one may be under way.
        let wanted: Vec<(Pid, u64)> =
            self.processes.iter().map(|process| (process.pid, flushes(process) + 2)).collect();
        for process in &self.processes {
            process.header().reader.flush_requests.fetch_add(1, Relaxed);
        }
        loop {
            self.drain(sink);
            let due = self.processes.iter().any(|process| {
                let collecting = process.header().state.load(Acquire) == ShimState::Collecting as u32;
                let wanted =
                    wanted.iter().find(|(pid, _)| *pid == process.pid).map_or(0, |(_, flushes)| *flushes);
                process.is_held() && collecting && flushes(process) < wanted
            });
            if !due || Instant::now() >= deadline {
                break;
            }
            thread::sleep(Duration::from_millis(5));
        }
        self.drain(sink);
        let now = self.shared.clocks.now();
        for (&pid, bounds) in &mut self.bounds {
            let device = self.shared.devices.get_or_invent(pid, 0);
            bounds.finish(pid, now, device, &mut self.shared.numbers(), sink);
        }
        for process in &mut self.processes {
            process.finish(&mut self.shared, sink);
        }
    }

    /// The processes with CUDA whose rings were found, dead ones included.
    #[must_use]
    pub fn processes(&self) -> Vec<GpuProcess> {
        let living = self.processes.iter().filter(|process| !process.only_marks()).map(Process::describe);
        self.ended.iter().cloned().chain(living).collect()
    }

    /// The processes whose rings are read, or will be as soon as they are ready.
    pub fn pids(&self) -> impl Iterator<Item = Pid> + '_ {
        self.processes
            .iter()
            .map(|process| process.pid)
            .chain(self.pending.iter().map(|(found, _)| found.pid))
    }

    /// The processes whose shim collects nothing, and says why.
    #[must_use]
    pub fn refused(&self) -> Vec<Pid> {
        let refused = |process: &&Process| {
            process.is_held() && process.header().state.load(Acquire) == ShimState::Refused as u32
        };
        self.processes.iter().filter(refused).map(|process| process.pid).collect()
    }

    /// The GPUs that were seen.
    #[must_use]
    pub fn gpus(&self) -> Vec<GpuInfo> {
        self.shared.devices.all().to_vec()
    }

    /// Whether a real record has come through from any process.
    #[must_use]
    pub fn attached(&self) -> bool {
        self.attached
    }

    /// Largest error of the conversion to CLOCK_MONOTONIC so far, in ns; 0 where CUPTI itself used that clock.
    #[must_use]
    pub fn clock_residual_ns(&self) -> i64 {
        self.shared.clocks.residual_ns()
    }

    /// Rings that could not be used, since the last call.
    pub fn take_problems(&mut self) -> Vec<RingError> {
        std::mem::take(&mut self.problems)
    }

    fn open_pending(&mut self) {
        for (found, since) in std::mem::take(&mut self.pending) {
            match Ring::open(&found) {
                Ok(ring) if self.processes.len() < MOST_RINGS => {
                    if self.known.insert(ring.identity) {
                        self.processes.push(Process::new(found.pid, ring, &self.shared));
                    }
                }
                Err(RingError::NotReady { .. }) if since.elapsed() < READY_WITHIN => {
                    self.pending.push((found, since));
                }
                // A forked child has its parent's.
                Ok(_) | Err(RingError::Inherited { .. } | RingError::Open { .. }) => {}
                Err(problem) => {
                    if let Some(identity) = found.identity() {
                        self.known.insert(identity);
                    }
                    self.problems.push(problem);
                }
            }
        }
    }
}

fn flushes(process: &Process) -> u64 {
    process.header().flushes.load(Acquire)
}

impl Drop for GpuSide {
    /// Lets the shims stop at once, and not only when they miss us.
    fn drop(&mut self) {
        for process in &self.processes {
            super::claim::release(process.header(), self.shared.token);
        }
    }
}
