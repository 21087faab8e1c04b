//! Writing records to the ring, and counting those that did not fit.

use aya_ebpf::bindings::BPF_RB_NO_WAKEUP;
use aya_ebpf::maps::ring_buf::RingBufEntry;
use tracer_abi::kernel::{LossClass, RecordHeader, RecordKind};

use crate::kernel;
use crate::maps::{EVENTS, LIFE, LOSSES};

/// Room for a record in the ring; counts a loss if it is full. The caller writes every field and then submits.
#[inline(always)]
pub fn reserve<T: 'static>(class: LossClass) -> Option<RingBufEntry<T>> {
    let ring = if matches!(class, LossClass::RingProcess) { &LIFE } else { &EVENTS };
    let entry = ring.reserve::<T>(0);
    if entry.is_none() {
        lost(class);
    }
    entry
}

/// The reader polls: a wake-up per record would cost 9 µs each.
#[inline(always)]
pub fn submit<T>(entry: RingBufEntry<T>) {
    entry.submit(u64::from(BPF_RB_NO_WAKEUP));
}

#[inline(always)]
pub fn header(kind: RecordKind, time_ns: u64) -> RecordHeader {
    RecordHeader { kind: kind as u32, cpu: kernel::this_cpu(), time_ns }
}

/// Counts something that could not be recorded. Atomic: an interrupt may count on the same CPU in between.
#[inline(always)]
pub fn lost(class: LossClass) {
    if let Some(count) = LOSSES.get_ptr_mut(class as u32) {
        // SAFETY: an element of the map, aligned to 8.
        unsafe { kernel::atomic_add(count, 1) };
    }
}
