//! Calls of the driver and the runtime.

use super::{Entry, Remedy};

/// Advice for them.
pub const REMEDIES: &[Entry] = &[
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
];
