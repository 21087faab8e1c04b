//! Which descriptor ended a `poll` or `select`: read from the caller's memory at the exit, where the kernel has just
//! written it. `epoll` hands out what the program stored, not descriptors: there nothing is claimed.

use aya_ebpf::helpers::generated::bpf_probe_read_user;

use crate::maps::SCRATCH;

/// Words that are looked at: entries of a `poll` array.
const WORDS: u32 = 32;
/// Words of a `select` set: 1024 descriptors (`FD_SETSIZE`).
const SET_WORDS: u64 = 16;

/// Value of the per-CPU map `SCRATCH`.
#[repr(C)]
pub struct Scratch {
    words: [u64; WORDS as usize],
    /// The first word that is not zero under the mask, and where it was. In memory, where the verifier does not follow
    /// their values: in registers it would walk what follows once for each place.
    found: u64,
    place: u64,
}

/// The first ready descriptor of a `struct pollfd` array, −1 if none.
#[inline(always)]
pub fn ready_of_poll(array: u64, count: u64) -> i32 {
    // `struct pollfd`: fd, then events and revents of 16 bits each.
    let count = if count > u64::from(WORDS) { u64::from(WORDS) } else { count };
    match first_word(array, count, 0xffff << 48) {
        (0, _) => -1,
        (entry, _) => entry as u32 as i32,
    }
}

/// The first descriptor in one of the sets of a `select`, −1 if none.
#[inline(always)]
pub fn ready_of_select(count: u64, sets: [u64; 3]) -> i32 {
    let words = count.div_ceil(64);
    let words = if words > SET_WORDS { SET_WORDS } else { words };
    for set in sets {
        let (word, place) = first_word(set, words, u64::MAX);
        if word != 0 {
            return (place * 64) as i32 + word.trailing_zeros() as i32;
        }
    }
    -1
}

/// The first of `count` words in the caller's memory that is not zero under the mask, and its place; zero if none.
#[inline(never)]
fn first_word(address: u64, count: u64, mask: u64) -> (u64, u64) {
    let Some(scratch) = SCRATCH.get_ptr_mut(0) else { return (0, 0) };
    if address == 0 || count == 0 || count > u64::from(WORDS) {
        return (0, 0);
    }
    // SAFETY: this CPU's element of the map: system calls end in task context, where nothing else uses it.
    unsafe {
        let words = (&raw mut (*scratch).words).cast::<u64>();
        for index in 0..WORDS {
            words.add(index as usize).write_volatile(0);
        }
        if bpf_probe_read_user(words.cast(), (count * 8) as u32, address as *const _) != 0 {
            return (0, 0);
        }
        (*scratch).found = 0;
        for index in 0..WORDS {
            let word = words.add(index as usize).read_volatile();
            if word & mask != 0 {
                (&raw mut (*scratch).found).write_volatile(word);
                (&raw mut (*scratch).place).write_volatile(u64::from(index));
                break;
            }
        }
        ((&raw const (*scratch).found).read_volatile(), (&raw const (*scratch).place).read_volatile())
    }
}
