//! Which descriptor ended a `poll` or `select`: read from the caller's memory at the exit, where the kernel has just
//! written it. `epoll` hands out what the program stored, not descriptors: there nothing is claimed.

use aya_ebpf::helpers::generated::bpf_probe_read_user;

use crate::maps::SCRATCH;

/// Entries of a `poll` array that are looked at; 8 bytes each.
const POLL_ENTRIES: u64 = 32;
/// Words of a `select` set: 1024 descriptors (`FD_SETSIZE`).
const SELECT_WORDS: u64 = 16;

/// The first ready descriptor of a `struct pollfd` array, −1 if none.
#[inline(always)]
pub fn ready_of_poll(array: u64, count: u64) -> i32 {
    let Some(scratch) = SCRATCH.get_ptr_mut(0) else { return -1 };
    let words = scratch.cast::<u64>();
    let count = if count > POLL_ENTRIES { POLL_ENTRIES } else { count };
    if !read(words, array, count * 8) {
        return -1;
    }
    for index in 0..POLL_ENTRIES {
        if index >= count {
            break;
        }
        // SAFETY: inside the scratch's 32 words.
        let entry = unsafe { words.add(index as usize).read() };
        // `struct pollfd`: fd, then events and revents of 16 bits each.
        if entry >> 48 != 0 {
            return entry as u32 as i32;
        }
    }
    -1
}

/// The first descriptor in one of the sets of a `select`, −1 if none.
#[inline(always)]
pub fn ready_of_select(count: u64, sets: [u64; 3]) -> i32 {
    let words = count.div_ceil(64);
    let words = if words > SELECT_WORDS { SELECT_WORDS } else { words };
    for set in sets {
        if set == 0 {
            continue;
        }
        let ready = ready_of_set(set, words);
        if ready >= 0 {
            return ready;
        }
    }
    -1
}

#[inline(always)]
fn ready_of_set(set: u64, count: u64) -> i32 {
    let Some(scratch) = SCRATCH.get_ptr_mut(0) else { return -1 };
    let words = scratch.cast::<u64>();
    if !read(words, set, count * 8) {
        return -1;
    }
    for index in 0..SELECT_WORDS {
        if index >= count {
            break;
        }
        // SAFETY: inside the scratch's 32 words.
        let word = unsafe { words.add(index as usize).read() };
        if word != 0 {
            return (index * 64) as i32 + word.trailing_zeros() as i32;
        }
    }
    -1
}

#[inline(always)]
fn read(words: *mut u64, address: u64, bytes: u64) -> bool {
    if address == 0 || bytes == 0 || bytes > 8 * POLL_ENTRIES {
        return false;
    }
    // SAFETY: the scratch has 256 bytes.
    unsafe { bpf_probe_read_user(words.cast(), bytes as u32, address as *const _) == 0 }
}
