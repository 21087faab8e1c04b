//! The scratch memory in the process: words that the instructions read and write, strings, the instructions themselves,
//! a stack.

use super::target::Addresses;

/// Bytes of it.
pub const BYTES: u64 = 512 << 10;
/// Where the instructions begin.
pub const CODE: u32 = 0x800;
/// The end of the stack, which grows down towards the instructions.
pub const STACK_TOP: u32 = (BYTES - 64) as u32;

/// Not zero once everything is in place.
pub const GO: u32 = 0x00;
/// Address of the instructions.
pub const NEXT: u32 = 0x08;
pub const DLOPEN: u32 = 0x10;
pub const DLSYM: u32 = 0x18;
pub const DLERROR: u32 = 0x20;
pub const ERRNO_LOCATION: u32 = 0x28;
/// The frame of the way back, and the instructions that go there.
pub const FRAME: u32 = 0x30;
pub const TAIL: u32 = 0x38;
/// Flags of `memfd_create`.
pub const MEMFD_FLAGS: u32 = 0x40;
/// Address of the thread's `errno`, and what it was.
pub const ERRNO: u32 = 0x48;
pub const ERRNO_BEFORE: u32 = 0x50;
/// Results: of `memfd_create`, `dlopen`, `dlsym`, the library's entry, `dlerror`.
pub const FD: u32 = 0x60;
pub const HANDLE: u32 = 0x68;
pub const ENTRY: u32 = 0x70;
pub const RESULT: u32 = 0x78;
pub const ERROR: u32 = 0x80;
/// Strings.
pub const MEMFD_NAME: u32 = 0x100;
pub const SYMBOL: u32 = 0x140;
pub const PATH: u32 = 0x180;

/// What is put into the scratch memory.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Where it lies.
    pub base: u64,
    /// The process's functions.
    pub addresses: Addresses,
    /// The frame of the way back.
    pub frame: u64,
    /// The instructions that free the memory and go back.
    pub tail: u64,
    /// Flags of `memfd_create`.
    pub memfd_flags: u32,
}

impl Plan {
    /// The memory's beginning, up to the end of the instructions, with [`GO`] still 0.
    pub fn image(&self) -> Vec<u8> {
        let code = super::arch::second_code(self);
        let mut image = vec![0; CODE as usize + code.len()];
        let words = [
            (NEXT, self.base + u64::from(CODE)),
            (DLOPEN, self.addresses.dlopen),
            (DLSYM, self.addresses.dlsym),
            (DLERROR, self.addresses.dlerror),
            (ERRNO_LOCATION, self.addresses.errno_location),
            (FRAME, self.frame),
            (TAIL, self.tail),
            (MEMFD_FLAGS, u64::from(self.memfd_flags)),
        ];
        let mut put =
            |at: u32, bytes: &[u8]| image[at as usize..at as usize + bytes.len()].copy_from_slice(bytes);
        for (at, value) in words {
            put(at, &value.to_ne_bytes());
        }
        put(MEMFD_NAME, b"libgtrace_cupti.so");
        put(SYMBOL, b"InitializeInjection");
        // No file: what is loaded if nobody writes the real path meanwhile.
        put(PATH, b"/proc/self/fd/none");
        put(CODE, &code);
        image
    }
}

/// The path by which the process opens its own memfd. Spelt as nobody else spells it: the loader takes a library that
/// was once loaded by the same path for the same.
pub fn path(fd: i64) -> Vec<u8> {
    format!("/proc/self/./fd/{fd}\0").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_overlaps() {
        const { assert!(ERROR + 8 <= MEMFD_NAME && MEMFD_NAME + 32 <= SYMBOL && SYMBOL + 32 <= PATH) };
        assert!(path(i64::MAX).len() < (CODE - PATH) as usize);
        assert!(u64::from(STACK_TOP) < BYTES && STACK_TOP.is_multiple_of(16));
        let addresses =
            Addresses { place: 1, place_bytes: vec![], dlopen: 2, dlsym: 3, dlerror: 4, errno_location: 5 };
        let image = Plan { base: 1 << 32, addresses, frame: 6, tail: 7, memfd_flags: 1 }.image();
        assert_eq!(image[..8], [0; 8]);
        assert!(image.len() < STACK_TOP as usize / 2);
    }
}
