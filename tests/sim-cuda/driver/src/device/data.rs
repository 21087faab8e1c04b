//! The data plane: really moves the bytes.
//!
//! Jobs are done one by one in the order in which their operations start on the devices, which respects every
//! dependency between them. Small ones are done on the spot; large ones in a thread of their own, `sim-gpu-dma`, so that
//! nobody holds the machine's lock meanwhile. A host thread that waits for an operation also waits for its job.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};

use crate::device::threads;
use crate::memory::Backing;

/// Bytes up to which a job is done on the spot.
const SMALL: usize = 64 << 10;

/// Host address of some bytes, and what keeps them mapped (nothing does for a program's own memory).
#[derive(Clone)]
pub struct Place {
    /// Address.
    pub address: *mut u8,
    /// Keeps it mapped.
    #[allow(dead_code, reason = "held only to be dropped")]
    pub keep: Option<Arc<Backing>>,
}

// SAFETY: only an address; it is used by the data plane alone, under the rules of the copy functions of the API.
unsafe impl Send for Place {}
// SAFETY: as above; a shared place is only copied.
unsafe impl Sync for Place {}

/// One effect on memory.
#[derive(Clone)]
pub enum DataJob {
    /// Copies.
    Copy {
        /// From.
        src: Place,
        /// To.
        dst: Place,
        /// Bytes.
        len: usize,
    },
    /// Copies what the caller handed over at the call.
    Staged {
        /// The bytes.
        bytes: Arc<[u8]>,
        /// To.
        dst: Place,
    },
    /// Fills with a value of 1, 2 or 4 bytes.
    Fill {
        /// Where.
        dst: Place,
        /// Value.
        value: u32,
        /// Bytes of the value.
        width: usize,
        /// How many of it.
        count: usize,
    },
    /// Lets memory go, in stream order.
    Release(#[allow(dead_code, reason = "held only to be dropped")] Arc<Backing>),
}

impl DataJob {
    fn bytes(&self) -> usize {
        match self {
            DataJob::Copy { len, .. } => *len,
            DataJob::Staged { bytes, .. } => bytes.len(),
            DataJob::Fill { width, count, .. } => width * count,
            DataJob::Release(_) => 0,
        }
    }

    /// Whether it takes a thread of its own.
    pub fn is_large(&self) -> bool {
        self.bytes() > SMALL
    }

    fn run(&self) {
        match self {
            DataJob::Copy { src, dst, len } => {
                // SAFETY: the API obliges the caller to keep both ranges valid until the copy is over; device and
                // pinned ranges were checked and are kept mapped. `copy` allows that they overlap.
                unsafe { std::ptr::copy(src.address, dst.address, *len) }
            }
            DataJob::Staged { bytes, dst } => {
                // SAFETY: as above; the source is owned.
                unsafe { std::ptr::copy(bytes.as_ptr(), dst.address, bytes.len()) }
            }
            DataJob::Fill { dst, value, width, count } => {
                fill(dst.address, &value.to_le_bytes()[..*width], *count);
            }
            DataJob::Release(_) => {}
        }
    }
}

fn fill(address: *mut u8, pattern: &[u8], count: usize) {
    // SAFETY: the range was checked to lie in one allocation, which the job keeps mapped; nobody else has a reference
    // to device memory.
    let bytes = unsafe { std::slice::from_raw_parts_mut(address, pattern.len() * count) };
    if let [byte] = pattern {
        bytes.fill(*byte);
    } else {
        bytes.chunks_exact_mut(pattern.len()).for_each(|chunk| chunk.copy_from_slice(pattern));
    }
}

/// The queue of jobs.
pub struct DataPlane {
    queue: Mutex<VecDeque<(u64, DataJob)>>,
    more: Condvar,
    less: Condvar,
    issued: AtomicU64,
    done: AtomicU64,
    thread: OnceLock<()>,
}

/// The one of this process.
pub static PLANE: DataPlane = DataPlane {
    queue: Mutex::new(VecDeque::new()),
    more: Condvar::new(),
    less: Condvar::new(),
    issued: AtomicU64::new(0),
    done: AtomicU64::new(0),
    thread: OnceLock::new(),
};

impl DataPlane {
    /// Takes a job; the result is its ticket. Called under the machine's lock, so tickets follow the devices' order.
    pub fn push(&self, job: DataJob) -> u64 {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let ticket = self.issued.load(Ordering::Relaxed) + 1;
        self.issued.store(ticket, Ordering::Relaxed);
        if !job.is_large() && self.done.load(Ordering::Acquire) + 1 == ticket {
            job.run();
            self.done.store(ticket, Ordering::Release);
            return ticket;
        }
        self.thread.get_or_init(|| threads::spawn("sim-gpu-dma", || PLANE.work()));
        queue.push_back((ticket, job));
        self.more.notify_one();
        ticket
    }

    /// All jobs up to this one are done.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Acquire)
    }

    /// Sleeps until a job is done.
    pub fn wait_for(&self, ticket: u64) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        while self.done() < ticket {
            queue = self.less.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn work(&self) {
        loop {
            let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
            let (ticket, job) = loop {
                match queue.pop_front() {
                    Some(next) => break next,
                    None => queue = self.more.wait(queue).unwrap_or_else(PoisonError::into_inner),
                }
            };
            drop(queue);
            job.run();
            drop(job);
            let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
            self.done.store(ticket, Ordering::Release);
            self.less.notify_all();
            drop(queue);
            threads::data_moved();
        }
    }
}
