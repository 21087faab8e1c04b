//! The codes of causes, stages and roles in words.

/// What a cause says, completing "the GPU had nothing to do because …". Codes that are not known (a newer gtrace
/// wrote the bundle) get the words of their family.
#[must_use]
pub fn cause(code: &str) -> &'static str {
    CAUSES
        .iter()
        .filter(|(known, _)| is_prefix(known, code))
        .max_by_key(|(known, _)| known.len())
        .map_or("of a cause that this version has no words for", |(_, words)| words)
}

/// The same as part of a sentence: `because the disk was reading`, `unknown: events were lost here`.
#[must_use]
pub fn because(code: &str) -> String {
    let words = cause(code);
    if is_prefix("unknown", code) { words.to_owned() } else { format!("because {words}") }
}

/// Whether `prefix` is the code or a family that holds it: `storage.read` holds `storage.read.device`.
#[must_use]
pub fn is_prefix(prefix: &str, code: &str) -> bool {
    code.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// What the program was at, in words.
#[must_use]
pub fn stage(code: &str) -> &str {
    match code {
        "data_loading" => "loading data",
        "h2d" => "copying to the GPU",
        "forward_backward" => "forward and backward pass",
        "communication" => "communication",
        "checkpoint" => "writing a checkpoint",
        "serving" => "serving",
        "startup" => "starting up",
        other => other,
    }
}

/// What ended a wait, in words.
#[must_use]
pub fn edge(code: &str) -> &str {
    match code {
        "woken by task" => "until the next one woke it:",
        "block completion" => "until its block request completed:",
        "network receive" => "until the network delivered something:",
        "timer" => "until a timer ran out:",
        "device" => "until the GPU finished:",
        "interrupt" => "until an interrupt came:",
        "created by" => "it was created by:",
        "late rank" => "all waited for this rank; there meanwhile:",
        other => other,
    }
}

/// What a thread does, in words.
#[must_use]
pub fn role(code: &str) -> &str {
    match code {
        "main" => "main thread",
        "launcher" => "launching thread",
        "cuda_driver" => "CUDA driver's thread",
        "tool" => "gtrace",
        "dataloader_worker" => "loader worker",
        "pin_memory" => "pinning thread",
        "checkpoint" => "checkpoint writer",
        "nccl_proxy" => "NCCL proxy",
        "server" => "server",
        "kernel" => "kernel thread",
        other => other,
    }
}

/// Every code of a cause with its words, families first.
pub const CAUSES: &[(&str, &str)] = &[
    ("host", "the host was not ready"),
    ("host.cpu", "a thread computed"),
    ("host.cpu.user", "a thread computed in its own code"),
    ("host.cpu.kernel", "a thread worked inside a system call"),
    ("host.data_loader", "it was in the data loader's iterator"),
    ("host.operator", "it was in an operator of the framework"),
    ("host.python", "it was in a Python function"),
    ("host.marked", "it was in a range that the program marked"),
    ("host.os_call", "it was in a call of the operating system"),
    ("host.runq", "a thread wanted a CPU and got none"),
    ("host.runq.contention", "a thread wanted a CPU that others held"),
    ("host.runq.preempted", "a thread was pushed off its CPU"),
    ("host.runq.throttled", "its CPU quota was used up"),
    ("host.runq.affinity", "its CPU mask is too small while others idle"),
    ("host.runq.oversubscribed", "threads of its own process held the CPUs"),
    ("host.wake_latency", "an idle CPU was slow to wake"),
    ("host.irq", "interrupts took its CPU"),
    ("host.gc", "the interpreter collected garbage"),
    ("host.user", "it waited for a person"),
    ("host.lock", "it waited for a lock"),
    ("host.gil", "it waited for Python's interpreter lock (GIL)"),
    ("host.sleep", "it slept on purpose"),
    ("host.timed_wait", "it let a timed wait run out"),
    ("host.stopped", "it was stopped by a signal or debugger"),
    ("host.ipc", "it waited for a process outside the recording"),
    ("host.exec", "a program was being started"),
    ("host.fork", "a process was being created"),
    ("storage", "storage was slow"),
    ("storage.read", "a read had not come back"),
    ("storage.read.device", "the disk was reading"),
    ("storage.read.queue", "a read waited in the disk's queue"),
    ("storage.read.throttled", "a limit of its control group held a read back"),
    ("storage.write", "a write had not come back"),
    ("storage.write.device", "the disk was writing"),
    ("storage.write.queue", "a write waited in the disk's queue"),
    ("storage.write.throttled", "it wrote faster than the disk, or a limit, takes"),
    ("storage.fsync", "it waited for fsync"),
    ("storage.metadata", "opening, listing or renaming files took long"),
    ("storage.remote", "a network or FUSE file system answered late"),
    ("memory", "the kernel was busy with memory"),
    ("memory.major_fault", "a mapped page had to be read"),
    ("memory.reclaim", "memory had to be freed first"),
    ("memory.compaction", "memory had to be defragmented first"),
    ("memory.swap", "a page had to be swapped in"),
    ("memory.cow", "pages were copied after a fork"),
    ("memory.unmap", "memory was being unmapped"),
    ("net", "the network was slow"),
    ("net.recv", "it waited for a peer's data"),
    ("net.send", "a peer did not take its data"),
    ("net.connect", "it waited for a connection"),
    ("net.accept", "it waited for a client to connect"),
    ("net.dns", "it waited for a name to be looked up"),
    ("net.retransmit", "packets were lost and sent again"),
    ("cuda", "the CUDA driver was busy"),
    ("cuda.launch", "launch calls themselves took the time"),
    ("cuda.sync", "a synchronising call returned late"),
    ("cuda.malloc", "GPU memory was being allocated"),
    ("cuda.free", "GPU memory was being freed"),
    ("cuda.pin", "host memory was being pinned"),
    ("cuda.module_load", "GPU code was being loaded"),
    ("cuda.jit", "GPU code was being compiled"),
    ("cuda.graph_build", "a CUDA graph was being built"),
    ("cuda.init", "a CUDA context was being created"),
    ("cuda.api", "another CUDA call took the time"),
    ("cuda.lock", "the driver's lock was held elsewhere"),
    ("gpu", "the GPU itself was not ready"),
    ("gpu.submit_latency", "work was on its way to the GPU"),
    ("gpu.dependency", "the next work waited for other GPU work"),
    ("gpu.queued", "the work was queued, for no visible reason"),
    ("gpu.other_process", "another process had the GPU"),
    ("gpu.migration", "unified memory was moving"),
    ("tool.overhead", "recording itself took the time"),
    ("copy", "only a copy ran"),
    ("copy.pageable", "only a copy from or to pageable memory ran"),
    ("copy.pinned", "only a copy from or to pinned memory ran"),
    ("copy.d2h_sync", "only a copy back to the host ran, waited for"),
    ("copy.peer", "only a copy between GPUs ran"),
    ("copy.device", "only a copy within the GPU ran"),
    ("copy.memset", "only a memset ran"),
    ("comm", "only communication ran"),
    ("comm.wait_rank", "it waited for a rank that still computed"),
    ("comm.transfer", "data was on the wire"),
    ("comm.init", "a communicator was being set up"),
    ("comm.wait_or_transfer", "it communicated (other ranks not recorded)"),
    ("app", "the GPU was not needed"),
    ("app.no_request", "no client asked for anything"),
    ("app.no_work", "the program had no GPU work"),
    ("unknown", "unknown"),
    ("unknown.lost_events", "unknown: events were lost here"),
    ("unknown.invalid_record", "unknown: CUPTI gave unusable records here"),
    ("unknown.not_recorded_thread", "unknown: it depends on a thread not recorded"),
    ("unknown.not_scheduled", "unknown: it could run, and no CPU came"),
    ("unknown.no_waker", "unknown: no wake-up was seen"),
    ("unknown.interrupt", "unknown: an interrupt of unknown purpose came"),
    ("unknown.no_launch_record", "unknown: the launch call was not seen"),
    ("unknown.before_attach", "unknown: it began before the recording"),
    ("unknown.not_traced", "unknown: the trace says nothing here"),
    ("unknown.depth", "unknown: the chain is too long or circular"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_known_prefix_speaks() {
        assert_eq!(cause("storage.read.device"), "the disk was reading");
        assert_eq!(cause("storage.read.somewhere"), "a read had not come back");
        assert_eq!(cause("storage.ready"), "storage was slow");
        assert_eq!(cause("quantum.tunnel"), "of a cause that this version has no words for");
    }

    #[test]
    fn every_cause_of_the_catalogue_has_words_of_its_own() {
        for cause in crate::attribute::Cause::ALL {
            assert!(CAUSES.iter().any(|(code, _)| *code == cause.code()), "{}", cause.code());
        }
    }

    #[test]
    fn words_fit_the_column() {
        for (code, words) in CAUSES {
            assert!(words.len() <= 48, "{code}: {words}");
        }
    }
}
