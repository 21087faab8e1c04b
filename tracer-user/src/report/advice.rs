//! What to change for a cause, and the experiment that would show the advice to be wrong.

use super::wording::is_prefix;

/// Advice for a cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remedy {
    /// What to change, the most promising first.
    pub change: &'static [&'static str],
    /// The experiment that would show it to be wrong.
    pub disproof: &'static str,
}

/// The advice for `cause` while the program was at `stage`. `None`: there is nothing to change (unknown causes have
/// their remedies in the trust section).
#[must_use]
pub fn for_cause(cause: &str, stage: &str) -> Option<Remedy> {
    REMEDIES
        .iter()
        .filter(|(code, only, _)| is_prefix(code, cause) && only.is_none_or(|only| only == stage))
        .max_by_key(|(code, only, _)| (code.len(), only.is_some()))
        .map(|(_, _, remedy)| *remedy)
}

/// What makes unknown time known in the next recording.
#[must_use]
pub fn for_unknown(cause: &str) -> &'static str {
    match cause {
        "unknown.lost_events" => {
            "record again for a shorter time or with less beside it, so that no event is lost"
        }
        "unknown.invalid_record" => {
            "use another version of CUPTI: this one gives records that cannot be right"
        }
        "unknown.not_recorded_thread" => {
            "record the root of the process tree that all parts belong to, so that every thread is seen"
        }
        "unknown.not_scheduled" => {
            "look at the machine's steal time (column st of vmstat): a virtual CPU may have been late"
        }
        "unknown.no_waker" | "unknown.interrupt" => {
            "see below which probes are missing; `gtrace doctor` says how to get them"
        }
        "unknown.no_launch_record" | "unknown.before_attach" => {
            "record for longer, or from the start with `gtrace run`: these began before the recording did"
        }
        "unknown.depth" => "look at the chain with `gtrace explain`",
        _ => "look at one of these gaps with `gtrace explain`",
    }
}

/// The advice for gaps before which a synchronising call had drained the launch queue.
pub const ENABLER: Remedy = Remedy {
    change: &[
        "synchronise less often: keep losses and metrics on the GPU and read them (.item(), .cpu(), print) every N steps",
        "copy results back with non_blocking=True and look at them a step later",
        "wait for an event of the step before (torch.cuda.Event) instead of the whole stream",
    ],
    disproof: "leave the call out for a few steps: if the gaps stay as long, the host needs that time anyway",
};

const DATA: Option<&str> = Some("data_loading");
const CHECKPOINT: Option<&str> = Some("checkpoint");

/// Advice by code (or family) and stage; the longest code wins, then the one for the stage.
const REMEDIES: &[(&str, Option<&str>, Remedy)] = &[
    (
        "storage.read",
        None,
        Remedy {
            change: &[
                "read ahead of need, so that the disk works while the GPU computes (posix_fadvise WILLNEED, a prefetch thread)",
                "keep the files nearer: a local NVMe copy, or memory enough for the page cache to hold them",
                "read fewer and larger pieces: pack small files into shards, raise the device's read-ahead (blockdev --setra)",
            ],
            disproof: "read the files once beforehand (cat FILES >/dev/null) and run again: if the waiting stays, it was not the disk",
        },
    ),
    (
        "storage.read",
        DATA,
        Remedy {
            change: &[
                "overlap: raise the DataLoader's prefetch_factor and num_workers, so that reads of later batches run while the GPU computes",
                "keep the files nearer: a local NVMe copy, or memory enough for the page cache to hold the data set",
                "read fewer and larger pieces: pack small files into shards (tar, WebDataset, Parquet), raise read-ahead (blockdev --setra)",
            ],
            disproof: "read the files once beforehand (cat FILES >/dev/null) and run again: if the waiting stays, it was not the disk",
        },
    ),
    (
        "storage.read.throttled",
        None,
        Remedy {
            change: &["raise the control group's limit (io.max, or blkio.throttle.* on cgroup v1)"],
            disproof: "lift the limit for one run: if the waiting stays, it was not the limit",
        },
    ),
    (
        "storage.write",
        None,
        Remedy {
            change: &[
                "write in a background thread or process, not in the one that launches GPU work",
                "write less, or to a faster device; check vm.dirty_background_ratio and vm.dirty_ratio",
            ],
            disproof: "write to /dev/shm for one run: if the waiting stays, it was not the disk",
        },
    ),
    (
        "storage.write",
        CHECKPOINT,
        Remedy {
            change: &[
                "save asynchronously (torch.distributed.checkpoint.async_save, or copy to pinned memory and write in a thread)",
                "checkpoint less often, or to a faster local device and move the file later",
            ],
            disproof: "write the checkpoint to /dev/shm for one run: if the dip stays, it was not the disk",
        },
    ),
    (
        "storage.write.throttled",
        None,
        Remedy {
            change: &[
                "write less at once, or to a faster device: what is written waits until the disk has taken enough of it",
                "allow more dirty pages (vm.dirty_ratio, vm.dirty_bytes) or more of the control group's memory; raise io.max",
            ],
            disproof: "write to /dev/shm for one run: if the waiting stays, it was not the disk",
        },
    ),
    (
        "storage.fsync",
        None,
        Remedy {
            change: &[
                "move fsync off the thread that launches GPU work (save asynchronously)",
                "fsync once at the end instead of after every file",
            ],
            disproof: "write to /dev/shm for one run (fsync is free there): if the waiting stays, it was not fsync",
        },
    ),
    (
        "storage.metadata",
        None,
        Remedy {
            change: &[
                "open fewer files: pack them into shards, keep them open, cache directory listings",
                "on a network file system, copy the data set to a local disk first",
            ],
            disproof: "run a second time with warm directory caches: if the waiting stays, it was not the look-ups",
        },
    ),
    (
        "storage.remote",
        None,
        Remedy {
            change: &[
                "copy the data set to a local disk, or cache it there (fscache, a FUSE cache)",
                "have more reads in flight: num_workers, prefetch_factor, larger rsize",
            ],
            disproof: "run once from a local copy: if the waiting stays, it was not the remote file system",
        },
    ),
    (
        "host.cpu.user",
        None,
        Remedy {
            change: &[
                "take work off the thread that launches GPU work, or out of the step",
                "launch more with less: torch.compile, CUDA graphs (mode=\"reduce-overhead\"), larger batches, fused optimisers",
            ],
            disproof: "run the step on one fixed batch with logging and metrics off: if the gaps stay, the time is in the framework's own launching",
        },
    ),
    (
        "host.cpu.user",
        DATA,
        Remedy {
            change: &[
                "spread it: raise num_workers while CPUs are free, keep persistent_workers=True",
                "do less per sample: faster decoding (libjpeg-turbo, torchvision.io, DALI on the GPU), smaller stored images, offline pre-processing",
                "buffer more: prefetch_factor evens out slow samples",
            ],
            disproof: "have the data set return one ready-made sample: if the GPU still waits, decoding was not it",
        },
    ),
    (
        "host.data_loader",
        None,
        Remedy {
            change: &[
                "load in parallel and ahead: raise num_workers, prefetch_factor, keep persistent_workers=True, pin_memory=True",
                "see what the loader waits for: `gtrace run` follows its workers to the file, the decoding or the lock",
            ],
            disproof: "have the data set return one ready-made batch: if the GPU still waits, the loader was not it",
        },
    ),
    (
        "host.operator",
        None,
        Remedy {
            change: &[
                "launch more with less: torch.compile, CUDA graphs (mode=\"reduce-overhead\"), larger batches, fused optimisers",
                "a profiler makes each operator slower: measure the step without one before you change anything",
            ],
            disproof: "run the step from a CUDA graph: if the gaps stay, the time is not in launching operators",
        },
    ),
    (
        "host.python",
        None,
        Remedy {
            change: &[
                "take the work of this function off the thread that launches GPU work, or out of the step",
                "see whether it computed or waited: `gtrace run` records the scheduler, the trace has nothing of it",
            ],
            disproof: "leave the function out for some steps: if the gaps stay, it was not it",
        },
    ),
    (
        "host.marked",
        None,
        Remedy {
            change: &["see what the thread did in this range: `gtrace run`, or the profiler with_stack=True"],
            disproof: "mark its parts: if the gap lies outside all of them, the range says nothing",
        },
    ),
    (
        "host.os_call",
        None,
        Remedy {
            change: &[
                "see what the call was for: `gtrace run` records its file, peer or lock, and who ended the wait",
            ],
            disproof: "look at the call's stack in the profiler: if it belongs to another phase, it is not the cause",
        },
    ),
    (
        "host.cpu.kernel",
        None,
        Remedy {
            change: &[
                "copy less through the kernel: larger reads, mmap or O_DIRECT for big files, fewer small system calls",
                "spread it over more workers (num_workers), so that it overlaps the GPU's work",
            ],
            disproof: "count the calls (table syscalls, syscall_counts): if few bytes and few calls are behind it, look at page faults instead",
        },
    ),
    (
        "host.runq",
        None,
        Remedy {
            change: &[
                "give the job CPUs of its own (cpuset, taskset, a larger CPU request) or move the competitor elsewhere",
                "do not start more busy threads than CPUs: num_workers, OMP_NUM_THREADS, torch.set_num_threads",
            ],
            disproof: "stop the competitor named here for a minute: if the waiting stays, it was not for the CPU",
        },
    ),
    (
        "host.runq.throttled",
        None,
        Remedy {
            change: &[
                "raise or remove the CPU limit of the control group (cpu.max; resources.limits.cpu in Kubernetes)",
                "run fewer threads, so that the quota lasts through the period (OMP_NUM_THREADS, num_workers)",
            ],
            disproof: "compare nr_throttled in the group's cpu.stat before and after: if it stands still, it was not the quota",
        },
    ),
    (
        "host.runq.affinity",
        None,
        Remedy {
            change: &[
                "widen the CPU mask (taskset -p, srun --cpus-per-task, KMP_AFFINITY, os.sched_setaffinity in worker_init_fn)",
            ],
            disproof: "look at Cpus_allowed_list in /proc/PID/status: if it holds all CPUs, it was not the mask",
        },
    ),
    (
        "host.runq.oversubscribed",
        None,
        Remedy {
            change: &[
                "limit threads per process: OMP_NUM_THREADS=1 and torch.set_num_threads(1) in each worker, fewer num_workers",
            ],
            disproof: "run once with OMP_NUM_THREADS=1: if the waiting stays, it was not its own threads",
        },
    ),
    (
        "host.wake_latency",
        None,
        Remedy {
            change: &[
                "forbid deep idle states: cpupower idle-set -D 20, or hold /dev/cpu_dma_latency open at 0",
            ],
            disproof: "run once with idle=poll or a busy loop of low priority on each CPU: if it stays, it was not the idle states",
        },
    ),
    (
        "host.irq",
        None,
        Remedy {
            change: &["move interrupts to other CPUs (/proc/irq/*/smp_affinity_list, irqbalance, RPS)"],
            disproof: "pin the launching thread to another CPU: if it stays, it was not these interrupts",
        },
    ),
    (
        "host.gc",
        None,
        Remedy {
            change: &[
                "gc.freeze() after set-up, gc.disable() and gc.collect() by hand between steps, at the same step on every rank",
            ],
            disproof: "run once with gc.disable(): if the pauses stay, it was not the collector",
        },
    ),
    (
        "host.lock",
        None,
        Remedy {
            change: &[
                "hold the lock for less (see the holder in `gtrace explain`), or split it",
                "move the holder's work off the step's path",
            ],
            disproof: "see in `gtrace explain` what the holder did meanwhile: if it only waited itself, its own wait is the cause",
        },
    ),
    (
        "host.gil",
        None,
        Remedy {
            change: &[
                "move the holder's work into another process (multiprocessing) or into code that releases the GIL",
                "use fewer Python threads beside the one that launches GPU work",
            ],
            disproof: "stop the holding thread's work for a run: if the waiting stays, it was not the GIL",
        },
    ),
    (
        "host.sleep",
        None,
        Remedy {
            change: &[
                "replace the sleep by waiting for what it is meant for (a condition variable, a queue, an event)",
                "shorten the polling interval",
            ],
            disproof: "set the sleep to 0 for a run: if the gaps stay, something else needs that time",
        },
    ),
    (
        "host.timed_wait",
        None,
        Remedy {
            change: &[
                "find out why nothing arrived before the time-out ran out; wait for the event itself, not for the clock",
            ],
            disproof: "halve the time-out: if the gaps keep their length, it was not the time-out",
        },
    ),
    (
        "host.ipc",
        None,
        Remedy {
            change: &[
                "record that process as well (gtrace follows the whole tree of its root), then its own cause shows",
            ],
            disproof: "replace the other process by one that answers at once: if the waiting stays, it was not that process",
        },
    ),
    (
        "host.exec",
        None,
        Remedy {
            change: &[
                "start helper processes once and keep them (persistent_workers=True, a server instead of a command per step)",
            ],
            disproof: "leave the helper out for a run: if the gaps stay, it was not its start",
        },
    ),
    (
        "host.fork",
        None,
        Remedy {
            change: &[
                "create workers once (persistent_workers=True); fork before the process has grown, or use spawn or forkserver",
            ],
            disproof: "compare the first steps of an epoch with later ones: if both have these gaps, it is not worker creation",
        },
    ),
    (
        "memory.major_fault",
        None,
        Remedy {
            change: &[
                "read mapped files ahead (madvise WILLNEED or MAP_POPULATE, a warm-up pass) or with read instead of mmap",
            ],
            disproof: "run again with the files in the page cache: if the faults stay, memory is too small to hold them",
        },
    ),
    (
        "memory",
        None,
        Remedy {
            change: &[
                "leave the kernel more free memory: fewer workers, smaller buffers, a higher memory limit, vm.min_free_kbytes",
                "for compaction: transparent_hugepage/defrag=madvise",
            ],
            disproof: "watch /proc/pressure/memory meanwhile: if it stays at 0, it was not memory",
        },
    ),
    (
        "net.accept",
        None,
        Remedy {
            change: &["nothing, if the server is meant to be idle; else send it more requests at a time"],
            disproof: "look at the clients: if requests were waiting there, the server is not the idle one",
        },
    ),
    (
        "net.dns",
        None,
        Remedy {
            change: &["cache look-ups (nscd, systemd-resolved) or keep connections open"],
            disproof: "put the name into /etc/hosts: if the waiting stays, it was not the look-up",
        },
    ),
    (
        "net.retransmit",
        None,
        Remedy {
            change: &[
                "look for loss on the path: nstat -az TcpRetransSegs, ethtool -S on both ends and on the switch, ss -ti to the peer",
            ],
            disproof: "ping the peer with the same size of packets: if none is lost and none is late, the peer itself answers late",
        },
    ),
    (
        "net",
        None,
        Remedy {
            change: &[
                "ask earlier: prefetch, more requests in flight, more connections",
                "cache what the peer sends, or move it nearer; look at the peer's own load",
            ],
            disproof: "ask the same peer from another program meanwhile (curl, iperf3): if it answers fast, the wait is in this program",
        },
    ),
    (
        "cuda.launch",
        None,
        Remedy {
            change: &[
                "launch less: CUDA graphs, torch.compile(mode=\"reduce-overhead\"), fused kernels, larger batches",
            ],
            disproof: "double the batch size: if the gaps between kernels grow with it, launching was not the limit",
        },
    ),
    (
        "cuda.sync",
        None,
        Remedy {
            change: &[
                "wait by spinning where latency counts (cudaDeviceScheduleSpin), or synchronise less often",
            ],
            disproof: "leave the call out for a few steps: if the gaps stay, it was not the synchronisation",
        },
    ),
    (
        "cuda.malloc",
        None,
        Remedy {
            change: &[
                "allocate once and reuse: a caching allocator, PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, no empty_cache() in the loop",
            ],
            disproof: "count the calls per step (table cuda_api): if there are none in steady state, these gaps are warm-up",
        },
    ),
    (
        "cuda.free",
        None,
        Remedy {
            change: &[
                "free outside the loop, or asynchronously (cudaFreeAsync); no empty_cache() in the loop",
            ],
            disproof: "count the calls per step (table cuda_api): if there are none in steady state, these gaps are the end of the program",
        },
    ),
    (
        "cuda.pin",
        None,
        Remedy {
            change: &[
                "pin buffers once and reuse them (pin_memory=True with persistent_workers=True, a pool of pinned buffers)",
            ],
            disproof: "run with pin_memory=False: if the gaps stay, it was not pinning",
        },
    ),
    (
        "cuda.module_load",
        None,
        Remedy {
            change: &["load code before it is needed: a warm-up step, CUDA_MODULE_LOADING=EAGER"],
            disproof: "look at later steps: if the same kernels load no more, this is warm-up",
        },
    ),
    (
        "cuda.jit",
        None,
        Remedy {
            change: &[
                "ship code for this GPU's architecture, keep the compile cache (CUDA_CACHE_PATH, TORCHINDUCTOR_CACHE_DIR), avoid changing shapes (mark_dynamic, padding)",
            ],
            disproof: "run a second time with the cache kept: if it compiles again, the cache is not found",
        },
    ),
    (
        "cuda.graph_build",
        None,
        Remedy {
            change: &["capture graphs before the measured part, for few shapes, and reuse them"],
            disproof: "look at later steps: if no graph is built there, this is warm-up",
        },
    ),
    (
        "cuda.init",
        None,
        Remedy {
            change: &[
                "nothing in the loop: this is start-up; keep the process (and nvidia-persistenced) running",
            ],
            disproof: "look at later steps: if contexts are created there, some helper process makes them",
        },
    ),
    (
        "cuda.api",
        None,
        Remedy {
            change: &["see which call it is (above) and whether the loop needs it"],
            disproof: "leave the call out for a few steps: if the gaps stay, it was not that call",
        },
    ),
    (
        "cuda.lock",
        None,
        Remedy {
            change: &[
                "make the holder poll less often (nvidia-smi, DCGM exporters), or launch from one thread",
            ],
            disproof: "stop the holder for a minute: if the waiting stays, it was not its lock",
        },
    ),
    (
        "gpu.submit_latency",
        None,
        Remedy {
            change: &[
                "queue work ahead of the GPU (fewer synchronisations), or launch more at once: CUDA graphs, larger kernels",
            ],
            disproof: "compare with the latency of an empty kernel on this machine: if that is as long, it cannot be shortened, only hidden",
        },
    ),
    (
        "gpu.dependency",
        None,
        Remedy {
            change: &[
                "let independent work run on other streams, or shorten the op that is waited for (see its name)",
            ],
            disproof: "take the event or stream wait out (results aside): if the gap stays, it was not the dependency",
        },
    ),
    (
        "gpu.other_process",
        None,
        Remedy {
            change: &["give the job a GPU of its own, or share it with MPS or MIG instead of time slices"],
            disproof: "stop the other process for a minute: if the gaps stay, it was not that process",
        },
    ),
    (
        "gpu.migration",
        None,
        Remedy {
            change: &["prefetch managed memory (cudaMemPrefetchAsync, cudaMemAdvise) or use explicit copies"],
            disproof: "use cudaMalloc for that buffer: if the gaps stay, it was not migration",
        },
    ),
    (
        "copy.pageable",
        None,
        Remedy {
            change: &[
                "copy from pinned memory: pin_memory=True in the DataLoader and .to(device, non_blocking=True)",
                "copy the next batch on a stream of its own while this one computes",
                "copy less: send uint8 and convert on the GPU",
            ],
            disproof: "pin the buffer for one run: if the copy keeps its GB/s, the link is the limit",
        },
    ),
    (
        "copy",
        None,
        Remedy {
            change: &[
                "overlap: copy the next batch on a stream of its own while this one computes (non_blocking=True, a prefetcher)",
                "copy less: send uint8 and convert on the GPU, keep what is used again on the GPU",
            ],
            disproof: "run with the batch already on the GPU: if the steps get no faster, copying was not it",
        },
    ),
    (
        "comm.wait_rank",
        None,
        Remedy {
            change: &[
                "give the ranks equal work: batches of equal size and sequence length, equal shards, experts, pipeline stages",
                "let fewer steps wait for each other (gradient accumulation, local steps)",
            ],
            disproof: "give all ranks the same batch: if the same rank stays late, look at its GPU's clocks and its neighbours",
        },
    ),
    (
        "comm.init",
        None,
        Remedy {
            change: &["make communicators once, before the first step, and keep them"],
            disproof: "count the calls: if there is one a run, it does not matter",
        },
    ),
    (
        "comm",
        None,
        Remedy {
            change: &[
                "overlap communication with the backward pass (DDP buckets, FSDP prefetch)",
                "record all ranks: a late rank has its own cause",
            ],
            disproof: "run on one rank: if the gaps stay, it was not communication",
        },
    ),
    (
        "tool.overhead",
        None,
        Remedy {
            change: &["record a shorter time; these gaps are not there without the recording"],
            disproof: "compare steps per second with and without gtrace",
        },
    ),
    (
        "app.no_request",
        None,
        Remedy {
            change: &[
                "nothing in this program: the GPU was not asked for. Send more requests at a time, or put several models on one GPU",
            ],
            disproof: "look at the clients: if requests were waiting there, the server is not the idle one",
        },
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::wording::CAUSES;

    #[test]
    fn the_stage_and_the_longest_code_win() {
        let read = for_cause("storage.read.device", "data_loading").expect("there is advice");
        assert!(read.change[0].contains("num_workers"));
        let other = for_cause("storage.read.device", "other").expect("there is advice");
        assert!(!other.change[0].contains("num_workers"));
        let limit = for_cause("storage.read.throttled", "data_loading").expect("there is advice");
        assert!(limit.change[0].contains("io.max"));
    }

    #[test]
    fn every_cause_that_somebody_can_change_has_advice() {
        let without = ["gpu.queued", "app.no_work", "host.user", "host.stopped"];
        for (code, _) in CAUSES {
            let family = !code.contains('.') || ["host.cpu"].contains(code);
            if family || code.starts_with("unknown") || without.contains(code) {
                continue;
            }
            assert!(for_cause(code, "other").is_some(), "{code}");
        }
    }

    #[test]
    fn every_remedy_can_be_disproved() {
        for (code, _, remedy) in REMEDIES {
            assert!(!remedy.change.is_empty() && !remedy.disproof.is_empty(), "{code}");
        }
    }
}
