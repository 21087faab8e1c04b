//! Text in shared memory.

use core::sync::atomic::{AtomicU8, AtomicU32, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// Text of at most `N` bytes that one side writes and the other reads at any moment.
#[repr(C)]
pub struct SharedText<const N: usize> {
    length: AtomicU32,
    reserved: u32,
    bytes: [AtomicU8; N],
}

impl<const N: usize> SharedText<N> {
    /// Replaces the text; what does not fit is cut off.
    pub fn set(&self, text: &[u8]) {
        self.length.store(0, Release);
        let length = text.len().min(N);
        for (to, from) in self.bytes.iter().zip(text) {
            to.store(*from, Relaxed);
        }
        self.length.store(length as u32, Release);
    }

    /// Copies the text to `into`; returns how many bytes it is. Not checked for UTF-8.
    pub fn get(&self, into: &mut [u8; N]) -> usize {
        let length = (self.length.load(Acquire) as usize).min(N);
        for (to, from) in into.iter_mut().zip(&self.bytes[..length]) {
            *to = from.load(Relaxed);
        }
        length
    }
}
