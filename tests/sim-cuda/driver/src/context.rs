//! Contexts, and the stack of them that each thread has.

use std::cell::RefCell;
use std::ffi::{CString, c_void};
use std::os::fd::{FromRawFd as _, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use sim_abi::{ContextInfo, ResourceKind};

use crate::clock;
use crate::config;
use crate::device::channel::{ChannelKey, Mark};
use crate::device::machine;
use crate::device::threads;
use crate::device::wait::Flavour;
use crate::error::{self, Result};
use crate::handle::Table;
use crate::hook;
use crate::stream::{self, Kind, Stream};

/// All contexts.
pub static CONTEXTS: Table<Context> = Table::new(1);

/// A context.
pub struct Context {
    /// Handle.
    pub handle: *mut c_void,
    /// Number, from 1.
    pub id: u32,
    /// Device.
    pub device: u32,
    /// Its legacy default stream.
    pub null_stream: Arc<Stream>,
    flags: AtomicU32,
    channels: Mutex<Vec<(ChannelKey, bool)>>,
    next_stream: AtomicU32,
    next_event: AtomicU32,
    /// By its name the simulated NVML knows that this process has a context.
    _mark: Option<OwnedFd>,
}

// SAFETY: the handle is a number, never looked into.
unsafe impl Send for Context {}
// SAFETY: as above; the rest is synchronised.
unsafe impl Sync for Context {}

impl Context {
    /// Makes a context; it becomes no thread's current one by this.
    pub fn create(device: u32, flags: u32) -> Result<Arc<Self>> {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        if device >= config::get().devices {
            return Err(error::INVALID_DEVICE);
        }
        if flags & !0xff != 0 {
            return Err(error::INVALID_VALUE);
        }
        let start = clock::now();
        threads::start();
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let context = CONTEXTS.insert(|handle| Self {
            handle,
            id,
            device,
            null_stream: Stream::open(handle, id, device, stream::NULL_ID, Kind::Null, 0, 0),
            flags: AtomicU32::new(flags),
            channels: Mutex::new(Vec::new()),
            next_stream: AtomicU32::new(stream::NULL_ID + 6),
            next_event: AtomicU32::new(1),
            _mark: mark(device),
        });
        context.add_channel(context.null_stream.channel, false);
        clock::spin_until(start + config::get().context_ns);
        hook::resource(ResourceKind::ContextCreated, Some(&context), None, 0);
        Ok(context)
    }

    /// Waits for all its work and takes it away.
    pub fn destroy(self: &Arc<Self>) {
        hook::resource(ResourceKind::ContextDestroyStarting, Some(self), None, 0);
        crate::submit::wait(&self.tails(), self);
        stream::close_all(self);
        CONTEXTS.remove(self.handle);
    }

    /// Description for CUPTI.
    pub fn info(&self) -> ContextInfo {
        ContextInfo { id: self.id, device: self.device, null_stream: self.null_stream.id }
    }

    /// Scheduling and other flags.
    pub fn flags(&self) -> u32 {
        self.flags.load(Ordering::Relaxed)
    }

    /// Changes them.
    pub fn set_flags(&self, flags: u32) {
        self.flags.store(flags, Ordering::Relaxed);
    }

    /// How its threads wait. The driver's own choice is to spin while there are CPUs enough.
    pub fn flavour(&self) -> Flavour {
        match self.flags() & 7 {
            2 => Flavour::Yield,
            4 => Flavour::Block,
            _ => Flavour::Spin,
        }
    }

    /// A number for a new stream.
    pub fn next_stream(&self) -> u32 {
        self.next_stream.fetch_add(1, Ordering::Relaxed)
    }

    /// A number for a new event.
    pub fn next_event(&self) -> u32 {
        self.next_event.fetch_add(1, Ordering::Relaxed)
    }

    /// Notes a stream's channel; `blocking` if it takes part in the legacy default stream's rules.
    pub fn add_channel(&self, channel: ChannelKey, blocking: bool) {
        self.channels.lock().unwrap_or_else(PoisonError::into_inner).push((channel, blocking));
    }

    /// Forgets a stream's channel.
    pub fn remove_channel(&self, channel: ChannelKey) {
        self.channels.lock().unwrap_or_else(PoisonError::into_inner).retain(|(c, _)| *c != channel);
    }

    /// Present ends of all its streams.
    pub fn tails(&self) -> Vec<Mark> {
        let channels = self.channels.lock().unwrap_or_else(PoisonError::into_inner).clone();
        machine::lock().tails(channels.iter().map(|(channel, _)| *channel))
    }

    /// Channels of the streams that wait for the legacy default stream and it for them.
    pub fn blocking_channels(&self) -> Vec<ChannelKey> {
        let channels = self.channels.lock().unwrap_or_else(PoisonError::into_inner);
        channels.iter().filter(|(_, blocking)| *blocking).map(|(channel, _)| *channel).collect()
    }
}

/// An open file whose name says that this process has a context on a device. `SIMCUDA_UNMARKED`, for processes that may not
/// make one: no such file, and no other process hears of the context.
fn mark(device: u32) -> Option<OwnedFd> {
    if std::env::var_os("SIMCUDA_UNMARKED").is_some() {
        return None;
    }
    let name = CString::new(format!("sim-cuda-context-{device}-{}", std::process::id())).ok()?;
    // SAFETY: a name and a flag.
    let fd = unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC) };
    // SAFETY: a new file of ours.
    (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd) })
}

thread_local!(static STACK: RefCell<Vec<Option<Arc<Context>>>> = const { RefCell::new(Vec::new()) });

fn with_stack<T>(f: impl FnOnce(&mut Vec<Option<Arc<Context>>>) -> T) -> Result<T> {
    STACK.try_with(|stack| f(&mut stack.borrow_mut())).map_err(|_| error::INVALID_CONTEXT)
}

/// The calling thread's current context.
pub fn current() -> Result<Arc<Context>> {
    let context = with_stack(|stack| stack.last().cloned().flatten())?.ok_or(error::INVALID_CONTEXT)?;
    if CONTEXTS.get(context.handle).is_none() {
        return Err(error::CONTEXT_IS_DESTROYED);
    }
    Ok(context)
}

/// Makes a context the current one in place of the present one.
pub fn set_current(handle: *mut c_void) -> Result {
    let context = if handle.is_null() { None } else { Some(by_handle(handle)?) };
    with_stack(|stack| {
        stack.pop();
        if context.is_some() {
            stack.push(context);
        }
    })
}

/// Makes a context the current one, above the present one.
pub fn push(handle: *mut c_void) -> Result {
    let context = by_handle(handle)?;
    with_stack(|stack| stack.push(Some(context)))
}

/// Takes the current context off; the result is its handle.
pub fn pop() -> Result<*mut c_void> {
    with_stack(Vec::pop)?.flatten().map(|context| context.handle).ok_or(error::INVALID_CONTEXT)
}

/// The context with this handle.
pub fn by_handle(handle: *mut c_void) -> Result<Arc<Context>> {
    CONTEXTS.get(handle).ok_or(error::INVALID_CONTEXT)
}

/// The primary context of a device.
#[derive(Default)]
struct Primary {
    context: Option<Arc<Context>>,
    retained: u32,
    flags: u32,
}

fn with_primary<T>(device: u32, f: impl FnOnce(&mut Primary) -> Result<T>) -> Result<T> {
    static PRIMARIES: Mutex<Vec<Primary>> = Mutex::new(Vec::new());
    if device >= config::get().devices {
        return Err(error::INVALID_DEVICE);
    }
    let mut primaries = PRIMARIES.lock().unwrap_or_else(PoisonError::into_inner);
    primaries.resize_with(config::get().devices as usize, Primary::default);
    f(&mut primaries[device as usize])
}

/// Makes or reuses a device's primary context.
pub fn retain_primary(device: u32) -> Result<Arc<Context>> {
    with_primary(device, |primary| {
        let context = if let Some(context) = &primary.context {
            Arc::clone(context)
        } else {
            Context::create(device, primary.flags)?
        };
        primary.context = Some(Arc::clone(&context));
        primary.retained += 1;
        Ok(context)
    })
}

/// Gives it back; the last one destroys it.
pub fn release_primary(device: u32) -> Result {
    let last = with_primary(device, |primary| {
        if primary.retained == 0 {
            return Err(error::INVALID_CONTEXT);
        }
        primary.retained -= 1;
        Ok(if primary.retained == 0 { primary.context.take() } else { None })
    })?;
    if let Some(context) = last {
        context.destroy();
    }
    Ok(())
}

/// Flags of the primary context, and whether it exists.
pub fn primary_state(device: u32) -> Result<(u32, bool)> {
    with_primary(device, |primary| {
        Ok((primary.context.as_ref().map_or(primary.flags, |c| c.flags()), primary.context.is_some()))
    })
}

/// Sets the primary context's flags.
pub fn set_primary_flags(device: u32, flags: u32) -> Result {
    with_primary(device, |primary| {
        primary.flags = flags;
        if let Some(context) = &primary.context {
            context.set_flags(flags);
        }
        Ok(())
    })
}

/// Handle of the calling thread's current context, even if it is destroyed.
pub fn current_handle() -> Result<*mut c_void> {
    with_stack(|stack| stack.last().cloned().flatten())?.map(|c| c.handle).ok_or(error::INVALID_CONTEXT)
}
