//! Names that the program registers: copied into memory of this library, since the program may let its own go.

use std::cell::UnsafeCell;
use std::sync::atomic::{
    AtomicU32, AtomicUsize,
    Ordering::{AcqRel, Acquire, Release},
};

use tracer_abi::shim::{MARKER_NAME_MAX_BYTES, NcclFunction};

/// Names that are kept; what is registered beyond has no name.
const MOST: usize = 4096;
/// Bytes of all of them.
const BYTES: usize = 256 << 10;

/// A registered name.
struct Entry {
    /// Where it begins.
    start: AtomicU32,
    /// How long it is, plus one; 0: not there yet.
    length: AtomicU32,
    /// [`NcclFunction`] of this name, 0: none.
    function: AtomicU32,
}

struct Bytes(UnsafeCell<[u8; BYTES]>);

// SAFETY: each part is written once, by the thread that reserved it, before its entry's length is there.
unsafe impl Sync for Bytes {}

static ENTRIES: [Entry; MOST] =
    [const { Entry { start: AtomicU32::new(0), length: AtomicU32::new(0), function: AtomicU32::new(0) } };
        MOST];
static NEXT_ENTRY: AtomicUsize = AtomicUsize::new(0);
static TEXT: Bytes = Bytes(UnsafeCell::new([0; BYTES]));
static NEXT_BYTE: AtomicUsize = AtomicUsize::new(0);

/// Keeps a name. Its number, from 1; 0: there is no room.
pub fn register(name: &[u8]) -> usize {
    let name = &name[..name.len().min(MARKER_NAME_MAX_BYTES)];
    let take = |next: &AtomicUsize, count: usize, most: usize| {
        next.fetch_update(AcqRel, Acquire, |used| used.checked_add(count).filter(|end| *end <= most)).ok()
    };
    let Some(start) = take(&NEXT_BYTE, name.len(), BYTES) else { return 0 };
    let Some(number) = take(&NEXT_ENTRY, 1, MOST) else { return 0 };
    // SAFETY: within the array; this part was reserved just now and is nobody else's.
    unsafe {
        std::ptr::copy_nonoverlapping(name.as_ptr(), TEXT.0.get().cast::<u8>().add(start), name.len());
    }
    let entry = &ENTRIES[number];
    entry.start.store(start as u32, Release);
    entry.function.store(NcclFunction::named(name).map_or(0, |function| function as u32), Release);
    entry.length.store(name.len() as u32 + 1, Release);
    number + 1
}

fn entry(number: usize) -> Option<(&'static Entry, usize)> {
    let entry = ENTRIES.get(number.checked_sub(1)?)?;
    let length = (entry.length.load(Acquire) as usize).checked_sub(1)?;
    Some((entry, length))
}

/// The name of a number; `None` for one that was never given out.
pub fn get(number: usize) -> Option<&'static [u8]> {
    let (entry, length) = entry(number)?;
    let start = entry.start.load(Acquire) as usize;
    // SAFETY: this part was written before its length was there, and is never written again.
    Some(unsafe { std::slice::from_raw_parts(TEXT.0.get().cast::<u8>().add(start), length) })
}

/// The function of NCCL that has the name of this number.
pub fn function(number: usize) -> Option<NcclFunction> {
    NcclFunction::from_raw(entry(number)?.0.function.load(Acquire))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kept_and_bounded() {
        let number = register(b"ncclAllReduce");
        assert_eq!(get(number), Some(&b"ncclAllReduce"[..]));
        assert_eq!(function(number), Some(NcclFunction::AllReduce));
        let long = register(&[b'x'; 10_000]);
        assert_eq!(get(long).map(<[u8]>::len), Some(MARKER_NAME_MAX_BYTES));
        assert_eq!((function(long), get(0), get(usize::MAX)), (None, None, None));
        while register(b"step") != 0 {}
        assert_eq!(get(number), Some(&b"ncclAllReduce"[..]));
    }
}
