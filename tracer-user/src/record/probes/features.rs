//! What gtrace reads of the kernel beside its tracepoints, where the kernel has it: fields of its structures, and the
//! addresses of a few of its functions. Each that is missing is a probe that is missing.

use tracer_abi::kernel::{KernelConfig, Offsets};

use crate::store::meta::ProbeStatus;

/// One such reading.
pub struct Feature {
    /// Its name among the probes.
    pub name: &'static str,
    /// What is read for it, in words.
    pub reads: &'static str,
    /// The first kernel that has it.
    pub since: (u32, u32),
    /// Codes or families of causes, or parts of them, that become unknowable without it.
    pub unknowable: &'static [&'static str],
    present: fn(&Offsets, &KernelConfig) -> bool,
}

const fn has(offset: u32) -> bool {
    offset != Offsets::ABSENT
}

/// All of them.
pub const FEATURES: &[Feature] = &[
    Feature {
        name: "cpu_mask",
        reads: "task_struct.cpus_ptr, task_struct.nr_cpus_allowed",
        since: (5, 3),
        unknowable: &["host.runq.affinity"],
        present: |offsets, _| has(offsets.task_cpus_ptr) && has(offsets.task_nr_cpus_allowed),
    },
    Feature {
        name: "direct_io",
        reads: "iomap_dio.iocb, kiocb.ki_filp; the address of iomap_dio_bio_end_io",
        since: (5, 5),
        unknowable: &["files of io_uring's and AIO's direct requests"],
        present: |offsets, config| {
            config.direct_end_io != 0 && has(offsets.iomap_dio_iocb) && has(offsets.kiocb_filp)
        },
    },
    Feature {
        name: "block_throttling",
        reads: "task_struct.worker_private, kthread.data, worker.current_func; the address of blk_throtl_dispatch_work_fn",
        since: (5, 17),
        unknowable: &["storage.read.throttled", "storage.write.throttled by a control group"],
        present: |offsets, config| {
            config.throttle_work != 0
                && has(offsets.task_worker_private)
                && has(offsets.kthread_data)
                && has(offsets.worker_current_func)
        },
    },
    Feature {
        name: "swap_space",
        reads: "bio.bi_end_io; the addresses of end_swap_bio_read and end_swap_bio_write",
        since: (5, 11),
        unknowable: &["memory.swap"],
        present: |offsets, config| config.swap_end_io[0] != 0 && has(offsets.bio_end_io),
    },
];

/// Which of them this kernel has.
pub fn statuses(offsets: &Offsets, config: &KernelConfig) -> Vec<ProbeStatus> {
    FEATURES
        .iter()
        .map(|feature| {
            let attached = (feature.present)(offsets, config);
            let unknowable = if attached { &[] } else { feature.unknowable };
            ProbeStatus {
                name: feature.name.to_owned(),
                attached,
                reason: (!attached)
                    .then(|| format!("this kernel does not have, or does not show: {}", feature.reads)),
                unknowable: unknowable.iter().map(|&code| code.to_owned()).collect(),
            }
        })
        .collect()
}
