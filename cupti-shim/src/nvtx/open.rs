//! Ranges that are open: those of threads, which nest, and those of the process, which have numbers.

use std::cell::Cell;
use std::sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

use super::nccl::Call;

/// Ranges of a thread that are kept; deeper ones are only counted.
const DEEPEST: usize = 24;
/// Ranges of the process that are kept.
const MOST: usize = 256;

/// A range that is open.
#[derive(Clone, Copy)]
pub struct Open {
    /// Its begin; 0: nobody wanted it then.
    pub start_ns: u64,
    /// Number of its domain in [`super::texts`], 0: the default one.
    pub domain: usize,
    /// Hash of its name.
    pub name: u64,
    /// The call of NCCL that it is.
    pub call: Option<Call>,
}

const NONE: Open = Open { start_ns: 0, domain: 0, name: 0, call: None };

/// What a thread has open. Its memory is the loader's: made at the thread's first use, and without a destructor.
struct Thread {
    id: Cell<u32>,
    depth: Cell<usize>,
    /// Ranges deeper than are kept.
    beyond: Cell<usize>,
    groups: Cell<u32>,
    open: [Cell<Open>; DEEPEST],
}

thread_local! {
    static THREAD: Thread = const {
        Thread {
            id: Cell::new(0),
            depth: Cell::new(0),
            beyond: Cell::new(0),
            groups: Cell::new(0),
            open: [const { Cell::new(NONE) }; DEEPEST],
        }
    };
}

/// The calling thread's number in the process's own pid namespace.
pub fn thread_id() -> u32 {
    THREAD.with(|thread| {
        if thread.id.get() == 0 {
            // SAFETY: no arguments.
            thread.id.set(unsafe { libc::syscall(libc::SYS_gettid) } as u32);
        }
        thread.id.get()
    })
}

/// Opens a range of the calling thread. How many of its domain were open before.
pub fn push(range: Open) -> i32 {
    THREAD.with(|thread| {
        let depth = thread.depth.get();
        let level = thread.open[..depth].iter().filter(|open| open.get().domain == range.domain).count();
        if depth < DEEPEST {
            thread.open[depth].set(range);
            thread.depth.set(depth + 1);
        } else {
            thread.beyond.set(thread.beyond.get() + 1);
        }
        level as i32
    })
}

/// Closes the innermost range of a domain, and says how many of it are left.
pub fn pop(domain: usize) -> (Option<Open>, i32) {
    THREAD.with(|thread| {
        if thread.beyond.get() > 0 {
            thread.beyond.set(thread.beyond.get() - 1);
            return (None, DEEPEST as i32);
        }
        let depth = thread.depth.get();
        let found = (0..depth).rev().find(|&index| thread.open[index].get().domain == domain);
        let Some(found) = found else { return (None, -1) };
        let range = thread.open[found].get();
        for index in found..depth - 1 {
            thread.open[index].set(thread.open[index + 1].get());
        }
        thread.depth.set(depth - 1);
        let left = thread.open[..depth - 1].iter().filter(|open| open.get().domain == domain).count();
        (Some(range), left as i32 - 1)
    })
}

/// Groups of NCCL that the calling thread has open, changed by `change`.
pub fn groups(change: i32) -> u32 {
    THREAD.with(|thread| {
        thread.groups.set(thread.groups.get().saturating_add_signed(change));
        thread.groups.get()
    })
}

struct Place {
    /// The range's number, 0: free. Its low byte is the place.
    number: AtomicU64,
    start_ns: AtomicU64,
    domain: AtomicU64,
    name: AtomicU64,
    thread: AtomicU32,
}

static PLACES: [Place; MOST] = [const {
    Place {
        number: AtomicU64::new(0),
        start_ns: AtomicU64::new(0),
        domain: AtomicU64::new(0),
        name: AtomicU64::new(0),
        thread: AtomicU32::new(0),
    }
}; MOST];
static NEXT: AtomicU64 = AtomicU64::new(0);

/// While a place is being filled.
const FILLING: u64 = u64::MAX;

/// Opens a range of the process. Its number; 0: there is no room.
pub fn start(range: &Open) -> u64 {
    let turn = NEXT.fetch_add(1, Relaxed);
    for step in 0..8 {
        let index = (turn.wrapping_add(step) % MOST as u64) as usize;
        let place = &PLACES[index];
        if place.number.compare_exchange(0, FILLING, AcqRel, Relaxed).is_err() {
            continue;
        }
        place.start_ns.store(range.start_ns, Relaxed);
        place.domain.store(range.domain as u64, Relaxed);
        place.name.store(range.name, Relaxed);
        place.thread.store(thread_id(), Relaxed);
        // Never 0 and never `FILLING`.
        let number = ((turn & 0xFF_FFFF_FFFF) + 1) << 8 | index as u64;
        place.number.store(number, Release);
        return number;
    }
    0
}

/// Closes it, and says which thread opened it.
pub fn end(number: u64) -> Option<(Open, u32)> {
    let place = &PLACES[(number & 0xFF) as usize];
    if number == 0 || place.number.compare_exchange(number, FILLING, AcqRel, Acquire).is_err() {
        return None;
    }
    let range = Open {
        start_ns: place.start_ns.load(Relaxed),
        domain: place.domain.load(Relaxed) as usize,
        name: place.name.load(Relaxed),
        call: None,
    };
    let thread = place.thread.load(Relaxed);
    place.number.store(0, Release);
    Some((range, thread))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(domain: usize, start_ns: u64) -> Open {
        Open { start_ns, domain, ..NONE }
    }

    fn popped(domain: usize) -> Option<u64> {
        pop(domain).0.map(|range| range.start_ns)
    }

    #[test]
    fn ranges_nest_by_domain() {
        assert_eq!((push(range(1, 10)), push(range(2, 20)), push(range(1, 30))), (0, 0, 1));
        assert_eq!(popped(2), Some(20));
        assert_eq!((popped(1), popped(1), popped(1)), (Some(30), Some(10), None));
    }

    #[test]
    fn deep_ranges_are_counted_and_not_mixed_up() {
        for level in 0..DEEPEST as u64 + 5 {
            push(range(1, level + 1));
        }
        assert!((0..5).all(|_| popped(1).is_none()));
        assert_eq!(popped(1), Some(DEEPEST as u64));
        while popped(1).is_some() {}
        assert_eq!(pop(1).1, -1);
    }

    #[test]
    fn ranges_of_the_process_end_in_any_thread_and_once() {
        let number = start(&range(3, 77));
        assert_ne!(number, 0);
        let (ended, _) =
            std::thread::spawn(move || end(number).unwrap_or((NONE, 0))).join().unwrap_or((NONE, 0));
        assert_eq!((ended.start_ns, ended.domain), (77, 3));
        assert!(end(number).is_none() && end(0).is_none() && end(u64::MAX).is_none());
        let many: Vec<u64> = (0..2 * MOST).map(|_| start(&range(3, 1))).collect();
        assert!(many.contains(&0), "bounded");
        assert!(many.into_iter().filter(|number| end(*number).is_some()).count() <= MOST);
    }
}
