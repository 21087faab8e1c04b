//! Loads the object and attaches its programs, each on its own: a kernel without one tracepoint loses what depends on
//! it and nothing else.

use std::collections::BTreeMap;

use aya::maps::Stack;
use aya::programs::perf_event::PerfEventLinkId;
use aya::programs::raw_trace_point::RawTracePointLinkId;
use aya::programs::{ProgramError, RawTracePoint};
use aya::{Ebpf, EbpfLoader, VerifierLogLevel};
use tracer_abi::kernel::KernelConfig;

use super::arch;
use super::btf::Btf;
use super::error::ProbeError;
use super::features;
use super::maps::{PodConfig, PodOffsets};
use super::offsets;
use super::programs::{OLDEST, PROGRAMS, ProgramSpec};
use super::sampler;
use super::session::{self, Probes};
use crate::record::rows::addresses_of;
use crate::record::{CALLS_OVER, STACK_RATE};
use crate::store::meta::ProbeStatus;

include!(concat!(env!("OUT_DIR"), "/bpf_object.rs"));

/// Threads kept at once, kernel threads included, unless told otherwise. Each takes about 0.9 kB of kernel memory.
const DEFAULT_THREADS: u32 = 16_384;
/// A slot number is 16 bits in the kernel's table, 0 is none.
const MOST_THREADS: u32 = 65_535;
/// `PID_MAX_LIMIT` of 64-bit kernels.
const PID_MAX_LIMIT: u32 = 4 << 20;

/// How to record.
#[derive(Clone, Copy, Debug)]
pub struct LoadConfig {
    /// System calls that neither block nor last this long are counted, not emitted.
    pub fast_syscall_ns: u64,
    /// Record kernel threads too: they stand between a target and its disk.
    pub kernel_threads: bool,
    /// Bytes of the ring from the kernel, a power of two of pages.
    pub ring_bytes: u32,
    /// Threads kept at once.
    pub max_threads: u32,
    /// Stack samples a second on each CPU; 0: none.
    pub stack_rate: u32,
}

impl Default for LoadConfig {
    fn default() -> Self {
        Self {
            fast_syscall_ns: CALLS_OVER.as_nanos() as u64,
            kernel_threads: true,
            ring_bytes: 64 << 20,
            max_threads: DEFAULT_THREADS,
            stack_rate: 0,
        }
    }
}

/// Loads and attaches every program as a recording would, records nothing, and says what works (`gtrace doctor`).
///
/// # Errors
/// As [`Probes::load`].
pub fn probe_check() -> Result<Vec<ProbeStatus>, ProbeError> {
    let config =
        LoadConfig { ring_bytes: 1 << 16, max_threads: 64, stack_rate: STACK_RATE, ..LoadConfig::default() };
    Ok(Probes::load(&config)?.statuses().to_vec())
}

/// What `load` made: the programs, and where each is attached.
pub(super) struct Loaded {
    pub ebpf: Ebpf,
    pub links: BTreeMap<&'static str, RawTracePointLinkId>,
    pub clock: Vec<PerfEventLinkId>,
    pub statuses: Vec<ProbeStatus>,
    pub pid_limit: u32,
}

pub(super) fn load(config: &LoadConfig) -> Result<Loaded, ProbeError> {
    let object = OBJECT.ok_or(ProbeError::NotBuilt)?;
    if !may_load() {
        return Err(ProbeError::NotPermitted);
    }
    let btf = Btf::running_kernel().map_err(ProbeError::NoBtf)?;
    let offsets = PodOffsets(offsets::resolve(&btf)?);
    let functions = addresses_of([
        "iomap_dio_bio_end_io",
        "bio_chain_endio",
        "blk_throtl_dispatch_work_fn",
        "end_swap_bio_read",
        "end_swap_bio_write",
    ]);
    let constants = PodConfig(KernelConfig {
        fast_syscall_ns: config.fast_syscall_ns,
        own_tgid: std::process::id(),
        kernel_threads: u32::from(config.kernel_threads),
        direct_end_io: functions[0],
        chain_end_io: functions[1],
        throttle_work: functions[2],
        swap_end_io: [functions[3], functions[4]],
        o_direct: libc::O_DIRECT as u32,
        cpus: possible_cpus(),
    });
    let classes = arch::syscall_classes();
    let pid_limit = pid_limit();
    let max_threads = config.max_threads.clamp(1, MOST_THREADS).min(pid_limit);
    let mut loader = EbpfLoader::new();
    loader
        // The programs are not relocated by the loader: their offsets are constants, which old and odd BTF cannot upset.
        .btf(None)
        .verifier_log_level(VerifierLogLevel::default())
        .override_global("OFFSETS", &offsets, true)
        .override_global("CONFIG", &constants, true)
        .override_global("SYSCALL_CLASSES", classes.as_slice(), true)
        .map_max_entries("EVENTS", config.ring_bytes)
        .map_max_entries("STACKS", stack_ring_bytes(config.stack_rate))
        .map_max_entries("PROCESSES", pid_limit.div_ceil(8))
        .map_max_entries("SLOTS", pid_limit.div_ceil(4))
        .map_max_entries("FREE_SLOTS", max_threads)
        .map_max_entries("THREADS", max_threads + 1)
        .map_max_entries("COUNT_CACHES", max_threads + 1)
        .map_max_entries("THREAD_INDEX", max_threads);
    let mut ebpf = loader.load(object).map_err(ProbeError::Load)?;
    fill_free_slots(&mut ebpf, max_threads)?;
    let mut links = BTreeMap::new();
    let mut statuses = Vec::with_capacity(PROGRAMS.len() + features::FEATURES.len());
    let wanted: Vec<&ProgramSpec> = PROGRAMS.iter().filter(|spec| is_for_this_kernel(spec, &btf)).collect();
    if !wanted.iter().any(|spec| spec.tracepoint == "sched_switch") {
        let reason = format!("its arguments are {:?}", btf.tracepoint_arguments("sched_switch"));
        return Err(ProbeError::Essential { program: "sched_switch", reason });
    }
    for &spec in &wanted {
        let outcome = attach(&mut ebpf, spec);
        if let (true, Err(reason)) = (spec.essential, &outcome) {
            return Err(ProbeError::Essential { program: spec.program, reason: reason.clone() });
        }
        statuses.push(status(spec, outcome.as_ref().err().cloned()));
        if let Ok(link) = outcome {
            links.insert(spec.program, link);
        }
    }
    for spec in wanted {
        let Some(partner) = spec.partner.filter(|partner| !links.contains_key(partner)) else { continue };
        let Some(link) = links.remove(spec.program) else { continue };
        detach(&mut ebpf, spec.program, link);
        if let Some(entry) = statuses.iter_mut().find(|entry| entry.name == spec.program) {
            *entry = status(spec, Some(format!("it makes no sense without {partner}, which is missing")));
        }
    }
    statuses.extend(features::statuses(&offsets.0, &constants.0));
    let mut clock = Vec::new();
    if config.stack_rate > 0 {
        let (links, status) = sampler::start(&mut ebpf, config.stack_rate);
        clock = links;
        statuses.push(status);
    }
    Ok(Loaded { ebpf, links, clock, statuses, pid_limit })
}

/// The slots that the programs give to threads. Before the first program is attached: it would find none.
fn fill_free_slots(ebpf: &mut Ebpf, max_threads: u32) -> Result<(), ProbeError> {
    let map = ebpf.map_mut("FREE_SLOTS").ok_or_else(|| session::missing("FREE_SLOTS"))?;
    let mut free: Stack<_, u32> =
        Stack::try_from(map).map_err(|error| session::failed("open", "FREE_SLOTS", &error))?;
    for slot in (1..=max_threads).rev() {
        free.push(slot, 0).map_err(|error| session::failed("fill", "FREE_SLOTS", &error))?;
    }
    Ok(())
}

fn status(spec: &ProgramSpec, reason: Option<String>) -> ProbeStatus {
    let attached = reason.is_none();
    let (major, minor) = spec.since;
    let reason = reason.map(|reason| {
        if spec.since > OLDEST {
            format!("{reason}; Linux {major}.{minor} and later have it")
        } else {
            reason
        }
    });
    ProbeStatus {
        name: spec.program.to_owned(),
        attached,
        unknowable: if attached {
            Vec::new()
        } else {
            spec.unknowable.iter().map(|&s| s.to_owned()).collect()
        },
        reason,
    }
}

fn attach(ebpf: &mut Ebpf, spec: &ProgramSpec) -> Result<RawTracePointLinkId, String> {
    let program = ebpf.program_mut(spec.program).ok_or("the embedded object has no such program")?;
    let program: &mut RawTracePoint = program.try_into().map_err(|error: ProgramError| error.to_string())?;
    program.load().map_err(|error| explain(&error))?;
    program.attach(spec.tracepoint).map_err(|error| explain(&error))
}

pub(super) fn detach(ebpf: &mut Ebpf, program: &str, link: RawTracePointLinkId) {
    let program: Option<&mut RawTracePoint> =
        ebpf.program_mut(program).and_then(|program| program.try_into().ok());
    if let Some(program) = program {
        // A link that cannot be detached now is closed with the object.
        let _ = program.detach(link);
    }
}

fn is_for_this_kernel(spec: &ProgramSpec, btf: &Btf) -> bool {
    spec.only_on.is_none_or(|arch| arch == std::env::consts::ARCH)
        && (!spec.supplement || btf.tracepoint_arguments(spec.tracepoint).is_some())
        && spec.arguments.is_none_or(|arguments| {
            btf.tracepoint_arguments(spec.tracepoint).is_some_and(|found| found == arguments)
        })
}

/// The kernel's reason in one line: of a verifier's log, its last lines are what matters.
pub(super) fn explain(error: &ProgramError) -> String {
    let mut text = error.to_string();
    if let ProgramError::LoadError { io_error, verifier_log } = error {
        let log = verifier_log.to_string();
        let tail: Vec<&str> = log.lines().rev().filter(|line| !line.trim().is_empty()).take(6).collect();
        let tail: Vec<&str> = tail.into_iter().rev().collect();
        text = format!("{io_error}; verifier: {}", tail.join(" | "));
    }
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        if !matches!(error, ProgramError::LoadError { .. }) {
            text = format!("{text}: {cause}");
        }
        source = cause.source();
    }
    text
}

/// Whether this process may load programs: effective root, or CAP_BPF (39) and CAP_PERFMON (38) or CAP_SYS_ADMIN (21).
fn may_load() -> bool {
    let Ok(status) = std::fs::read_to_string("/proc/self/status") else {
        return nix::unistd::geteuid().is_root();
    };
    let capabilities = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|text| u64::from_str_radix(text.trim(), 16).ok())
        .unwrap_or(0);
    let has = |bit: u32| capabilities >> bit & 1 == 1;
    has(21) || (has(38) && has(39))
}

/// CPUs that this machine can have: the number after the last one of `0-63`.
fn possible_cpus() -> u32 {
    std::fs::read_to_string("/sys/devices/system/cpu/possible")
        .ok()
        .and_then(|text| text.trim().rsplit(['-', ',']).next()?.parse::<u32>().ok())
        .map_or(1, |last| last.saturating_add(1))
}

/// Room for the samples of about a second of every CPU, each with 9 kB of stack, within bounds.
fn stack_ring_bytes(rate: u32) -> u32 {
    const SAMPLE: usize = 10 << 10;
    if rate == 0 {
        return 1 << 12;
    }
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let wanted = (cpus * rate as usize * SAMPLE).clamp(2 << 20, 32 << 20);
    wanted.next_power_of_two() as u32
}

fn pid_limit() -> u32 {
    std::fs::read_to_string("/proc/sys/kernel/pid_max")
        .ok()
        .and_then(|text| text.trim().parse().ok())
        .map_or(PID_MAX_LIMIT, |limit: u32| limit.clamp(1024, PID_MAX_LIMIT))
}
