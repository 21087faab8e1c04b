//! Buffers for CUPTI.

use std::io;
use std::ptr::{self, NonNull};
use std::sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

/// Buffers of the pool: one bit each of a word.
pub const BUFFERS: usize = 64;
/// Size of a buffer: about a thousand kernel records. Small ones come back sooner, so that less is lost when the process
/// is killed; NVIDIA's samples use 16 KiB to 8 MiB.
pub const BUFFER_BYTES: usize = 256 << 10;

/// A fixed number of buffers in one mapping; the kernel gives memory to those that are used. Taking and giving back is
/// one atomic operation on a word of bits: no lock, no allocation, in whatever thread CUPTI calls.
///
/// One buffer more is the scratch: CUPTI before 12.9 crashes when it is given none, so what finds the pool empty there
/// writes to the scratch, possibly several at once, and nobody ever reads that.
pub struct Pool {
    start: NonNull<u8>,
    free: AtomicU64,
    scratches_out: AtomicU32,
}

// SAFETY: the memory is handed out to one owner at a time by `free`; the scratch is never read.
unsafe impl Send for Pool {}
// SAFETY: as above.
unsafe impl Sync for Pool {}

/// What a buffer that came back is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Returned {
    /// One of the pool, with its number.
    Ours(usize),
    /// The scratch: its contents mean nothing.
    Scratch,
    /// Another CUPTI client's.
    Foreign,
}

impl Pool {
    /// Reserves the address space.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn new() -> io::Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping at a place of the kernel's choice, never unmapped: CUPTI may hold buffers for ever.
        let start =
            unsafe { libc::mmap(ptr::null_mut(), (BUFFERS + 1) * BUFFER_BYTES, protection, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or_else(|| io::Error::other("mapped at address 0"))?;
        Ok(Self { start, free: AtomicU64::new(u64::MAX), scratches_out: AtomicU32::new(0) })
    }

    /// Takes a buffer; `None` if all are out.
    #[must_use]
    pub fn take(&self) -> Option<NonNull<u8>> {
        let mut free = self.free.load(Relaxed);
        while free != 0 {
            let number = free.trailing_zeros();
            match self.free.compare_exchange_weak(free, free & !(1 << number), Acquire, Relaxed) {
                Ok(_) => return Some(self.buffer(number as usize)),
                Err(now) => free = now,
            }
        }
        None
    }

    /// The scratch.
    #[must_use]
    pub fn take_scratch(&self) -> NonNull<u8> {
        self.scratches_out.fetch_add(1, Relaxed);
        self.buffer(BUFFERS)
    }

    /// What a buffer that CUPTI hands back is.
    #[must_use]
    pub fn identify(&self, buffer: *const u8) -> Returned {
        let offset = (buffer as usize).wrapping_sub(self.start.as_ptr() as usize);
        match offset / BUFFER_BYTES {
            _ if !offset.is_multiple_of(BUFFER_BYTES) => Returned::Foreign,
            BUFFERS => Returned::Scratch,
            number if number < BUFFERS && self.free.load(Relaxed) & (1 << number) == 0 => {
                Returned::Ours(number)
            }
            _ => Returned::Foreign,
        }
    }

    /// Gives buffer `number` back; its memory is made zero, so that CUPTI need not do it in the program's thread.
    pub fn give_back(&self, number: usize) {
        // SAFETY: within the mapping; CUPTI has just handed it back, so nobody else has it.
        unsafe { ptr::write_bytes(self.buffer(number).as_ptr(), 0, BUFFER_BYTES) };
        self.free.fetch_or(1 << number, Release);
    }

    /// The scratch came back.
    pub fn give_back_scratch(&self) {
        let _ = self.scratches_out.fetch_update(Relaxed, Relaxed, |out| out.checked_sub(1));
    }

    /// Buffers that CUPTI holds.
    #[must_use]
    pub fn outstanding(&self) -> u32 {
        self.free.load(Relaxed).count_zeros() + self.scratches_out.load(Relaxed)
    }

    fn buffer(&self, number: usize) -> NonNull<u8> {
        // SAFETY: `number` is at most `BUFFERS`, the scratch.
        unsafe { self.start.add(number * BUFFER_BYTES) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_buffer_is_given_out_once_and_known_again() {
        let pool = Pool::new().expect("address space is there");
        let taken: Vec<_> = std::iter::from_fn(|| pool.take()).collect();
        assert_eq!((taken.len(), pool.outstanding()), (BUFFERS, BUFFERS as u32));
        for (number, buffer) in taken.iter().enumerate() {
            assert_eq!(pool.identify(buffer.as_ptr()), Returned::Ours(number));
            assert!(buffer.as_ptr().addr().is_multiple_of(8));
        }
        assert_eq!(pool.identify(taken[3].as_ptr().wrapping_add(8)), Returned::Foreign, "inside of one");
        assert_eq!(pool.identify(ptr::dangling()), Returned::Foreign);
        assert_eq!(pool.identify(ptr::null()), Returned::Foreign);
        let scratch = pool.take_scratch();
        assert_eq!(pool.identify(scratch.as_ptr()), Returned::Scratch);

        // SAFETY: ours.
        unsafe { taken[5].as_ptr().write(1) };
        pool.give_back(5);
        assert_eq!(pool.identify(taken[5].as_ptr()), Returned::Foreign, "nobody has it");
        let again = pool.take().expect("one is free");
        assert_eq!(again, taken[5]);
        // SAFETY: ours.
        assert_eq!(unsafe { again.as_ptr().read() }, 0, "it was zeroed");
    }
}
