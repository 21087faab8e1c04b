//! Opens and maps a ring of another process.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering::Acquire};

use tracer_abi::shim::{
    Consumer, RING_ABI_VERSION, RING_HEADER_BYTES, RING_MAGIC, RingFault, RingHeader, is_ring_size,
};

use super::threads::namespace_ids;
use crate::event::Pid;

/// A ring cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RingError {
    /// The file is not there any more, or may not be opened.
    #[error("the ring of process {pid} (file descriptor {fd}) cannot be opened: {source}")]
    Open {
        /// Whose.
        pid: Pid,
        /// Which.
        fd: RawFd,
        /// Why.
        source: io::Error,
    },
    /// The shim has not written its head yet.
    #[error("the ring of process {pid} is not ready yet")]
    NotReady {
        /// Whose.
        pid: Pid,
    },
    /// The ring is that of an ancestor that the process was forked from.
    #[error("process {pid} inherited the ring of another process")]
    Inherited {
        /// Who has it.
        pid: Pid,
    },
    /// A shim of another version.
    #[error(
        "the shim in process {pid} speaks version {version} of the ring, this gtrace version {RING_ABI_VERSION}; start the process again with this gtrace's shim"
    )]
    Version {
        /// Whose.
        pid: Pid,
        /// Its version.
        version: u32,
    },
    /// Not a ring.
    #[error("process {pid} has a file of the ring's name that is no ring: {what}")]
    NotARing {
        /// Whose.
        pid: Pid,
        /// What is wrong.
        what: &'static str,
    },
}

/// A mapped ring with its reading end.
pub(super) struct Ring {
    // Dropped before the mapping that it refers to: fields are dropped in order.
    consumer: Box<Consumer<'static>>,
    mapping: Mapping,
    /// Device and inode: one ring may be found through many processes and descriptors.
    pub(super) identity: (u64, u64),
    /// Its process, for its death.
    pidfd: Option<OwnedFd>,
    pid: Pid,
    /// The process lives in a pid namespace below ours.
    pub(super) nested: bool,
}

/// What may be a ring, held: it can be opened after its process has died, too.
pub(super) struct Found {
    /// Its process.
    pub(super) pid: Pid,
    /// Its number there.
    pub(super) fd: RawFd,
    place: OwnedFd,
    /// For its process's death.
    pidfd: Option<OwnedFd>,
    /// Its process's number in each pid namespace, ours first.
    ids: Vec<u32>,
}

impl Found {
    /// Takes hold of a file of another process, whatever it is.
    ///
    /// # Errors
    /// [`RingError::Open`].
    pub(super) fn look(pid: Pid, fd: RawFd) -> Result<Self, RingError> {
        let failed = |source| RingError::Open { pid, fd, source };
        // First: from here on a later process of the same number is not taken for this one.
        let pidfd = open_pidfd(pid);
        let place = open_place(&format!("/proc/{pid}/fd/{fd}")).map_err(failed)?;
        let status = fs::read_to_string(format!("/proc/{pid}/status")).map_err(failed)?;
        Ok(Self { pid, fd, place, pidfd, ids: namespace_ids(&status) })
    }

    /// Device and inode.
    pub(super) fn identity(&self) -> Option<(u64, u64)> {
        stat(&self.place).ok().map(|(stat, _)| (stat.st_dev, stat.st_ino))
    }
}

impl Ring {
    /// Opens and maps the ring behind a file of another process, without trusting that it is one: nothing is opened before
    /// its type is known, nothing is mapped that could shrink under us.
    ///
    /// # Errors
    /// See [`RingError`].
    pub(super) fn open(found: &Found) -> Result<Self, RingError> {
        let Found { pid, fd, place, pidfd, ids } = found;
        let (pid, fd) = (*pid, *fd);
        let failed = |source| RingError::Open { pid, fd, source };
        let not = |what| RingError::NotARing { pid, what };
        let pidfd = pidfd.as_ref().map(OwnedFd::try_clone).transpose().map_err(failed)?;
        let (stat, is_tmpfs) = stat(place).map_err(failed)?;
        if stat.st_mode & libc::S_IFMT != libc::S_IFREG || !is_tmpfs {
            return Err(not("it is no memfd"));
        }
        let size = u64::try_from(stat.st_size).unwrap_or(0);
        if size == 0 {
            return Err(RingError::NotReady { pid });
        }
        let data_bytes = size.saturating_sub(RING_HEADER_BYTES as u64);
        if !is_ring_size(data_bytes) {
            return Err(not("its size is none of a ring"));
        }
        let file = File::options()
            .read(true)
            .write(true)
            .open(format!("/proc/self/fd/{}", place.as_raw_fd()))
            .map_err(failed)?;
        // SAFETY: asks for a number about an open file.
        let seals = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) };
        let wanted = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
        if seals < 0 {
            return Err(not("it has no seals"));
        }
        if seals & wanted != wanted {
            return Err(RingError::NotReady { pid });
        }

        let mapping = Mapping::new(&file, size as usize).map_err(failed)?;
        let header = mapping.header();
        if header.magic.load(Acquire) != RING_MAGIC {
            return Err(RingError::NotReady { pid });
        }
        let version = header.abi_version.load(Acquire);
        if version != RING_ABI_VERSION {
            return Err(RingError::Version { pid, version });
        }
        if header.header_bytes.load(Acquire) as usize != RING_HEADER_BYTES
            || header.data_bytes.load(Acquire) != data_bytes
        {
            return Err(not("its head states another size"));
        }
        let inner = ids.last().copied().unwrap_or(pid.0 as u32);
        if header.pid.load(Acquire) != inner {
            return Err(RingError::Inherited { pid });
        }
        let consumer = mapping.consumer().map_err(|_| not("its positions contradict each other"))?;
        Ok(Self {
            consumer: Box::new(consumer),
            mapping,
            identity: (stat.st_dev, stat.st_ino),
            pidfd,
            pid,
            nested: ids.len() > 1,
        })
    }

    /// Its head.
    pub(super) fn header(&self) -> &RingHeader {
        self.mapping.header()
    }

    /// Its reading end.
    pub(super) fn consumer(&mut self) -> &mut Consumer<'static> {
        &mut self.consumer
    }

    /// Its reading end, for the record last taken.
    pub(super) fn taken(&self) -> &Consumer<'static> {
        &self.consumer
    }

    /// Begins to read where the last reader stopped by now.
    ///
    /// # Errors
    /// The ring is broken.
    pub(super) fn reopen(&mut self) -> Result<(), RingFault> {
        *self.consumer = self.mapping.consumer()?;
        Ok(())
    }

    /// Whether its process is dead.
    pub(super) fn is_dead(&self) -> bool {
        let Some(pidfd) = &self.pidfd else {
            return !fs::exists(format!("/proc/{}", self.pid)).unwrap_or(true);
        };
        let mut poll = libc::pollfd { fd: pidfd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one pollfd, no waiting.
        let ready = unsafe { libc::poll(&raw mut poll, 1, 0) };
        ready == 1 && poll.revents & libc::POLLIN != 0
    }
}

/// The device and inode behind a file descriptor of another process.
pub(super) fn identity(pid: Pid, fd: RawFd) -> Option<(u64, u64)> {
    let place = open_place(&format!("/proc/{pid}/fd/{fd}")).ok()?;
    stat(&place).ok().map(|(stat, _)| (stat.st_dev, stat.st_ino))
}

/// A process's handle that becomes readable with its death (Linux 5.3 and newer).
fn open_pidfd(pid: Pid) -> Option<OwnedFd> {
    // SAFETY: takes two integers, gives a new file descriptor or an error.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid.0, 0) };
    // SAFETY: just opened, owned by nobody else.
    (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

/// Opens a path as a mere place (`O_PATH`): no driver's open runs, no FIFO blocks.
fn open_place(path: &str) -> io::Result<OwnedFd> {
    use std::os::unix::fs::OpenOptionsExt;
    File::options().read(true).custom_flags(libc::O_PATH).open(path).map(OwnedFd::from)
}

fn stat(place: &OwnedFd) -> io::Result<(libc::stat, bool)> {
    // SAFETY: all zero is a valid value of both structs of integers.
    let (mut stat, mut system) =
        unsafe { (std::mem::zeroed::<libc::stat>(), std::mem::zeroed::<libc::statfs>()) };
    // SAFETY: an open descriptor and structs to fill.
    let done = unsafe {
        libc::fstat(place.as_raw_fd(), &raw mut stat) == 0
            && libc::fstatfs(place.as_raw_fd(), &raw mut system) == 0
    };
    // A memfd of huge pages (hugetlbfs) could fault for want of a page; tmpfs allocates or kills by its own limits.
    if done { Ok((stat, system.f_type == libc::TMPFS_MAGIC)) } else { Err(io::Error::last_os_error()) }
}

/// Memory shared with another process.
struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the memory is only accessed through atomics.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps a file that is sealed against shrinking, of `bytes`: a header and a ring of a size in whole words.
    fn new(file: &File, bytes: usize) -> io::Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at a place of the kernel's choice.
        let start =
            unsafe { libc::mmap(ptr::null_mut(), bytes, protection, libc::MAP_SHARED, file.as_raw_fd(), 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or_else(|| io::Error::other("mapped at address 0"))?;
        Ok(Self { start, bytes })
    }

    fn header(&self) -> &RingHeader {
        // SAFETY: the mapping is page-aligned and larger than a header; atomics of integers have no invalid value.
        unsafe { self.start.cast::<RingHeader>().as_ref() }
    }

    fn consumer(&self) -> Result<Consumer<'static>, RingFault> {
        let words = (self.bytes - RING_HEADER_BYTES) / 8;
        // SAFETY: the mapping reaches that far, is aligned, and lives until `Ring` has dropped its consumer. The length
        // cannot change under us: the file is sealed.
        let (header, data): (&'static RingHeader, &'static [AtomicU64]) = unsafe {
            let data = self.start.add(RING_HEADER_BYTES).cast::<AtomicU64>();
            (self.start.cast::<RingHeader>().as_ref(), std::slice::from_raw_parts(data.as_ptr(), words))
        };
        Consumer::new(header, data)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: our mapping, unused from here on.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}
