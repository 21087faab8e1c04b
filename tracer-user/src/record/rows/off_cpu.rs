//! Rows of `off_cpu`.

use tracer_abi::kernel::{OffCpuRecord, THREAD_NAME_BYTES, ThreadState, Waker, WakerKind, off_cpu_flags};

use super::{KernelSymbols, RecentRequests, some_pid, some_tid};
use crate::event::{DurationNs, MonoNs, Pid, RequestId, RowId, Text, Tid};
use crate::record::objects::connection_peer_first;
use crate::record::syscall;
use crate::record::tree::comm_text;
use crate::store::schema::OffCpu;

/// A row out of an interval that ended. `started` is the beginning of the recording.
pub fn off_cpu_row(
    record: &OffCpuRecord,
    id: RowId,
    started: MonoNs,
    requests: &RecentRequests,
    symbols: &mut KernelSymbols,
) -> OffCpu {
    // A thread whose switch-out nobody kept (`off_ns` 0) had left the CPU before it was followed; kernel threads are
    // recorded from a little earlier than the rest.
    let start = started.0 as u64;
    let before_attach = record.off_ns < start || record.flags & off_cpu_flags::BEFORE_ATTACH != 0;
    let on = record.on_ns;
    let off = record.off_ns.max(start).min(on);
    let preempted = record.flags & off_cpu_flags::PREEMPTED != 0;
    let woken = match record.woken_ns {
        _ if preempted => Some(off),
        0 => None,
        woken => Some(woken.clamp(off, on)),
    };
    let unseen = record.flags & off_cpu_flags::RETURN_UNSEEN != 0;
    let edge = if preempted || unseen { Edge::default() } else { Edge::of(&record.waker, requests, symbols) };
    let culprit = some_tid(record.culprit_tid);
    let in_call = record.syscall_nr >= 0;
    OffCpu {
        id,
        pid: Pid(record.tgid as i32),
        tid: Tid(record.tid as i32),
        off_ns: MonoNs(off as i64),
        woken_ns: woken.map(|woken| MonoNs(woken as i64)),
        on_ns: Some(MonoNs(on as i64)),
        state: state_name(record.off_state, record.flags),
        before_attach,
        syscall: in_call.then(|| syscall::name(record.syscall_nr)),
        syscall_start_ns: call_start(in_call, record.syscall_start_ns),
        waker_kind: edge.kind,
        waker_pid: edge.pid,
        waker_tid: edge.tid,
        waker_comm: edge.comm,
        waker_syscall: edge.syscall,
        waker_object: edge.object,
        request_id: edge.request,
        off_cpu: record.off_cpu as i32,
        on_cpu: Some(record.on_cpu as i32),
        culprit_pid: some_pid(record.culprit_tgid).filter(|_| culprit.is_some()),
        culprit_tid: culprit,
        culprit_comm: culprit.map(|_| comm_text(&record.culprit_comm)),
        culprit_ns: culprit.map(|_| DurationNs(record.culprit_ns as i64)),
        others_ns: DurationNs(record.others_ns as i64),
        idle_ns: DurationNs(record.idle_ns as i64),
        allowed_cpus: (record.allowed_cpus != 0).then_some(record.allowed_cpus as i32),
        forbidden_idle_ns: Some(DurationNs(record.forbidden_idle_ns as i64)),
        throttled: Some(record.flags & off_cpu_flags::DIRTY_THROTTLED != 0 && !preempted),
    }
}

/// A row for a thread that was still off the CPU at the end; `None` if it was on it.
pub fn still_off_row(
    tid: Tid,
    state: &ThreadState,
    id: RowId,
    started: MonoNs,
    requests: &RecentRequests,
    symbols: &mut KernelSymbols,
) -> Option<OffCpu> {
    if state.off_ns == 0 {
        return None;
    }
    let start = started.0 as u64;
    let before_attach = state.off_ns < start || state.flags & off_cpu_flags::BEFORE_ATTACH != 0;
    let off = state.off_ns.max(start);
    let preempted = state.off_state == 0 && state.flags & off_cpu_flags::BEFORE_ATTACH == 0
        || state.flags & off_cpu_flags::PREEMPTED != 0;
    let woken = match state.woken_ns {
        _ if preempted => Some(off),
        0 => None,
        woken => Some(woken.max(off)),
    };
    let edge = if preempted || woken.is_none() {
        Edge::default()
    } else {
        Edge::of(&state.waker, requests, symbols)
    };
    let in_call = state.syscall_nr >= 0;
    let flags = if preempted { state.flags | off_cpu_flags::PREEMPTED } else { state.flags };
    Some(OffCpu {
        id,
        pid: Pid(state.tgid as i32),
        tid,
        off_ns: MonoNs(off as i64),
        woken_ns: woken.map(|woken| MonoNs(woken as i64)),
        on_ns: None,
        state: state_name(state.off_state, flags),
        before_attach,
        syscall: in_call.then(|| syscall::name(state.syscall_nr)),
        syscall_start_ns: call_start(in_call, state.syscall_start_ns),
        waker_kind: edge.kind,
        waker_pid: edge.pid,
        waker_tid: edge.tid,
        waker_comm: edge.comm,
        waker_syscall: edge.syscall,
        waker_object: edge.object,
        request_id: edge.request,
        off_cpu: state.off_cpu as i32,
        on_cpu: None,
        culprit_pid: None,
        culprit_tid: None,
        culprit_comm: None,
        culprit_ns: None,
        others_ns: DurationNs(0),
        idle_ns: DurationNs(0),
        allowed_cpus: None,
        forbidden_idle_ns: None,
        throttled: Some(state.flags & off_cpu_flags::DIRTY_THROTTLED != 0 && !preempted),
    })
}

fn call_start(in_call: bool, start_ns: u64) -> Option<MonoNs> {
    (in_call && start_ns != 0).then_some(MonoNs(start_ns as i64))
}

/// `TASK_*` of `include/linux/sched.h`.
fn state_name(off_state: u32, flags: u32) -> Text {
    const INTERRUPTIBLE: u32 = 0x1;
    const UNINTERRUPTIBLE: u32 = 0x2;
    const STOPPED: u32 = 0x4;
    const TRACED: u32 = 0x8;
    const DEAD: u32 = 0x10 | 0x20 | 0x80;
    const NOLOAD: u32 = 0x400;
    Text::from(match off_state {
        _ if flags & off_cpu_flags::RETURN_UNSEEN != 0 => "unseen",
        _ if flags & off_cpu_flags::PREEMPTED != 0 => "preempted",
        state if state & DEAD != 0 => "dead",
        state if state & TRACED != 0 => "traced",
        state if state & STOPPED != 0 => "stopped",
        state if state & UNINTERRUPTIBLE != 0 && state & NOLOAD != 0 => "idle",
        state if state & UNINTERRUPTIBLE != 0 => "uninterruptible",
        state if state & INTERRUPTIBLE != 0 => "interruptible",
        _ => "other",
    })
}

/// The columns of a wake edge.
#[derive(Default)]
struct Edge {
    kind: Option<Text>,
    pid: Option<Pid>,
    tid: Option<Tid>,
    comm: Option<Text>,
    syscall: Option<Text>,
    object: Option<Text>,
    request: Option<RequestId>,
}

impl Edge {
    fn of(waker: &Waker, requests: &RecentRequests, symbols: &mut KernelSymbols) -> Self {
        let kind = |name: &str| Some(Text::from(name));
        let task = || Self {
            pid: Some(Pid(waker.tgid as i32)),
            tid: Some(Tid(waker.tid as i32)),
            comm: Some(comm_text(&waker.comm)),
            syscall: (waker.syscall_nr >= 0).then(|| syscall::name(waker.syscall_nr)),
            ..Self::default()
        };
        match waker.kind {
            code if code == WakerKind::Task as u32 => Self { kind: kind("task"), ..task() },
            code if code == WakerKind::Block as u32 => Self {
                kind: kind("block"),
                object: requests.device(waker.request_id),
                request: (waker.request_id != 0).then_some(RequestId(waker.request_id as i64)),
                ..Self::default()
            },
            code if code == WakerKind::Net as u32 => {
                let interrupted = if waker.tid == 0 { Self::default() } else { task() };
                Self { kind: kind("net"), object: connection_peer_first(&waker.socket), ..interrupted }
            }
            code if code == WakerKind::Timer as u32 => {
                Self { kind: kind("timer"), object: symbols.name(waker.function), ..Self::default() }
            }
            code if code == WakerKind::HardIrq as u32 => {
                let object = interrupt_name(waker.irq, &waker.comm);
                Self { kind: kind("irq"), object: Some(object), ..Self::default() }
            }
            code if code == WakerKind::SoftIrq as u32 => {
                Self { kind: kind("softirq"), object: Some(softirq_name(waker.irq)), ..Self::default() }
            }
            _ => Self::default(),
        }
    }
}

/// `irq 45 nvidia`.
pub(super) fn interrupt_name(number: u32, name: &[u8; THREAD_NAME_BYTES]) -> Text {
    Text::from(format!("irq {number} {}", comm_text(name)).trim_end())
}

/// Vectors of `include/linux/interrupt.h`, as `/proc/softirqs` names them.
pub(super) fn softirq_name(vector: u32) -> Text {
    const NAMES: [&str; 10] =
        ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];
    NAMES
        .get(vector as usize)
        .map_or_else(|| Text::from(format!("softirq {vector}")), |name| Text::from(*name))
}
