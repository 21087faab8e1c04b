//! Where CUPTI calls back, nothing is allocated and nothing freed, in any state.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr;
use std::sync::atomic::Ordering::Relaxed;

use common::{collector, layouts, record};
use gtrace_cupti::callbacks::{buffer_completed, buffer_requested};
use gtrace_cupti::pool::{BUFFER_BYTES, BUFFERS};
use tracer_abi::shim::{Class, Next};

struct Counting;

thread_local! {
    static CALLS: Cell<usize> = const { Cell::new(0) };
}

fn count() {
    let _ = CALLS.try_with(|calls| calls.set(calls.get() + 1));
}

// SAFETY: hands everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promise is handed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count();
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Walks records of `RECORD` bytes.
const RECORD: usize = 216;

unsafe extern "C" fn next(buffer: *mut u8, valid: usize, record: *mut *mut u8) -> u32 {
    // SAFETY: the test's own variable.
    let last = unsafe { record.read() };
    let offset = if last.is_null() { 0 } else { last as usize - buffer as usize + RECORD };
    if offset + RECORD > valid {
        return 12;
    }
    // SAFETY: within the buffer.
    unsafe { record.write(buffer.add(offset)) };
    0
}

fn request() -> (*mut u8, usize) {
    let (mut buffer, mut size, mut most) = (ptr::null_mut(), 0, 0);
    // SAFETY: variables of ours.
    unsafe { buffer_requested(&raw mut buffer, &raw mut size, &raw mut most) };
    (buffer, size)
}

fn complete(buffer: *mut u8, size: usize, valid: usize) {
    // SAFETY: a buffer that was requested, or one of another client, which is not read.
    unsafe { buffer_completed(ptr::null_mut(), 0, buffer, size, valid) };
}

// One test, since the collector is one for the process.
#[test]
fn nothing_is_allocated_or_freed_where_cupti_calls_back() {
    let (mut collector, mut ring) = collector(130_001, 1 << 20);
    collector.cupti.get_next_record = Some(next);
    let collector = collector.publish();
    let layout = &layouts()[&("13.0".to_owned(), "Kernel".to_owned())];
    assert_eq!(layout.size, RECORD);
    let names: Vec<_> = (0..100).map(|n| std::ffi::CString::new(format!("_Z6kernel{n}v")).unwrap()).collect();
    let records: Vec<u8> = (0..1_000_u64)
        .flat_map(|n| {
            let name = names[n as usize % names.len()].as_ptr().expose_provenance() as u64;
            let end = if n % 10 == 9 { 0 } else { 2_000 + n };
            record(
                layout,
                &[("kind", 10), ("start", 1_000 + n), ("end", end), ("correlationId", n), ("name", name)],
            )
        })
        .collect();
    let mut foreign = vec![0_u8; 4096];

    let before = CALLS.get();
    let mut read = 0;
    for _ in 0..20 {
        let (buffer, size) = request();
        assert_eq!((buffer.is_null(), size), (false, BUFFER_BYTES));
        // SAFETY: the buffer is ours and large enough.
        unsafe { ptr::copy_nonoverlapping(records.as_ptr(), buffer, records.len()) };
        complete(buffer, size, records.len());
        while let Ok(Next::Record(_)) = ring.take() {
            read += 1;
        }
    }
    // A ring that is full, since nobody reads.
    for _ in 0..30 {
        let (buffer, size) = request();
        // SAFETY: as above.
        unsafe { ptr::copy_nonoverlapping(records.as_ptr(), buffer, records.len()) };
        complete(buffer, size, records.len());
    }
    // Another client's buffer, and requests until none is left.
    complete(foreign.as_mut_ptr(), foreign.len(), foreign.len());
    let out = (0..BUFFERS + 3).map(|_| request()).filter(|(buffer, _)| !buffer.is_null()).count();
    // Over: nothing is given, nothing is read.
    collector.armed.store(false, Relaxed);
    let disarmed = request();
    let calls = CALLS.get() - before;

    assert_eq!(calls, 0, "calls of the allocator");
    // Every tenth name belongs to records without an end only.
    assert_eq!(read, 20 * 1_000 + 90, "every record, and each name once");
    let dropped = collector.header().dropped[Class::Gpu as usize].load(Relaxed);
    assert!(dropped > 10_000, "{dropped} dropped");
    assert_eq!(collector.header().foreign_buffers.load(Relaxed), 1);
    assert_eq!((out, collector.header().refused_buffers.load(Relaxed)), (BUFFERS, 4));
    assert_eq!(disarmed, (ptr::null_mut(), 0));
    assert_eq!(collector.header().broken_buffers.load(Relaxed), 0);
    assert_eq!(collector.header().panics.load(Relaxed), 0);
    assert!(foreign.iter().all(|byte| *byte == 0));
}
