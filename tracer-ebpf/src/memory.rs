//! Memory that a thread has to free before it gets some, and writers that are slowed down because too many pages are dirty.

use aya_ebpf::macros::raw_tracepoint;
use aya_ebpf::programs::RawTracePointContext;
use tracer_abi::kernel::{LossClass, MemoryStallKind, MemoryStallRecord, RecordKind};

use crate::maps::STALLS;
use crate::{emit, kernel, threads};

/// A recorded thread begins to free memory.
#[inline(always)]
fn begin() {
    let (tid, _) = kernel::current_ids();
    if threads::find(tid).is_some() {
        let _ = STALLS.insert(tid, kernel::now_ns(), 0);
    }
}

#[inline(always)]
fn end(kind: MemoryStallKind, pages: u64) {
    let (tid, tgid) = kernel::current_ids();
    let Some(state) = threads::find(tid) else { return };
    // SAFETY: a copy is taken at once.
    let Some(start) = unsafe { STALLS.get(tid) }.copied() else { return };
    let _ = STALLS.remove(tid);
    let Some(mut entry) = emit::reserve::<MemoryStallRecord>(LossClass::RingOther) else { return };
    let record = entry.as_mut_ptr();
    let now = kernel::now_ns();
    // SAFETY: room for a record in the ring, the current thread's element of the map.
    unsafe {
        (*record).header = emit::header(RecordKind::MemoryStall, now);
        (*record).start_ns = start;
        (*record).end_ns = now;
        (*record).pages = pages;
        (*record).tid = tid;
        (*record).tgid = tgid;
        (*record).kind = kind as u32;
        (*record).syscall_nr = (*state).syscall_nr;
    }
    emit::submit(entry);
}

macro_rules! reclaim {
    ($($begin:ident $end:ident $kind:ident;)+) => { $(
        #[raw_tracepoint]
        pub fn $begin(_ctx: RawTracePointContext) -> i32 {
            begin();
            0
        }

        #[raw_tracepoint]
        pub fn $end(ctx: RawTracePointContext) -> i32 {
            end(MemoryStallKind::$kind, ctx.arg(0));
            0
        }
    )+ };
}

reclaim! {
    mm_vmscan_direct_reclaim_begin mm_vmscan_direct_reclaim_end Reclaim;
    mm_vmscan_memcg_reclaim_begin mm_vmscan_memcg_reclaim_end GroupReclaim;
    mm_vmscan_node_reclaim_begin mm_vmscan_node_reclaim_end NodeReclaim;
}

#[raw_tracepoint(tracepoint = "mm_compaction_begin")]
pub fn mm_compaction_begin(_ctx: RawTracePointContext) -> i32 {
    begin();
    0
}

#[raw_tracepoint(tracepoint = "mm_compaction_end")]
pub fn mm_compaction_end(_ctx: RawTracePointContext) -> i32 {
    end(MemoryStallKind::Compaction, 0);
    0
}

/// A writer is told how long to sleep, just before it does (or not at all: the switch-out that follows tells).
#[raw_tracepoint(tracepoint = "balance_dirty_pages")]
pub fn balance_dirty_pages(_ctx: RawTracePointContext) -> i32 {
    let (tid, _) = kernel::current_ids();
    if let Some(state) = threads::find(tid) {
        // SAFETY: the current thread's element of the map.
        unsafe { (*state).dirty_ns = kernel::now_ns() };
    }
    0
}
