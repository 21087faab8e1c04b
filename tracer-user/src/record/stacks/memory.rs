//! Reading another process's memory: it may change or vanish meanwhile, and is never written.

use crate::event::Pid;

/// Memory that can be read by address.
pub trait Memory {
    /// Fills `into` from `address` on; `false` if not all of it can be read.
    fn read(&self, address: u64, into: &mut [u8]) -> bool;

    /// A word.
    fn word(&self, address: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        self.read(address, &mut bytes).then(|| u64::from_ne_bytes(bytes))
    }

    /// `length` bytes. The caller bounds the length.
    fn bytes(&self, address: u64, length: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.read(address, &mut bytes).then_some(bytes)
    }
}

/// The memory of a process (`process_vm_readv`, since 3.2): the process is neither stopped nor told.
#[derive(Clone, Copy, Debug)]
pub struct ProcessMemory(pub Pid);

impl Memory for ProcessMemory {
    fn read(&self, address: u64, into: &mut [u8]) -> bool {
        let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
        let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: into.len() };
        // SAFETY: one local range, which is ours to write and as long as said; the remote address is only a number to this
        // process.
        let read = unsafe { libc::process_vm_readv(self.0.0, &raw const local, 1, &raw const remote, 1, 0) };
        usize::try_from(read).is_ok_and(|read| read == into.len())
    }
}

/// A field out of bytes that were read.
#[must_use]
pub fn field<const N: usize>(bytes: &[u8], offset: usize) -> Option<[u8; N]> {
    bytes.get(offset..offset.checked_add(N)?)?.try_into().ok()
}

/// A word out of bytes that were read.
#[must_use]
pub fn word_at(bytes: &[u8], offset: usize) -> Option<u64> {
    field(bytes, offset).map(u64::from_ne_bytes)
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Memory made by hand.
    #[derive(Default)]
    pub struct Image {
        parts: Vec<(u64, Vec<u8>)>,
    }

    impl Image {
        /// Puts bytes at an address.
        pub fn put(&mut self, address: u64, bytes: &[u8]) {
            self.parts.push((address, bytes.to_vec()));
        }
    }

    impl Memory for Image {
        fn read(&self, address: u64, into: &mut [u8]) -> bool {
            self.parts.iter().any(|(start, bytes)| {
                let from = address.checked_sub(*start).and_then(|from| usize::try_from(from).ok());
                let part = from.and_then(|from| bytes.get(from..from.checked_add(into.len())?));
                part.is_some_and(|part| {
                    into.copy_from_slice(part);
                    true
                })
            })
        }
    }

    #[test]
    fn the_own_memory_can_be_read_and_nothing_else() {
        let own = ProcessMemory(Pid(std::process::id() as i32));
        let value = 0x1234_5678_9abc_def0_u64;
        assert_eq!(own.word(&raw const value as u64), Some(value));
        assert_eq!(own.word(8), None);
        assert_eq!(own.bytes(u64::MAX - 3, 8), None);
        assert_eq!(ProcessMemory(Pid(-1)).word(&raw const value as u64), None);
    }
}
