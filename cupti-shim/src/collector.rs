//! What the call-backs and the worker share.

use std::ptr;
use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

use tracer_abi::shim::{Producer, RingHeader};

use crate::bind::Cupti;
use crate::layout::Version;
use crate::names::Names;
use crate::pool::Pool;

/// The state of the shim once CUPTI is bound. Made once, never freed: CUPTI may call back at any time.
pub struct Collector {
    /// Where records go.
    pub ring: Producer<'static>,
    /// CUPTI.
    pub cupti: Cupti,
    /// Its version.
    pub version: Version,
    /// Buffers.
    pub pool: Pool,
    /// Kernel names.
    pub names: Names,
    /// The process that it belongs to: a child forked without our handler (raw `clone`) has another id.
    pub pid: u32,
    /// Whether anything may be done. Cleared for ever in a forked child and after the end.
    pub armed: AtomicBool,
    /// The recorder's last flush is under way: records without times are of work that is not over, and no defect.
    pub last_flush: AtomicBool,
    /// Buffers that came back with records in them: only then CUPTI's own clock is the records'.
    pub completed: AtomicU64,
}

static COLLECTOR: AtomicPtr<Collector> = AtomicPtr::new(ptr::null_mut());

impl Collector {
    /// A collector for this process that is not published yet.
    ///
    /// # Errors
    /// No address space for buffers.
    pub fn new(ring: Producer<'static>, cupti: Cupti, version: Version) -> std::io::Result<Self> {
        Ok(Self {
            ring,
            cupti,
            version,
            pool: Pool::new()?,
            names: Names::new(),
            pid: std::process::id(),
            armed: AtomicBool::new(true),
            last_flush: AtomicBool::new(false),
            completed: AtomicU64::new(0),
        })
    }

    /// Publishes it to the call-backs.
    pub fn publish(self) -> &'static Self {
        let collector = Box::leak(Box::new(self));
        COLLECTOR.store(collector, Release);
        collector
    }

    /// The one that was published.
    #[must_use]
    pub fn get() -> Option<&'static Self> {
        // SAFETY: null, or leaked by `publish`.
        unsafe { COLLECTOR.load(Acquire).as_ref() }
    }

    /// The head of the ring.
    #[must_use]
    pub fn header(&self) -> &'static RingHeader {
        self.ring.header()
    }

    /// Whether this is the process that it was made for, and not over.
    #[must_use]
    pub fn is_armed(&self) -> bool {
        self.armed.load(Relaxed) && std::process::id() == self.pid
    }
}
