//! The catalogue of causes: every code that a segment can carry, what it says, what its object is and what to do about
//! it. A code's meaning never changes; new ones may be added. `docs/causes.md` is made from this file.

/// Declares the causes in the order of the catalogue.
macro_rules! causes {
    ($( $name:ident $code:literal: $sentence:literal, $object:literal, $remedy:literal; )*) => {
        /// Why a GPU had nothing to do for a while.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Cause {
            $( #[doc = $sentence] $name, )*
        }

        impl Cause {
            /// Every cause, in the order of the catalogue.
            pub const ALL: &'static [Self] = &[$( Self::$name, )*];

            /// Its stable dotted code: `storage.read.device`.
            #[must_use]
            pub const fn code(self) -> &'static str {
                match self { $( Self::$name => $code, )* }
            }

            /// What it says, as the rest of "the GPU had nothing to do because …".
            #[must_use]
            pub const fn sentence(self) -> &'static str {
                match self { $( Self::$name => $sentence, )* }
            }

            /// What the segment's `object` holds.
            #[must_use]
            pub const fn object(self) -> &'static str {
                match self { $( Self::$name => $object, )* }
            }

            /// What usually helps.
            #[must_use]
            pub const fn remedy(self) -> &'static str {
                match self { $( Self::$name => $remedy, )* }
            }
        }
    };
}

causes! {
    HostCpuUser "host.cpu.user": "the thread computed in user code", "function that its stack samples were in, else program of the process",
        "Move the work off the thread that feeds the GPU, or give it more workers; profile that thread";
    HostCpuKernel "host.cpu.kernel": "the thread ran inside a system call (copying from the page cache, zeroing pages)",
        "system call and its file", "Fewer, larger calls; keep the data mapped or already decoded";
    HostRunqContention "host.runq.contention": "it wanted a CPU and another process's task had it", "the task that ran",
        "Give the job CPUs of its own (cpuset, CPU request), or move the other process away";
    HostRunqPreempted "host.runq.preempted": "it was taken off its CPU for another process's task", "the task that ran",
        "Give the job CPUs of its own, or lower the other task's priority";
    HostRunqThrottled "host.runq.throttled": "it wanted a CPU, and the CPU idled: its quota was used up", "CPU",
        "Raise or remove the CPU limit (cpu.max, cpu.cfs_quota_us) of its control group";
    HostRunqAffinity "host.runq.affinity": "it wanted a CPU that another task had, while one idled on which it may not run",
        "on how many CPUs it may run", "Widen the CPU mask (taskset, cpuset, an OpenMP runtime that binds threads, one CPU per task in Slurm)";
    HostRunqOversubscribed "host.runq.oversubscribed": "threads of its own process held the CPU",
        "the thread that ran", "Fewer threads per process (OMP_NUM_THREADS, torch.set_num_threads), or more CPUs";
    HostWakeLatency "host.wake_latency": "it was woken, and the CPU was slow to come out of idle", "CPU",
        "Limit deep idle states (intel_idle.max_cstate, cpuidle governor, PM QoS)";
    HostIrq "host.irq": "an interrupt took the CPU from it while it computed", "interrupt",
        "Move interrupts to other CPUs (/proc/irq/*/smp_affinity_list, irqbalance, RPS)";
    HostDataLoader "host.data_loader": "the thread was inside the data loader's iterator (nothing in the trace says whether it \
         prepared the data itself or waited for workers)", "the loader's iterator, or what ran in it",
        "More workers (num_workers), persistent_workers, prefetch_factor, pin_memory; record with gtrace to see what they wait for";
    HostOperator "host.operator": "the thread was inside this operator of the framework (no scheduler data: running and \
         waiting cannot be told apart)", "operator",
        "Fuse or compile small operators (torch.compile, CUDA graphs); record with gtrace to see what it waited for";
    HostPython "host.python": "the thread was inside this Python function, outside any operator (no scheduler data: running \
         and waiting cannot be told apart)", "function",
        "Move the work off the thread that launches; record with gtrace to see what it waited for";
    HostMarked "host.marked": "the thread was inside this range that the program marked (no scheduler data: running and \
         waiting cannot be told apart)", "range", "Record with gtrace, or mark smaller ranges";
    HostOsCall "host.os_call": "the thread was inside this function of the operating system's libraries; what for is not in \
         the trace", "function", "Record with gtrace to see what the call waited for";
    HostUser "host.user": "it waited for a terminal or a person", "terminal", "Run it without asking";
    HostLock "host.lock": "it waited for a lock whose holder could not be followed", "address of the lock, holder",
        "Hold the lock for less time, or split it";
    HostGil "host.gil": "it waited for Python's interpreter lock (GIL), whose holder could not be followed", "the lock",
        "Move the holder's work to another process, or to code that releases the GIL; fewer Python threads beside it";
    HostSleep "host.sleep": "it slept on purpose", "system call", "Wait for the event instead of sleeping";
    HostTimedWait "host.timed_wait": "a wait with a time-out ran out", "what it waited for",
        "Find who should have ended the wait earlier; shorten the time-out";
    HostStopped "host.stopped": "it was stopped by a signal or a debugger", "state", "Let it continue";
    HostIpc "host.ipc": "it waited for a process outside the recording", "that process, or the channel",
        "Record that process too: attach to the parent of both";
    HostExec "host.exec": "a program was being started", "program",
        "Keep processes alive over steps and epochs (persistent workers)";
    HostFork "host.fork": "a process or thread was being created", "system call",
        "Keep processes alive over steps and epochs (persistent workers)";
    StorageReadDevice "storage.read.device": "the block device was reading for it", "file",
        "Faster storage, larger sequential reads, read-ahead, more workers, or keep the data in memory";
    StorageReadQueue "storage.read.queue": "its read waited behind other requests", "whose requests were in service",
        "Move the other I/O to another device or to another time";
    StorageReadThrottled "storage.read.throttled": "a limit of its control group held its read back", "file",
        "Raise or remove the limit (io.max, blkio.throttle.*)";
    StorageWriteDevice "storage.write.device": "the block device was writing for it", "file",
        "Write asynchronously, to faster storage, or less often";
    StorageWriteQueue "storage.write.queue": "its write waited behind other requests",
        "whose requests were in service", "Move the other I/O to another device or to another time";
    StorageWriteThrottled "storage.write.throttled": "it wrote faster than the disk takes, and was made to wait (too many dirty \
         pages), or a limit of its control group held its write back", "file",
        "Write less at once or to faster storage; vm.dirty_ratio, vm.dirty_bytes; io.max, blkio.throttle.*";
    StorageFsync "storage.fsync": "it waited for data to be durable (fsync, journal commit)", "file",
        "Save checkpoints from a background process; sync less often";
    StorageMetadata "storage.metadata": "opening, listing or removing files waited", "path",
        "Fewer and larger files (shards); keep directories warm";
    StorageRemote "storage.remote": "a network or user-space file system answered late", "path",
        "Stage the data on a local disk; ask the file system's server";
    MemoryMajorFault "memory.major_fault": "a page of a mapped file had to be read", "file",
        "Read ahead (madvise), read the file in large pieces, or keep it in memory";
    MemoryReclaim "memory.reclaim": "memory had to be freed first", "whose memory was short",
        "Use less memory, or raise the limit of the control group (memory.high, memory.max); vm.min_free_kbytes for headroom";
    MemoryCompaction "memory.compaction": "pages had to be moved first, so that a large one could be had", "large pages",
        "transparent_hugepage/defrag=defer or madvise; reserve huge pages at boot";
    MemorySwap "memory.swap": "its memory had to be read back from swap space", "device",
        "Use less memory; vm.swappiness, or no swap for this job";
    MemoryUnmap "memory.unmap": "memory was being unmapped", "system call", "Reuse buffers";
    NetRecv "net.recv": "it waited for data from a peer", "peer", "Look at the peer and the path to it; prefetch";
    NetSend "net.send": "it waited for room to send to a peer", "peer", "The peer reads too slowly, or the path is full";
    NetConnect "net.connect": "it waited for a connection", "peer", "Keep connections open";
    NetAccept "net.accept": "it waited for somebody to connect", "listener", "Look at the one who should connect";
    NetDns "net.dns": "it waited for a name to be looked up", "server", "Cache names; look them up once";
    NetRetransmit "net.retransmit": "it waited for a peer, and this machine had to send to it again meanwhile", "peer",
        "Look for loss on the path to the peer (ethtool -S, nstat -az TcpRetransSegs)";
    CudaLaunch "cuda.launch": "the launch calls themselves took the time", "CUDA call",
        "Fewer, larger kernels: fusion, CUDA graphs, larger batches";
    CudaSync "cuda.sync": "a synchronising call had not yet returned though the GPU was done", "CUDA call",
        "Synchronise less often: no .item(), no device-to-host copies in every step";
    CudaMalloc "cuda.malloc": "device memory was being allocated", "CUDA call", "Use a caching or pooled allocator";
    CudaFree "cuda.free": "device memory was being freed", "CUDA call", "Use a caching or pooled allocator";
    CudaPin "cuda.pin": "host memory was being pinned or unpinned", "CUDA call", "Pin buffers once and reuse them";
    CudaModuleLoad "cuda.module_load": "kernels were being loaded", "CUDA call",
        "Warm up before the measured part; CUDA_MODULE_LOADING=EAGER if it comes late";
    CudaJit "cuda.jit": "kernels were being compiled", "CUDA call", "Ship code for this GPU; keep the compile cache";
    CudaGraphBuild "cuda.graph_build": "a CUDA graph was being captured or instantiated", "CUDA call",
        "Capture once per shape and reuse it";
    CudaInit "cuda.init": "the driver or a context was being set up", "CUDA call", "Once per process, not per task";
    CudaApi "cuda.api": "another CUDA call took the time", "CUDA call", "See what the call is for";
    CudaLock "cuda.lock": "another thread held a lock of the driver", "holder",
        "Fewer threads in the driver at a time; look for monitoring that polls it";
    GpuSubmitLatency "gpu.submit_latency": "the work was submitted and on its way to the device", "op",
        "Submit earlier: keep several launches queued; CUDA graphs for many small kernels";
    GpuDependency "gpu.dependency": "the work was queued behind another op, an event or a host function", "that op",
        "Look at what it waits for; other streams could run meanwhile";
    GpuQueued "gpu.queued": "the work was queued and the device did not start it, for no visible reason", "op",
        "Look for other users of the GPU";
    GpuOtherProcess "gpu.other_process": "the device changed over from another process's work", "that process",
        "One process per GPU, or MPS";
    GpuMigration "gpu.migration": "pages of unified memory were moving", "direction, bytes, bandwidth",
        "Prefetch them (cudaMemPrefetchAsync), advise where they live, or copy explicitly";
    ToolOverhead "tool.overhead": "gtrace or CUPTI itself took the time", "kind", "Record less, or for a shorter time";
    CopyPageable "copy.pageable": "a copy from or to pageable host memory ran alone", "copy, bytes, bandwidth",
        "Pin the host buffer and copy asynchronously (pin_memory=True, non_blocking=True)";
    CopyPinned "copy.pinned": "a copy from or to pinned host memory ran alone", "copy, bytes, bandwidth",
        "Overlap it with compute on another stream; copy less";
    CopyPeer "copy.peer": "a copy between GPUs ran alone", "copy, bytes, bandwidth", "Overlap it with compute";
    CopyDevice "copy.device": "a copy within the device ran alone", "copy, bytes, bandwidth", "Avoid the copy";
    CopyMemset "copy.memset": "memory was being set, and nothing else ran", "bytes", "Avoid the memset, or fuse it";
    CommWaitRank "comm.wait_rank": "a collective waited for a late rank whose GPU was still at work", "rank, its kernel",
        "Give the ranks equal work: batch sizes, sequence lengths, experts, pipeline stages";
    CommTransfer "comm.transfer": "all ranks were there, and their data was moving", "collective",
        "Overlap it with compute; send less (gradient accumulation, compression); look at the links";
    CommInit "comm.init": "a communicator was being set up", "call", "Make communicators once, before the first step";
    CommWaitOrTransfer "comm.wait_or_transfer": "a collective ran alone; not all ranks are recorded, so waiting for a \
         late rank and moving data cannot be told apart", "collective", "Record all ranks";
    AppNoRequest "app.no_request": "a server waited for a request", "listener", "Nothing: there was nothing to do";
    AppNoWork "app.no_work": "the program had ended or not begun its GPU work", "", "Nothing";
    UnknownLostEvents "unknown.lost_events": "events were lost in this time", "source",
        "Larger buffers, fewer probes; see the losses";
    UnknownInvalidRecord "unknown.invalid_record": "the GPU's own records of this time are invalid", "what is wrong",
        "Update CUPTI or the driver";
    UnknownNotRecordedThread "unknown.not_recorded_thread": "the thread responsible is not in the recording", "thread",
        "Attach to the root of the process tree";
    UnknownNotScheduled "unknown.not_scheduled": "it could run and the CPU idled for long, and no quota held it back", "CPU",
        "On a virtual machine look at its steal time; see which probes are missing";
    UnknownNoWaker "unknown.no_waker": "nobody was seen ending the wait", "system call", "See which probes are missing";
    UnknownInterrupt "unknown.interrupt": "an interrupt of unknown purpose ended the wait", "interrupt",
        "Report it: the interrupt's source can be taught to gtrace";
    UnknownNoLaunchRecord "unknown.no_launch_record": "the call that launched the work is not in the recording", "op",
        "Turn on API records; see the losses";
    UnknownBeforeAttach "unknown.before_attach": "it began before the recording did", "op or thread",
        "Record for longer";
    UnknownNotTraced "unknown.not_traced": "the trace says nothing of the launching thread in this time, and it has no \
         scheduler data", "thread, or the wide range around it",
        "Record with gtrace; or profile with_stack=True and with record_function around what the program does";
    UnknownDepth "unknown.depth": "the chain of waits closed in a circle or was longer than 32 hops", "thread",
        "Look at the chain shown";
}

impl Cause {
    /// The first part of its code, by which reports group: `storage`.
    #[must_use]
    pub fn family(self) -> &'static str {
        let code = self.code();
        code.split_once('.').map_or(code, |(family, _)| family)
    }

    /// Whether it says that the cause is not known.
    #[must_use]
    pub fn is_unknown(self) -> bool {
        self.family() == "unknown"
    }

    /// The cause with this code.
    #[must_use]
    pub fn from_code(code: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|cause| cause.code() == code)
    }
}

/// The catalogue as the page `docs/causes.md`.
#[must_use]
pub fn catalogue_markdown() -> String {
    use std::fmt::Write as _;

    let mut page = String::from(
        "# Causes\n\n\
         Every nanosecond in which a GPU did no compute has exactly one of these codes. The first part of a code is \
         the family by which reports group. A code's meaning never changes; new ones may be added.\n\n\
         This page is made from `tracer-user/src/attribute/cause.rs`; a test keeps the two the same.\n",
    );
    let mut family = "";
    for cause in Cause::ALL {
        if cause.family() != family {
            family = cause.family();
            let _ = write!(
                page,
                "\n## {family}\n\n| code | the GPU had nothing to do because … | object | what to do |\n|---|---|---|---|\n"
            );
        }
        let _ = writeln!(
            page,
            "| `{}` | {} | {} | {} |",
            cause.code(),
            cause.sentence(),
            cause.object(),
            cause.remedy()
        );
    }
    page
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn codes_are_unique_and_found_again() {
        let codes: HashSet<_> = Cause::ALL.iter().map(|cause| cause.code()).collect();
        assert_eq!(codes.len(), Cause::ALL.len());
        for cause in Cause::ALL {
            assert_eq!(Cause::from_code(cause.code()), Some(*cause));
            assert!(cause.code().contains('.'), "{} has no family", cause.code());
        }
        assert_eq!(Cause::from_code("host.nothing"), None);
    }

    #[test]
    fn families_are_contiguous() {
        let mut seen = HashSet::new();
        let mut last = "";
        for cause in Cause::ALL {
            if cause.family() != last {
                last = cause.family();
                assert!(seen.insert(last), "family {last} is split");
            }
        }
    }

    /// Write the page anew with `UPDATE_DOCS=1 cargo test -p gtrace causes_page`.
    #[test]
    fn causes_page_is_current() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/causes.md");
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(path, catalogue_markdown()).expect("docs/causes.md is writable");
        }
        let page = std::fs::read_to_string(path).expect("docs/causes.md is there");
        assert!(page == catalogue_markdown(), "docs/causes.md is stale: run with UPDATE_DOCS=1");
    }
}
