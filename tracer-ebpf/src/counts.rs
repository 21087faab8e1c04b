//! Counting fast system calls: in a small cache of the thread, from where a count moves to the map when another call
//! takes its place or the thread ends.

use tracer_abi::kernel::{COUNT_CACHE, CachedCount, CountCache, CountKey, CountValue, LossClass};

use crate::emit;
use crate::maps::SYSCALL_COUNTS;

/// Empties a cache.
///
/// # Safety
/// `cache` is writable.
#[inline(always)]
pub unsafe fn clear(cache: *mut CountCache) {
    for index in 0..COUNT_CACHE {
        // SAFETY: inside the cache.
        unsafe { (*cache.cast::<CachedCount>().add(index)).tag = 0 };
    }
}

/// One fast call.
///
/// # Safety
/// `cache` is the thread's own, and the thread is the current one.
#[inline(always)]
pub unsafe fn count(
    cache: *mut CountCache,
    tid: u32,
    tgid: u32,
    nr: i32,
    start_ns: u64,
    end_ns: u64,
    result: i64,
) {
    let index = nr as usize & (COUNT_CACHE - 1);
    let tag = u64::from(nr.wrapping_add(1) as u32);
    // SAFETY: inside the cache.
    unsafe {
        let entry = cache.cast::<CachedCount>().add(index);
        if (*entry).tag != tag {
            evict(entry, tid, tgid);
            (*entry).tag = tag;
            (*entry).value = CountValue { first_ns: start_ns, ..CountValue::default() };
        }
        let value = &raw mut (*entry).value;
        let duration = end_ns.wrapping_sub(start_ns);
        (*value).calls += 1;
        (*value).total_ns += duration;
        if duration > (*value).max_ns {
            (*value).max_ns = duration;
        }
        if result > 0 {
            (*value).result_sum = (*value).result_sum.wrapping_add(result as u64);
        }
        // The kernel's errors are −4095 to −1; other negative results are addresses.
        if (-4095..0).contains(&result) {
            (*value).errors += 1;
        }
        (*value).last_ns = end_ns;
    }
}

/// Moves every count of a cache to the map.
///
/// # Safety
/// `cache` is no longer written by its thread.
#[inline(always)]
pub unsafe fn flush(cache: *mut CountCache, tid: u32, tgid: u32) {
    for index in 0..COUNT_CACHE {
        // SAFETY: inside the cache.
        unsafe {
            let entry = cache.cast::<CachedCount>().add(index);
            evict(entry, tid, tgid);
            (*entry).tag = 0;
        }
    }
}

/// Adds a cached count to the map. Out of line: it is rare.
#[inline(never)]
unsafe fn evict(entry: *mut CachedCount, tid: u32, tgid: u32) -> u32 {
    if entry.is_null() {
        return 0;
    }
    // SAFETY: an entry of a cache.
    let (tag, value) = unsafe { ((*entry).tag, &(*entry).value) };
    if tag == 0 {
        return 0;
    }
    let key = CountKey { tid, tgid, syscall_nr: (tag as u32).wrapping_sub(1) as i32, reserved: 0 };
    match SYSCALL_COUNTS.get_ptr_mut(key) {
        // SAFETY: only this thread writes this key; the entry is removed only after the thread has ended.
        Some(sum) => unsafe {
            (*sum).calls += value.calls;
            (*sum).total_ns += value.total_ns;
            if value.max_ns > (*sum).max_ns {
                (*sum).max_ns = value.max_ns;
            }
            (*sum).result_sum = (*sum).result_sum.wrapping_add(value.result_sum);
            (*sum).errors += value.errors;
            (*sum).last_ns = value.last_ns;
        },
        None => {
            if SYSCALL_COUNTS.insert(key, value, 0).is_err() {
                emit::lost(LossClass::CountsFull);
            }
        }
    }
    1
}
