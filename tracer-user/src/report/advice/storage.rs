//! Files and disks.

use super::{CHECKPOINT, DATA, Entry, Remedy};

/// Advice for them.
pub const REMEDIES: &[Entry] = &[
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
];
