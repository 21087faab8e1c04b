//! The maps. Sizes marked so are set by the loader.

use aya_ebpf::macros::map;
use aya_ebpf::maps::{Array, HashMap, LruHashMap, PerCpuArray, RingBuf, Stack};
use tracer_abi::kernel::{
    ClientCall, CountCache, CountKey, CountValue, LossClass, PythonProcess, SampleRecord, ThreadState,
};

use crate::block::{Request, Submitter};
use crate::cpu::CpuState;
use crate::cuda_calls::OpenCall;
use crate::path::{self, PathKey};
use crate::poll::Scratch;

/// CPUs of which it is kept whether they idle.
pub const MOST_CPUS: u32 = 256;

/// `BPF_F_MMAPABLE`: user space changes single bytes, which a read-modify-write through the system call could not do
/// beside the programs.
const MMAPABLE: u32 = 1 << 10;

/// Every record but those of [`LIFE`]. Size set by the loader.
#[map]
pub static EVENTS: RingBuf = RingBuf::with_byte_size(1 << 16, 0);

/// Forks, execs and exits. They have a ring of their own, since a flood of other records must not lose what
/// all other records are understood by. 4,000 forks fit.
#[map]
pub static LIFE: RingBuf = RingBuf::with_byte_size(1 << 18, 0);

/// Memfds that may be rings of a shim. Each wakes its reader, which takes hold of them: a ring goes with its process.
#[map]
pub static RINGS: RingBuf = RingBuf::with_byte_size(1 << 16, 0);
/// Stack samples. They have a ring and a reader of their own: their loss loses no cause. Size set by the loader.
#[map]
pub static STACKS: RingBuf = RingBuf::with_byte_size(1 << 16, 0);

/// Membership of processes: one byte for each tgid, eight to an element. An array look-up is inlined by the JIT, so a
/// process that is not recorded pays about 3 ns for it where a hash map takes 15. Size set by the loader.
#[map]
pub static PROCESSES: Array<[u8; 8]> = Array::with_max_entries(1, MMAPABLE);

/// For each tid its slot in `THREADS`, 0 if none, four to an element. The fast copy of `THREAD_INDEX`. Size set by the
/// loader.
#[map]
pub static SLOTS: Array<[u16; 4]> = Array::with_max_entries(1, 0);

/// Slots that are free. Filled by the loader.
#[map]
pub static FREE_SLOTS: Stack<u32> = Stack::with_max_entries(1, 0);

/// Threads by slot; slot 0 is never used. Size set by the loader.
#[map]
pub static THREADS: Array<ThreadState> = Array::with_max_entries(1, 0);

/// Counts of fast calls by slot. Size set by the loader.
#[map]
pub static COUNT_CACHES: Array<CountCache> = Array::with_max_entries(1, 0);

/// The slot of each recorded tid: decides when two CPUs meet a thread for the first time at once. Size set by the
/// loader.
#[map]
pub static THREAD_INDEX: HashMap<u32, u32> = HashMap::with_max_entries(1, 0);

/// Threads that were blocked before recording began, from user space, until the kernel sees them.
#[map]
pub static SEEDS: HashMap<u32, ThreadState> = HashMap::with_max_entries(16_384, 0);

/// Counts that left a thread's cache.
#[map]
pub static SYSCALL_COUNTS: HashMap<CountKey, CountValue> = HashMap::with_max_entries(32_768, 0);

/// What could not be recorded.
#[map]
pub static LOSSES: PerCpuArray<u64> = PerCpuArray::with_max_entries(LossClass::COUNT, 0);

/// What each CPU is doing.
#[map]
pub static CPUS: PerCpuArray<CpuState> = PerCpuArray::with_max_entries(1, 0);

/// Since when each CPU idles, 0 while it does not (or that was not seen).
#[map]
pub static IDLE_SINCE: Array<u64> = Array::with_max_entries(MOST_CPUS, 0);

/// Since when a thread frees memory. Evicting the oldest replaces a hook on the end of a thread.
#[map]
pub static STALLS: LruHashMap<u32, u64> = LruHashMap::with_max_entries(4_096, 0);

/// Who made a bio, from its queueing to the issue of its request. Evicting the oldest replaces a hook on every end of a
/// bio: a merged bio leaves its entry behind.
#[map]
pub static BIOS: LruHashMap<u64, Submitter> = LruHashMap::with_max_entries(16_384, 0);

/// Requests that the driver has.
#[map]
pub static REQUESTS: HashMap<u64, Request> = HashMap::with_max_entries(16_384, 0);

/// Requests in flight by queue.
#[map]
pub static IN_FLIGHT: HashMap<u64, u64> = HashMap::with_max_entries(4_096, 0);

/// Objects whose path was sent.
#[map]
pub static PATHS_SENT: LruHashMap<PathKey, u8> = LruHashMap::with_max_entries(65_536, 0);

/// Paths sent, the few that a CPU uses at present.
#[map]
pub static PATHS_NEAR: PerCpuArray<PathKey> = PerCpuArray::with_max_entries(path::NEAR, 0);

/// Room for what was read from a target's memory.
#[map]
pub static SCRATCH: PerCpuArray<Scratch> = PerCpuArray::with_max_entries(1, 0);

/// CUDA graphs launched while they were counted, by process.
#[map]
pub static GRAPH_LAUNCHES: HashMap<u32, u64> = HashMap::with_max_entries(4_096, 0);

/// Kernels launched while they were counted, by process.
#[map]
pub static LAUNCHES: HashMap<u32, u64> = HashMap::with_max_entries(4_096, 0);

/// Calls of the CUDA driver that have begun, by thread and function.
#[map]
pub static OPEN_CUDA_CALLS: HashMap<u64, OpenCall> = HashMap::with_max_entries(16_384, 0);

/// Calls of CUPTI by which its clients come and go: process in the upper half, function in the lower.
#[map]
pub static CUPTI_CLIENTS: HashMap<u64, ClientCall> = HashMap::with_max_entries(4_096, 0);

/// Calls that send work to a device, the same.
#[map]
pub static CUDA_CALLS: HashMap<u32, u64> = HashMap::with_max_entries(4_096, 0);

/// The interpreters of processes that run Python, from user space.
#[map]
pub static PYTHON: LruHashMap<u32, PythonProcess> = LruHashMap::with_max_entries(8_192, 0);

/// The `PyThreadState` of each thread, as it was found last. By tid; checked before use.
#[map]
pub static PYTHON_STATES: LruHashMap<u32, u64> = LruHashMap::with_max_entries(16_384, 0);

/// Room for a sample.
#[map]
pub static SAMPLE: PerCpuArray<SampleRecord> = PerCpuArray::with_max_entries(1, 0);
