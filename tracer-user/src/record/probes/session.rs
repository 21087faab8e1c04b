//! The loaded programs while they record.

use std::collections::{BTreeMap, HashMap as StdHashMap, HashSet};
use std::os::fd::AsFd;

use aya::Ebpf;
use aya::maps::{Array, HashMap, Map, MapData, PerCpuArray, RingBuf};
use aya::programs::perf_event::PerfEventLinkId;
use aya::programs::raw_trace_point::RawTracePointLinkId;
use tracer_abi::kernel::{CountKey, CountValue, LossClass, ThreadState};

use super::cuda_calls::CallProbes;
use super::cuda_watch::{Counted, CudaWatch};
use super::cupti_watch::{self, CuptiWatch};
use super::error::ProbeError;
use super::life::LifeRing;
use super::load::{self, LoadConfig, Loaded};
use super::maps::{PodCountCache, PodCountKey, PodCountValue, PodThreadState, SharedBytes, array_data};
use super::raw::RawRecord;
use super::recursion;
use super::rings::RingAnnouncements;
use super::sampler::{self, StackSource};
use crate::event::{MonoNs, Pid};
use crate::record::inject::{Calls, Client, Cupti, Driver};
use crate::store::meta::ProbeStatus;

/// `BPF_NOEXIST`.
const NO_EXIST: u64 = 1;
/// Flag of a member of the recorded tree in `PROCESSES`.
const MEMBER: u8 = 1;

/// The loaded and attached programs. Dropping it detaches them.
pub struct Probes {
    ebpf: Ebpf,
    links: BTreeMap<&'static str, RawTracePointLinkId>,
    clock: Vec<PerfEventLinkId>,
    statuses: Vec<ProbeStatus>,
    ring: RingBuf<MapData>,
    life: LifeRing,
    rings: Option<RingAnnouncements>,
    processes: SharedBytes,
    thread_index: HashMap<MapData, u32, u32>,
    threads: Array<MapData, PodThreadState>,
    count_caches: Array<MapData, PodCountCache>,
    seeds: HashMap<MapData, u32, PodThreadState>,
    counts: HashMap<MapData, PodCountKey, PodCountValue>,
    losses: PerCpuArray<MapData, u64>,
    malformed: u64,
    cupti: CuptiWatch,
    calls: CallProbes,
}

impl Probes {
    /// Loads the programs and attaches them. Nothing is recorded until a process is tracked, except block requests
    /// and kernel threads.
    ///
    /// # Errors
    /// This build has no eBPF object, root is missing, the kernel has no type information, or it refuses an essential
    /// program. A program that is not essential and fails is in [`Self::statuses`] instead.
    pub fn load(config: &LoadConfig) -> Result<Self, ProbeError> {
        let Loaded { mut ebpf, links, clock, statuses, pid_limit } = load::load(config)?;
        let processes = {
            let map = ebpf.map("PROCESSES").ok_or_else(|| missing("PROCESSES"))?;
            SharedBytes::map(array_data(map, "PROCESSES")?, "PROCESSES", pid_limit.div_ceil(8) as usize * 8)?
        };
        Ok(Self {
            ring: take(&mut ebpf, "EVENTS")?,
            life: LifeRing::new(take(&mut ebpf, "LIFE")?),
            rings: Some(RingAnnouncements::new(take(&mut ebpf, "RINGS")?)),
            thread_index: take(&mut ebpf, "THREAD_INDEX")?,
            threads: take(&mut ebpf, "THREADS")?,
            count_caches: take(&mut ebpf, "COUNT_CACHES")?,
            seeds: take(&mut ebpf, "SEEDS")?,
            counts: take(&mut ebpf, "SYSCALL_COUNTS")?,
            losses: take(&mut ebpf, "LOSSES")?,
            processes,
            ebpf,
            links,
            clock,
            statuses,
            malformed: 0,
            cupti: CuptiWatch::default(),
            calls: CallProbes::default(),
        })
    }

    /// The announcements of rings, for whoever waits for them. `None`: they were taken before.
    pub fn take_ring_announcements(&mut self) -> Option<RingAnnouncements> {
        self.rings.take()
    }

    /// Every probe, attached or not, with what is unknowable without it.
    #[must_use]
    pub fn statuses(&self) -> &[ProbeStatus] {
        &self.statuses
    }

    /// The stack samples. `None` if the clock does not run, or they were handed out before.
    pub fn take_stacks(&mut self) -> Option<StackSource> {
        if self.clock.is_empty() { None } else { StackSource::new(&mut self.ebpf) }
    }

    /// Records this process and, from now on, all that it forks. `tgid` is as the initial pid namespace sees it.
    ///
    /// # Errors
    /// The number is above the kernel's `pid_max`.
    pub fn track_process(&self, tgid: u32) -> Result<(), ProbeError> {
        self.set_process(tgid, MEMBER)
    }

    /// Records this process no longer. What it forked stays recorded.
    ///
    /// # Errors
    /// The number is above the kernel's `pid_max`.
    pub fn forget_process(&self, tgid: u32) -> Result<(), ProbeError> {
        self.set_process(tgid, 0)
    }

    /// Whether the kernel follows this process at this moment.
    #[must_use]
    pub fn is_tracked(&self, tgid: u32) -> bool {
        self.processes.get(tgid as usize) == Some(MEMBER)
    }

    fn set_process(&self, tgid: u32, value: u8) -> Result<(), ProbeError> {
        if self.processes.set(tgid as usize, value) {
            return Ok(());
        }
        let reason = format!("process {tgid} is above the kernel's pid_max");
        Err(ProbeError::Map { action: "write", map: "PROCESSES", reason })
    }

    /// Begins to count what recorded processes call of these drivers: graph launches, and other `work` if wanted.
    pub fn watch_cuda(&mut self, drivers: &[Driver], work: bool) -> CudaWatch {
        CudaWatch::begin(&mut self.ebpf, drivers, work)
    }

    /// Ends it.
    pub fn end_watch(&mut self, watch: CudaWatch) -> Counted {
        watch.end(&mut self.ebpf)
    }

    /// Records the calls of a driver from now on, one by one. `false`: the kernel refuses.
    pub fn record_cuda_calls(&mut self, calls: &Calls) -> bool {
        self.calls.add(&mut self.ebpf, calls)
    }

    /// Notes from now on when clients of this CUPTI come and go. `false`: the kernel refuses.
    pub fn watch_cupti(&mut self, cupti: &Cupti) -> bool {
        self.cupti.add(&mut self.ebpf, cupti)
    }

    /// When clients of CUPTI other than the shim last made which call, by process.
    #[must_use]
    pub fn cupti_clients(&self) -> BTreeMap<Pid, BTreeMap<Client, MonoNs>> {
        cupti_watch::calls(&self.ebpf)
    }

    /// Hands in a thread that was blocked before recording began (`off_ns` the beginning of the recording, flag
    /// `BEFORE_ATTACH`, its system call from `/proc/<pid>/task/<tid>/syscall`). It counts only if the kernel has
    /// recorded nothing of the thread yet. Call it after [`Self::track_process`].
    ///
    /// # Errors
    /// The map is full. A thread that was handed in already is no error.
    pub fn insert_blocked_thread(&mut self, tid: u32, state: ThreadState) -> Result<(), ProbeError> {
        let state = ThreadState { tid, ..state };
        match self.seeds.insert(tid, PodThreadState(state), NO_EXIST) {
            Err(aya::maps::MapError::SyscallError(error))
                if error.io_error.raw_os_error() == Some(libc::EEXIST) =>
            {
                Ok(())
            }
            other => other.map_err(|error| failed("write", "SEEDS", &error)),
        }
    }

    /// Hands out at most `limit` records in the order in which the kernel reserved them (nearly the order of their
    /// times: merge by time before interpreting). Returns how many were taken from the ring; fewer than `limit` means
    /// that it is empty.
    pub fn drain(&mut self, limit: usize, receive: &mut dyn FnMut(RawRecord<'_>)) -> usize {
        let mut taken = 0;
        while taken < limit {
            let Some(item) = self.ring.next() else {
                taken += self.life.hand_out(u64::MAX, limit - taken, receive);
                break;
            };
            taken += 1;
            match RawRecord::parse(&item) {
                Some(record) => {
                    self.life.hand_out(record.header().time_ns, usize::MAX, receive);
                    receive(record);
                }
                None => self.malformed += 1,
            }
        }
        taken
    }

    /// Records of an unknown kind or a wrong length so far: the object and this program do not belong together.
    #[must_use]
    pub fn malformed(&self) -> u64 {
        self.malformed + self.life.malformed()
    }

    /// What could not be recorded since the load, by [`LossClass`].
    ///
    /// # Errors
    /// The map cannot be read.
    pub fn losses(&self) -> Result<[u64; LossClass::COUNT as usize], ProbeError> {
        let mut sums = [0; LossClass::COUNT as usize];
        for (class, sum) in sums.iter_mut().enumerate() {
            let values =
                self.losses.get(&(class as u32), 0).map_err(|error| failed("read", "LOSSES", &error))?;
            *sum = values.iter().sum();
        }
        Ok(sums)
    }

    /// How often each attached program was skipped because it was running on that CPU already. Only those that were.
    #[must_use]
    pub fn recursion_misses(&self) -> Vec<(String, u64)> {
        self.ebpf
            .programs()
            .filter_map(|(name, program)| {
                let misses = recursion::misses(program.fd().ok()?.as_fd())?;
                (misses > 0).then(|| (name.to_owned(), misses))
            })
            .collect()
    }

    /// Takes the counts of threads that have ended, and forgets them in the kernel. Call it now and then, so that the
    /// map does not fill.
    ///
    /// # Errors
    /// A map cannot be read or written.
    pub fn take_syscall_counts(&mut self) -> Result<Vec<(CountKey, CountValue)>, ProbeError> {
        let alive = self.live_tids()?;
        let ended: Vec<(CountKey, CountValue)> =
            self.stored_counts()?.into_iter().filter(|(key, _)| !alive.contains(&key.tid)).collect();
        for (key, _) in &ended {
            // Gone already: nothing is lost, its value was read.
            let _ = self.counts.remove(&PodCountKey(*key));
        }
        Ok(ended)
    }

    /// The counts of all threads that were not taken before, those alive included. Call it once, after
    /// [`Self::stop`].
    ///
    /// # Errors
    /// A map cannot be read.
    pub fn final_syscall_counts(&self) -> Result<Vec<(CountKey, CountValue)>, ProbeError> {
        let mut sums: StdHashMap<CountKey, CountValue> = StdHashMap::new();
        let mut cached = Vec::new();
        for (tid, slot) in self.indexed_slots()? {
            let cache =
                self.count_caches.get(&slot, 0).map_err(|error| failed("read", "COUNT_CACHES", &error))?;
            let tgid = self.state(slot)?.tgid;
            for entry in cache.0.iter().filter(|entry| entry.tag != 0) {
                let syscall_nr = entry.tag.wrapping_sub(1) as i32;
                cached.push((CountKey { tid, tgid, syscall_nr, reserved: 0 }, entry.value));
            }
        }
        for (key, value) in self.stored_counts()?.into_iter().chain(cached) {
            add(sums.entry(key).or_default(), &value);
        }
        Ok(sums.into_iter().collect())
    }

    /// Every recorded thread's present state, those that were handed in and not seen since included.
    ///
    /// # Errors
    /// A map cannot be read.
    pub fn threads(&self) -> Result<Vec<(u32, ThreadState)>, ProbeError> {
        let mut states = Vec::new();
        let mut seen = HashSet::new();
        for (tid, slot) in self.indexed_slots()? {
            seen.insert(tid);
            states.push((tid, self.state(slot)?));
        }
        for entry in &self.seeds {
            let (tid, state) = entry.map_err(|error| failed("read", "SEEDS", &error))?;
            if seen.insert(tid) {
                states.push((tid, state.0));
            }
        }
        Ok(states)
    }

    /// Detaches every program: nothing is recorded from now on. What is in the ring and the maps can still be read.
    pub fn stop(&mut self) {
        sampler::stop(&mut self.ebpf, std::mem::take(&mut self.clock));
        for (program, link) in std::mem::take(&mut self.links) {
            load::detach(&mut self.ebpf, program, link);
        }
    }

    fn live_tids(&self) -> Result<HashSet<u32>, ProbeError> {
        Ok(self.indexed_slots()?.into_iter().map(|(tid, _)| tid).collect())
    }

    fn indexed_slots(&self) -> Result<Vec<(u32, u32)>, ProbeError> {
        self.thread_index
            .iter()
            .collect::<Result<_, _>>()
            .map_err(|error| failed("read", "THREAD_INDEX", &error))
    }

    fn state(&self, slot: u32) -> Result<ThreadState, ProbeError> {
        self.threads.get(&slot, 0).map(|state| state.0).map_err(|error| failed("read", "THREADS", &error))
    }

    fn stored_counts(&self) -> Result<Vec<(CountKey, CountValue)>, ProbeError> {
        self.counts
            .iter()
            .map(|entry| entry.map(|(key, value)| (key.0, value.0)))
            .collect::<Result<_, _>>()
            .map_err(|error| failed("read", "SYSCALL_COUNTS", &error))
    }
}

fn add(sum: &mut CountValue, value: &CountValue) {
    sum.first_ns = if sum.calls == 0 { value.first_ns } else { sum.first_ns.min(value.first_ns) };
    sum.last_ns = sum.last_ns.max(value.last_ns);
    sum.calls += value.calls;
    sum.total_ns += value.total_ns;
    sum.max_ns = sum.max_ns.max(value.max_ns);
    sum.result_sum = sum.result_sum.wrapping_add(value.result_sum);
    sum.errors += value.errors;
}

pub(super) fn take<M: TryFrom<Map>>(ebpf: &mut Ebpf, name: &'static str) -> Result<M, ProbeError> {
    let map = ebpf.take_map(name).ok_or_else(|| missing(name))?;
    M::try_from(map).map_err(|_| ProbeError::Mismatch(format!("the map {name} has another type")))
}

pub(super) fn missing(name: &str) -> ProbeError {
    ProbeError::Mismatch(format!("it has no map {name}"))
}

pub(super) fn failed(action: &'static str, map: &'static str, error: &dyn std::error::Error) -> ProbeError {
    let mut reason = error.to_string();
    if let Some(source) = error.source() {
        reason = format!("{reason}: {source}");
    }
    ProbeError::Map { action, map, reason }
}
