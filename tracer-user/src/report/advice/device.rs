//! The device itself, copies, collectives, and what recording costs.

use super::{Entry, Remedy};

/// Advice for them.
pub const REMEDIES: &[Entry] = &[
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
];
