//! What CUPTI calls. In the program's own threads or in CUPTI's: nothing is locked, allocated or waited for here.

use std::ffi::{CStr, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::atomic::Ordering::Relaxed;

use crate::bind::StateData;
use crate::clock;
use crate::collector::Collector;
use crate::layout::Version;
use crate::pool::{BUFFER_BYTES, Returned};

/// `CUPTI_CB_DOMAIN_STATE`.
pub const DOMAIN_STATE: u32 = 6;

/// Keeps a panic inside; it is counted.
fn guarded(work: impl FnOnce(&'static Collector)) {
    let Some(collector) = Collector::get() else { return };
    if catch_unwind(AssertUnwindSafe(|| work(collector))).is_err() {
        collector.header().panics.fetch_add(1, Relaxed);
    }
}

/// Gives CUPTI a buffer.
///
/// # Safety
/// Called by CUPTI: the pointers may be written to.
pub unsafe extern "C" fn buffer_requested(buffer: *mut *mut u8, size: *mut usize, max_records: *mut usize) {
    // SAFETY: CUPTI's own variables. Set first: whatever happens, they hold something.
    unsafe {
        buffer.write(ptr::null_mut());
        size.write(0);
        max_records.write(0);
    }
    guarded(|collector| {
        let taken = if collector.is_armed() { collector.pool.take() } else { None };
        let given = taken.or_else(|| {
            collector.header().refused_buffers.fetch_add(1, Relaxed);
            // Before 12.9 CUPTI crashes without one.
            (collector.version < Version::NULL_BUFFER).then(|| collector.pool.take_scratch())
        });
        if let Some(given) = given {
            // SAFETY: as above.
            unsafe {
                buffer.write(given.as_ptr());
                size.write(BUFFER_BYTES);
            }
        }
    });
}

/// Takes a buffer back and hands its records over. A buffer that is not ours is neither read nor freed.
///
/// # Safety
/// Called by CUPTI: `buffer` holds `valid_size` bytes of records.
pub unsafe extern "C" fn buffer_completed(
    _context: *mut c_void,
    _stream: u32,
    buffer: *mut u8,
    _size: usize,
    valid_size: usize,
) {
    guarded(|collector| match collector.pool.identify(buffer) {
        _ if !collector.is_armed() => {}
        Returned::Ours(number) => {
            // SAFETY: one of our buffers, as CUPTI has just filled it.
            unsafe { collector.parse(buffer, valid_size.min(BUFFER_BYTES)) };
            if valid_size > 0 {
                collector.completed.fetch_add(1, Relaxed);
            }
            collector.pool.give_back(number);
        }
        Returned::Scratch => collector.pool.give_back_scratch(),
        Returned::Foreign if buffer.is_null() => {}
        Returned::Foreign => {
            collector.header().foreign_buffers.fetch_add(1, Relaxed);
        }
    });
}

/// The clock of the records.
#[must_use]
pub extern "C" fn timestamp() -> u64 {
    clock::monotonic_ns()
}

/// Is told CUPTI's own complaints.
///
/// # Safety
/// Called by CUPTI: `data` is what the domain says.
pub unsafe extern "C" fn event(_user: *mut c_void, domain: u32, _number: u32, data: *const c_void) {
    if domain != DOMAIN_STATE || data.is_null() {
        return;
    }
    guarded(|collector| {
        // SAFETY: the STATE domain passes this struct in every version that has the domain.
        let message = unsafe { (*data.cast::<StateData>()).message };
        if !message.is_null() && collector.is_armed() {
            // SAFETY: a string of CUPTI that lives during this call.
            collector.header().notice.set(unsafe { CStr::from_ptr(message) }.to_bytes());
        }
    });
}
