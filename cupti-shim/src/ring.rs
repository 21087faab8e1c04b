//! Makes the ring.

use std::io;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering::Release};

use tracer_abi::shim::{
    Producer, RING_ABI_VERSION, RING_DEFAULT_BYTES, RING_HEADER_BYTES, RING_MAGIC, RING_NAME, RingHeader,
    is_ring_size,
};

use crate::clock;

/// Makes a ring of `bytes` and leaks it: it lives as long as the process, and its memory is the recorder's after that.
///
/// The memfd stays open so that the recorder finds it in `/proc/<pid>/fd`; it is closed by exec.
///
/// # Errors
/// The kernel refuses memory, file or seals.
pub fn make(bytes: u64, start_at_load: bool) -> io::Result<Producer<'static>> {
    let bytes = if is_ring_size(bytes) { bytes } else { RING_DEFAULT_BYTES };
    let whole = RING_HEADER_BYTES as u64 + bytes;
    // SAFETY: a name and flags; the call by its number, since its wrapper is younger than the glibc that we support.
    let fd = unsafe {
        libc::syscall(libc::SYS_memfd_create, RING_NAME.as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING)
    };
    let fd = match libc::c_int::try_from(fd) {
        Ok(fd) if fd >= 0 => fd,
        _ => return Err(io::Error::last_os_error()),
    };
    let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
    // SAFETY: our own file descriptor and integers.
    let sealed = unsafe {
        libc::ftruncate(fd, whole as libc::off_t) == 0 && libc::fcntl(fd, libc::F_ADD_SEALS, seals) == 0
    };
    // SAFETY: a new mapping of our own file, at a place of the kernel's choice.
    let start = unsafe {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        libc::mmap(ptr::null_mut(), whole as usize, protection, libc::MAP_SHARED, fd, 0)
    };
    if !sealed || start == libc::MAP_FAILED {
        let error = io::Error::last_os_error();
        // SAFETY: our own file descriptor, used nowhere else.
        unsafe { libc::close(fd) };
        return Err(error);
    }
    // SAFETY: the mapping is page-aligned, as large as a header and the ring, all zero (a valid value of atomics), and
    // is never unmapped. The recorder also writes to it; both sides use atomics only.
    let (header, data) = unsafe {
        let data = start.cast::<AtomicU64>().add(RING_HEADER_BYTES / 8);
        (&*start.cast::<RingHeader>(), std::slice::from_raw_parts(data, bytes as usize / 8))
    };
    header.abi_version.store(RING_ABI_VERSION, Release);
    header.header_bytes.store(RING_HEADER_BYTES as u32, Release);
    header.data_bytes.store(bytes, Release);
    header.pid.store(std::process::id(), Release);
    header.start_at_load.store(start_at_load.into(), Release);
    header.created_ns.store(clock::monotonic_ns(), Release);
    header.subscribe_result.store(-1, Release);
    header.magic.store(RING_MAGIC, Release);
    Ok(Producer::new(header, data))
}
