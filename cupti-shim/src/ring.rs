//! Makes the ring.

use std::io;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::Release};

use tracer_abi::shim::{
    Producer, RING_ABI_VERSION, RING_DEFAULT_BYTES, RING_HEADER_BYTES, RING_MAGIC, RING_NAME, RingHeader,
    is_ring_size,
};

use crate::clock;

/// The largest ring of at most `bytes` that the process may make. A file beyond its limit of file size (`ulimit -f`)
/// would not be refused but kill it, by SIGXFSZ.
fn within_file_limit(bytes: u64) -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a struct to fill.
    if unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) } != 0 {
        return None;
    }
    let mut bytes = bytes;
    while bytes + RING_HEADER_BYTES as u64 > limit.rlim_cur {
        bytes /= 2;
    }
    is_ring_size(bytes).then_some(bytes)
}

/// Gets memory for a part of the ring now. Where memory is strictly accounted, a page that is not to be had when it is
/// first written would kill the process by SIGBUS; here it is an error. `false`: there is none.
///
/// Without effect before Linux 5.14: there `make` gets all of it.
#[must_use]
pub fn reserve(ring: &Producer<'static>) -> bool {
    let start = ptr::from_ref(ring.header()).cast_mut().cast::<libc::c_void>();
    let bytes = RING_HEADER_BYTES as u64 + ring.header().data_bytes.load(Relaxed);
    // SAFETY: our own mapping, which is that long.
    let code = unsafe { libc::madvise(start, bytes as usize, libc::MADV_POPULATE_WRITE) };
    code == 0 || io::Error::last_os_error().raw_os_error() == Some(libc::EINVAL)
}

/// Makes a ring of `bytes` and leaks it: it lives as long as the process, and its memory is the recorder's after that.
///
/// The memfd stays open so that the recorder finds it in `/proc/<pid>/fd`; it is closed by exec.
///
/// # Errors
/// The kernel refuses memory, file or seals.
pub fn make(bytes: u64, start_at_load: bool) -> io::Result<Producer<'static>> {
    let bytes = if is_ring_size(bytes) { bytes } else { RING_DEFAULT_BYTES };
    let bytes = within_file_limit(bytes).ok_or(io::ErrorKind::FileTooLarge)?;
    let whole = RING_HEADER_BYTES as u64 + bytes;
    // Where `vm.memfd_noexec` is 2 only files that can never be executed are given. Linux before 6.3 does not know that flag.
    let fd = memfd(libc::MFD_NOEXEC_SEAL).or_else(|error| match error.raw_os_error() {
        Some(libc::EINVAL) => memfd(0),
        _ => Err(error),
    })?;
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
    if !sealed || start == libc::MAP_FAILED || !head_has_memory(fd, start, whole) {
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

/// Makes the file, with one more flag.
fn memfd(flag: libc::c_uint) -> io::Result<libc::c_int> {
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING | flag;
    // SAFETY: a name and flags; the call by its number, since its wrapper is younger than the glibc that we support.
    let fd = unsafe { libc::syscall(libc::SYS_memfd_create, RING_NAME.as_ptr(), flags) };
    match libc::c_int::try_from(fd) {
        Ok(fd) if fd >= 0 => Ok(fd),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Gets memory for the head; for all of it where that cannot be done later through the mapping (before Linux 5.14). The
/// file descriptor is ours for sure only now: programs close what they do not know.
fn head_has_memory(fd: libc::c_int, start: *mut libc::c_void, whole: u64) -> bool {
    // SAFETY: our own mapping and file.
    unsafe {
        libc::madvise(start, RING_HEADER_BYTES, libc::MADV_POPULATE_WRITE) == 0
            || libc::fallocate(fd, 0, 0, whole as libc::off_t) == 0
    }
}
