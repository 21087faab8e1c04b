//! The eBPF programs: which tracepoint each is attached to, since when kernels have it, and what cannot be known without it.

/// One program and where it is attached.
pub struct ProgramSpec {
    /// Its name in the object.
    pub program: &'static str,
    /// The raw tracepoint.
    pub tracepoint: &'static str,
    /// It is detached if this one is missing: an entry without its exit would leave a CPU "in an interrupt".
    pub partner: Option<&'static str>,
    /// Without it nothing can be recorded.
    pub essential: bool,
    /// Codes or families of causes that become unknowable without it.
    pub unknowable: &'static [&'static str],
    /// Processors that have the tracepoint: elsewhere its absence is no loss.
    pub only_on: Option<&'static str>,
    /// The arguments of the tracepoint for which this program is written, where there is a program for others too.
    pub arguments: Option<&'static [&'static str]>,
    /// The first kernel with which it works: that has the tracepoint, with these arguments. None of them works before
    /// [`OLDEST`].
    pub since: (u32, u32),
    /// It only makes better what another program does too: on a kernel without the tracepoint nothing is missing.
    pub supplement: bool,
}

/// The first kernel with all that every program needs: BPF ring buffers came with 5.8, `bpf_get_current_task_btf` and the
/// arguments of the block layer's tracepoints with 5.11.
pub const OLDEST: (u32, u32) = (5, 11);

const fn essential(tracepoint: &'static str) -> ProgramSpec {
    ProgramSpec {
        program: tracepoint,
        tracepoint,
        partner: None,
        essential: true,
        unknowable: &["*"],
        only_on: None,
        arguments: None,
        since: OLDEST,
        supplement: false,
    }
}

const fn optional(tracepoint: &'static str, unknowable: &'static [&'static str]) -> ProgramSpec {
    ProgramSpec { essential: false, unknowable, ..essential(tracepoint) }
}

const fn half(
    tracepoint: &'static str,
    partner: &'static str,
    unknowable: &'static [&'static str],
) -> ProgramSpec {
    ProgramSpec { partner: Some(partner), ..optional(tracepoint, unknowable) }
}

const fn half_on(
    only_on: &'static str,
    tracepoint: &'static str,
    partner: &'static str,
    unknowable: &'static [&'static str],
) -> ProgramSpec {
    ProgramSpec { only_on: Some(only_on), ..half(tracepoint, partner, unknowable) }
}

/// Wake-ups made in these interrupts would be ascribed to the interrupted task.
const IRQ: &[&str] = &["wake edges made in interrupts", "host.irq"];
const TIMER: &[&str] = &["host.sleep", "host.timed_wait"];
const BLOCK: &[&str] = &["storage.*"];
const NET: &[&str] = &["net.*"];
const RECLAIM: &[&str] = &["memory.reclaim"];
const COMPACTION: &[&str] = &["memory.compaction"];

/// Every program, exits before their entries: a half attached alone for a moment then only sees exits, which are
/// harmless.
pub const PROGRAMS: &[ProgramSpec] = &[
    half("irq_handler_exit", "irq_handler_entry", IRQ),
    half("irq_handler_entry", "irq_handler_exit", IRQ),
    half("softirq_exit", "softirq_entry", IRQ),
    half("softirq_entry", "softirq_exit", IRQ),
    half_on("x86_64", "local_timer_exit", "local_timer_entry", TIMER),
    half_on("x86_64", "local_timer_entry", "local_timer_exit", TIMER),
    half_on("x86_64", "reschedule_exit", "reschedule_entry", IRQ),
    half_on("x86_64", "reschedule_entry", "reschedule_exit", IRQ),
    half_on("x86_64", "call_function_exit", "call_function_entry", IRQ),
    half_on("x86_64", "call_function_entry", "call_function_exit", IRQ),
    half_on("x86_64", "call_function_single_exit", "call_function_single_entry", IRQ),
    half_on("x86_64", "call_function_single_entry", "call_function_single_exit", IRQ),
    half_on("x86_64", "irq_work_exit", "irq_work_entry", IRQ),
    half_on("x86_64", "irq_work_entry", "irq_work_exit", IRQ),
    half_on("aarch64", "ipi_exit", "ipi_entry", IRQ),
    half_on("aarch64", "ipi_entry", "ipi_exit", IRQ),
    half("hrtimer_expire_exit", "hrtimer_expire_entry", TIMER),
    half("hrtimer_expire_entry", "hrtimer_expire_exit", TIMER),
    half("timer_expire_exit", "timer_expire_entry", TIMER),
    half("timer_expire_entry", "timer_expire_exit", TIMER),
    optional("block_bio_queue", &["submitter of block requests", "storage.*.queue"]),
    optional("block_split", &["submitter of split block requests"]),
    optional("block_bio_backmerge", &[]),
    optional("block_rq_merge", &[]),
    half("block_rq_complete", "block_rq_issue", BLOCK),
    half("block_rq_issue", "block_rq_complete", BLOCK),
    // The boundary between packets: without it a packet of another kind would be ascribed to the connection that was
    // delivered before it.
    optional("netif_receive_skb", NET),
    half("tcp_probe", "netif_receive_skb", NET),
    half("inet_sock_set_state", "netif_receive_skb", &["net.accept", "net.connect"]),
    optional("tcp_retransmit_skb", &["net.retransmit"]),
    half("mm_vmscan_direct_reclaim_end", "mm_vmscan_direct_reclaim_begin", RECLAIM),
    half("mm_vmscan_direct_reclaim_begin", "mm_vmscan_direct_reclaim_end", RECLAIM),
    half("mm_vmscan_memcg_reclaim_end", "mm_vmscan_memcg_reclaim_begin", RECLAIM),
    half("mm_vmscan_memcg_reclaim_begin", "mm_vmscan_memcg_reclaim_end", RECLAIM),
    half("mm_vmscan_node_reclaim_end", "mm_vmscan_node_reclaim_begin", RECLAIM),
    half("mm_vmscan_node_reclaim_begin", "mm_vmscan_node_reclaim_end", RECLAIM),
    half("mm_compaction_end", "mm_compaction_begin", COMPACTION),
    half("mm_compaction_begin", "mm_compaction_end", COMPACTION),
    optional("balance_dirty_pages", &["storage.write.throttled"]),
    essential("sched_process_fork"),
    optional("sched_process_exec", &["host.exec"]),
    essential("sched_process_exit"),
    essential("sched_waking"),
    essential("sys_exit"),
    essential("sys_enter"),
    ProgramSpec { arguments: Some(SWITCH), since: (5, 18), ..essential("sched_switch") },
    ProgramSpec {
        program: "sched_switch_before_5_18",
        arguments: Some(SWITCH_BEFORE_5_18),
        ..essential("sched_switch")
    },
    ProgramSpec { supplement: true, since: (6, 16), ..optional("sched_exit_tp", &[]) },
];

/// 5.18 and later (5.18.0 alone passes them in another order, and is refused).
const SWITCH: &[&str] = &["bool", "task_struct *", "task_struct *", "unsigned int"];
const SWITCH_BEFORE_5_18: &[&str] = &["bool", "task_struct *", "task_struct *"];
