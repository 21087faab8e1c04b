//! Streams.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, PoisonError};

use sim_abi::{ResourceKind, StreamInfo};

use crate::capture::Capture;
use crate::context::{self, Context};
use crate::device::channel::ChannelKey;
use crate::device::machine;
use crate::error::{self, Result};
use crate::handle::Table;
use crate::hook;

/// CUPTI's number of a legacy default stream.
pub const NULL_ID: u32 = 7;

/// Flag of a stream that does not take part in the legacy default stream's rules.
pub const NON_BLOCKING: u32 = 1;

/// All streams.
pub static STREAMS: Table<Stream> = Table::new(2);

/// What sort of stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Legacy default stream of a context.
    Null,
    /// Default stream of one thread.
    PerThread,
    /// Made by the program.
    Made,
}

/// A stream.
pub struct Stream {
    /// Handle.
    pub handle: *mut c_void,
    /// CUPTI's number.
    pub id: u32,
    /// Its context's handle.
    pub context: *mut c_void,
    /// Its context's number.
    pub context_id: u32,
    /// Its device.
    pub device: u32,
    /// Sort.
    pub kind: Kind,
    /// Creation flags.
    pub flags: u32,
    /// Priority.
    pub priority: i32,
    /// Its queue on the device.
    pub channel: ChannelKey,
    correlation_id: u32,
    capture: Mutex<Option<Arc<Capture>>>,
}

// SAFETY: the handles are numbers, never looked into.
unsafe impl Send for Stream {}
// SAFETY: as above; the rest is synchronised or fixed.
unsafe impl Sync for Stream {}

impl Stream {
    /// Opens a stream with its channel.
    pub fn open(
        context: *mut c_void,
        context_id: u32,
        device: u32,
        id: u32,
        kind: Kind,
        flags: u32,
        priority: i32,
    ) -> Arc<Self> {
        let channel = machine::lock().open(device, priority);
        let correlation_id = hook::correlation_id();
        STREAMS.insert(|handle| Self {
            handle,
            id,
            context,
            context_id,
            device,
            kind,
            flags,
            priority,
            channel,
            correlation_id,
            capture: Mutex::new(None),
        })
    }

    /// Makes a stream in a context.
    pub fn create(context: &Context, kind: Kind, flags: u32, priority: i32) -> Result<Arc<Self>> {
        if flags & !NON_BLOCKING != 0 {
            return Err(error::INVALID_VALUE);
        }
        let priority = priority.clamp(-5, 0);
        let id = context.next_stream();
        let stream = Self::open(context.handle, context.id, context.device, id, kind, flags, priority);
        context.add_channel(stream.channel, flags & NON_BLOCKING == 0);
        hook::resource(ResourceKind::StreamCreated, Some(context), Some(&stream), 0);
        Ok(stream)
    }

    /// Takes it away; what is in it is still done.
    pub fn destroy(&self) {
        let context = context::by_handle(self.context).ok();
        hook::resource(ResourceKind::StreamDestroyStarting, context.as_deref(), Some(self), 0);
        if let Some(context) = context {
            context.remove_channel(self.channel);
        }
        machine::lock().close(self.channel);
        STREAMS.remove(self.handle);
    }

    /// Description for CUPTI.
    pub fn info(&self) -> StreamInfo {
        let flag = match self.kind {
            Kind::Null => 3,
            _ if self.flags & NON_BLOCKING != 0 => 2,
            _ => 1,
        };
        let (id, context, priority) = (self.id, self.context_id, self.priority);
        StreamInfo { id, context, priority, flag, correlation_id: self.correlation_id }
    }

    /// The capture that it is in.
    pub fn capture(&self) -> Option<Arc<Capture>> {
        self.capture.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Lets it take part in a capture, or not any more.
    pub fn set_capture(&self, capture: Option<Arc<Capture>>) {
        *self.capture.lock().unwrap_or_else(PoisonError::into_inner) = capture;
    }
}

thread_local! {
    static PER_THREAD: RefCell<HashMap<u64, Arc<Stream>>> = RefCell::default();
    static NULL_IS_PER_THREAD: Cell<bool> = const { Cell::new(false) };
}

/// While this lives, the calling thread's null handle means its per-thread default stream: the `_ptsz` functions.
pub struct PerThreadDefault(());

impl PerThreadDefault {
    /// Begins.
    pub fn enter() -> Self {
        let _ = NULL_IS_PER_THREAD.try_with(|flag| flag.set(true));
        Self(())
    }
}

impl Drop for PerThreadDefault {
    fn drop(&mut self) {
        let _ = NULL_IS_PER_THREAD.try_with(|flag| flag.set(false));
    }
}

/// The stream that a handle means in the calling thread.
pub fn resolve(handle: *mut c_void) -> Result<Arc<Stream>> {
    match handle as u64 {
        0 if NULL_IS_PER_THREAD.try_with(Cell::get).unwrap_or(false) => per_thread(),
        0 | 1 => Ok(Arc::clone(&context::current()?.null_stream)),
        2 => per_thread(),
        _ => {
            context::current()?;
            STREAMS.get(handle).ok_or(error::INVALID_HANDLE)
        }
    }
}

fn per_thread() -> Result<Arc<Stream>> {
    let context = context::current()?;
    let key = context.handle as u64;
    let known = PER_THREAD.try_with(|streams| streams.borrow().get(&key).cloned()).ok().flatten();
    if let Some(stream) = known {
        return Ok(stream);
    }
    let stream = Stream::create(&context, Kind::PerThread, 0, 0)?;
    let _ = PER_THREAD.try_with(|streams| streams.borrow_mut().insert(key, Arc::clone(&stream)));
    Ok(stream)
}

/// Takes all streams of a context away.
pub fn close_all(context: &Context) {
    for stream in STREAMS.all().iter().filter(|stream| stream.context == context.handle) {
        if stream.kind == Kind::Null {
            machine::lock().close(stream.channel);
            STREAMS.remove(stream.handle);
        } else {
            stream.destroy();
        }
    }
}
