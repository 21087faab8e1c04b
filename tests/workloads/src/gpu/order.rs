//! What waits for what: more streams, events, functions that a stream calls on the host, more devices.

use std::ffi::c_void;
use std::sync::atomic::{AtomicI64, Ordering};

use anyhow::Result;
use cudarc::driver::{result, sys};

use super::{Gpu, OrSay as _};
use crate::clock::now_ns;

/// An event of the device that was current when it was made.
#[derive(Clone, Copy)]
pub struct Event(sys::CUevent);

/// A function that a stream calls on the host, and when it ran.
pub struct HostSleep {
    nanoseconds: u64,
    start: AtomicI64,
    end: AtomicI64,
}

impl HostSleep {
    /// Sleeps so long when it is called. It lives for the life of the process.
    pub fn new(nanoseconds: u64) -> &'static Self {
        Box::leak(Box::new(Self { nanoseconds, start: AtomicI64::new(0), end: AtomicI64::new(0) }))
    }

    /// When it last ran.
    pub fn ran(&self) -> (i64, i64) {
        (self.start.load(Ordering::Acquire), self.end.load(Ordering::Acquire))
    }

    unsafe extern "C" fn run(user: *mut c_void) {
        // SAFETY: the pointer that `call_host` passes: an object that lives for ever.
        let this = unsafe { &*user.cast::<Self>() };
        this.start.store(now_ns(), Ordering::Release);
        std::thread::sleep(std::time::Duration::from_nanos(this.nanoseconds));
        this.end.store(now_ns(), Ordering::Release);
    }
}

impl Gpu {
    /// Makes this device the calling thread's current one.
    ///
    /// # Errors
    /// The call fails.
    pub fn make_current(&self) -> Result<()> {
        // SAFETY: the context is retained for the life of the process.
        unsafe { result::ctx::set_current(self.context) }.or_say("cannot make the context current")
    }

    /// The same device with a stream of its own.
    ///
    /// # Errors
    /// The call fails.
    pub fn another_stream(&self) -> Result<Self> {
        let stream =
            result::stream::create(result::stream::StreamKind::NonBlocking).or_say("cannot make a stream")?;
        Ok(Self { context: self.context, spin_ns: self.spin_ns, stream })
    }

    /// An event.
    ///
    /// # Errors
    /// The call fails.
    #[allow(clippy::unused_self, reason = "the call goes to the context that this object made current")]
    pub fn event(&self) -> Result<Event> {
        let flags = sys::CUevent_flags::CU_EVENT_DISABLE_TIMING;
        result::event::create(flags).or_say("cannot make an event").map(Event)
    }

    /// Marks the present end of the stream.
    ///
    /// # Errors
    /// The call fails.
    pub fn record(&self, event: Event) -> Result<()> {
        // SAFETY: event and stream are live.
        unsafe { result::event::record(event.0, self.stream) }.or_say("cannot record an event")
    }

    /// Lets what is queued from now on wait for what was marked.
    ///
    /// # Errors
    /// The call fails.
    pub fn wait_for(&self, event: Event) -> Result<()> {
        let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
        // SAFETY: event and stream are live.
        unsafe { result::stream::wait_event(self.stream, event.0, flags) }.or_say("cannot wait for an event")
    }

    /// Has the stream call a function on the host.
    ///
    /// # Errors
    /// The call fails.
    pub fn call_host(&self, sleep: &'static HostSleep) -> Result<()> {
        let user = std::ptr::from_ref(sleep).cast_mut().cast::<c_void>();
        // SAFETY: the stream is live; the function is given what it wants, which lives for ever.
        unsafe { result::stream::launch_host_function(self.stream, HostSleep::run, user) }
            .or_say("cannot have the stream call a function")
    }
}
