//! The kernel's memory management.

use super::{Entry, Remedy};

/// Advice for them.
pub const REMEDIES: &[Entry] = &[
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
];
