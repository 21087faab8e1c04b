//! What the threads of a training or serving job are for: by what they do and whom they wake, with names only to confirm.

use std::collections::{HashMap, HashSet};

use super::system_call::SystemCall;
use super::timeline::{Call, NO_INDEX, ThreadIndex, Timeline, Waker};
use crate::event::Pid;

/// What a thread is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// The first thread of a process that gives a GPU its work.
    Main,
    /// Another thread that launches GPU work.
    Launcher,
    /// Prepares data for a launching thread: another process, or a thread that reads files.
    DataLoaderWorker,
    /// Hands data from workers to a launching thread within its process.
    PinMemory,
    /// Makes data durable, and launches nothing.
    Checkpoint,
    /// Accepts connections.
    Server,
    /// NCCL's proxy.
    NcclProxy,
    /// Of the CUDA driver.
    CudaDriver,
    /// Of gtrace.
    Tool,
    /// Kernel thread.
    Kernel,
}

impl Role {
    /// Its name in the table `threads`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Main => "main",
            Self::Launcher => "launcher",
            Self::DataLoaderWorker => "dataloader_worker",
            Self::PinMemory => "pin_memory",
            Self::Checkpoint => "checkpoint",
            Self::Server => "server",
            Self::NcclProxy => "nccl_proxy",
            Self::CudaDriver => "cuda_driver",
            Self::Tool => "tool",
            Self::Kernel => "kernel",
        }
    }
}

/// The role of each thread, by its place.
#[derive(Clone, Debug, Default)]
pub struct Roles(Vec<Option<Role>>);

impl Roles {
    /// A thread's role.
    #[must_use]
    pub fn get(&self, thread: ThreadIndex) -> Option<Role> {
        self.0.get(thread.0 as usize).copied().flatten()
    }
}

/// What a thread did, summed up.
#[derive(Clone, Copy, Default)]
struct Deeds {
    launches: usize,
    file_reads: usize,
    fsyncs: usize,
    accepts: usize,
}

/// Finds the roles of all threads.
#[must_use]
pub fn find_roles(timeline: &Timeline) -> Roles {
    let deeds = deeds(timeline);
    let wakes = wakes(timeline);
    let gpu_processes: HashSet<Pid> = timeline.ops.iter().map(|op| op.pid).collect();
    let threads = || (0..timeline.threads.len() as u32).map(ThreadIndex);
    let launches = |thread: ThreadIndex| deeds[thread.0 as usize].launches > 0;
    // Who wakes a launching thread, and who wakes those: the two stations of a data loader.
    let feeders: HashSet<ThreadIndex> =
        wakes.iter().filter(|(_, to)| launches(*to)).map(|(from, _)| *from).collect();
    let fed_by_others: HashSet<ThreadIndex> = wakes
        .iter()
        .filter(|(from, to)| timeline.thread(*from).pid != timeline.thread(*to).pid)
        .map(|(_, to)| *to)
        .collect();
    let workers = worker_processes(timeline, &wakes, &gpu_processes);
    let role = |thread: ThreadIndex| {
        let rows = timeline.thread(thread);
        let did = deeds[thread.0 as usize];
        let in_gpu_process = gpu_processes.contains(&rows.pid);
        let name = timeline.names.get(rows.name);
        Some(match () {
            () if rows.is_kernel() => Role::Kernel,
            () if rows.is_driver() => Role::CudaDriver,
            () if rows.is_tool() => Role::Tool,
            () if did.launches > 0 && rows.pid.0 == rows.tid.0 => Role::Main,
            () if did.launches > 0 => Role::Launcher,
            () if in_gpu_process && name.starts_with("NCCL") => Role::NcclProxy,
            () if workers.contains(&rows.pid) => Role::DataLoaderWorker,
            () if did.accepts > 0 => Role::Server,
            () if did.fsyncs > 0 => Role::Checkpoint,
            () if in_gpu_process && feeders.contains(&thread) && fed_by_others.contains(&thread) => {
                Role::PinMemory
            }
            () if in_gpu_process && feeders.contains(&thread) && did.file_reads > 0 => Role::DataLoaderWorker,
            () if in_gpu_process && rows.pid.0 == rows.tid.0 => Role::Main,
            () => return None,
        })
    };
    Roles(threads().map(role).collect())
}

fn deeds(timeline: &Timeline) -> Vec<Deeds> {
    let mut deeds = vec![Deeds::default(); timeline.threads.len()];
    for op in &timeline.ops {
        if op.launch != NO_INDEX {
            deeds[timeline.api[op.launch as usize].thread.0 as usize].launches += 1;
        }
    }
    for (thread, did) in timeline.threads.iter().zip(&mut deeds) {
        for call in &timeline.syscalls[thread.syscalls.clone()] {
            match call.kind {
                SystemCall::Read if is_data(timeline, call) => did.file_reads += 1,
                SystemCall::Fsync => did.fsyncs += 1,
                SystemCall::Accept => did.accepts += 1,
                _ => {}
            }
        }
    }
    deeds
}

/// Whether a call is about a file that may hold data: not the kernel's own files, and not a program's libraries.
fn is_data(timeline: &Timeline, call: &Call) -> bool {
    let path = timeline.names.get(call.object);
    let system = ["/proc/", "/sys/", "/dev/", "/etc/"].iter().any(|folder| path.starts_with(folder));
    timeline.names.get(call.object_kind) == "file" && !system && !path.contains(".so")
}

/// Who woke whom, at least once, from a task's own context or over loopback.
fn wakes(timeline: &Timeline) -> HashSet<(ThreadIndex, ThreadIndex)> {
    let mut wakes = HashSet::new();
    for (index, thread) in timeline.threads.iter().enumerate() {
        for row in &timeline.off_cpu[thread.off_cpu.clone()] {
            if matches!(row.waker, Waker::Task | Waker::Net) && row.waker_thread != NO_INDEX {
                wakes.insert((ThreadIndex(row.waker_thread), ThreadIndex(index as u32)));
            }
        }
    }
    wakes
}

/// Processes that a GPU process made, that use no GPU themselves and that wake threads of it.
fn worker_processes(
    timeline: &Timeline,
    wakes: &HashSet<(ThreadIndex, ThreadIndex)>,
    gpu_processes: &HashSet<Pid>,
) -> HashSet<Pid> {
    let mut woken_processes: HashMap<Pid, HashSet<Pid>> = HashMap::new();
    for (from, to) in wakes {
        woken_processes.entry(timeline.thread(*from).pid).or_default().insert(timeline.thread(*to).pid);
    }
    woken_processes
        .into_iter()
        .filter(|(pid, woken)| {
            !gpu_processes.contains(pid)
                && ancestors(timeline, *pid)
                    .any(|ancestor| woken.contains(&ancestor) && gpu_processes.contains(&ancestor))
        })
        .map(|(pid, _)| pid)
        .collect()
}

/// The processes above `pid`, at most eight of them (a fork server stands between; a longer line is none of a loader's).
fn ancestors(timeline: &Timeline, pid: Pid) -> impl Iterator<Item = Pid> {
    let parent = |pid: Pid| timeline.processes.get(&pid).and_then(|process| process.parent);
    std::iter::successors(parent(pid), move |&pid| parent(pid)).take(8)
}
