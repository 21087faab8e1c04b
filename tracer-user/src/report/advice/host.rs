//! CPUs, locks, sleeping, processes.

use super::{DATA, Entry, Remedy};

/// Advice for them.
pub const REMEDIES: &[Entry] = &[
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
];
