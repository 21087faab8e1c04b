//! What the driver tells CUPTI, once CUPTI has come.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_void};
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use sim_abi::{
    ApiSite, ContextInfo, EventInfo, Hooks, HostLaunchInfo, MemoryInfo, OpInfo, OverheadInfo, OverheadKind,
    ResourceInfo, ResourceKind, StreamInfo, SyncInfo,
};

use crate::clock;
use crate::context::Context;
use crate::stream::Stream;

static HOOKS: AtomicPtr<Hooks> = AtomicPtr::new(std::ptr::null_mut());
static CORRELATION: AtomicU32 = AtomicU32::new(0);

thread_local!(static CURRENT: Cell<u32> = const { Cell::new(0) });

/// CUPTI's hooks, if it is there.
pub fn hooks() -> Option<&'static Hooks> {
    // SAFETY: CUPTI's promise with `set_hooks` is that they stay valid for the life of the process.
    unsafe { HOOKS.load(Ordering::Acquire).as_ref() }
}

/// Registers CUPTI.
pub extern "C" fn set_hooks(hooks: *const Hooks) {
    HOOKS.store(hooks.cast_mut(), Ordering::Release);
}

/// The number of the driver call that the calling thread is in; 0 outside of one.
pub extern "C" fn correlation_id() -> u32 {
    CURRENT.try_with(Cell::get).unwrap_or(0)
}

/// CUPTI's clock, 0 without CUPTI.
pub fn clock() -> u64 {
    hooks().map_or(0, |hooks| (hooks.clock)())
}

/// One call of a driver function, from entry to return.
pub struct Call {
    hooks: Option<&'static Hooks>,
    site: ApiSite,
    outer: u32,
}

impl Call {
    /// At the entry.
    pub fn enter(cbid: u32, name: &'static CStr, params: *const c_void, symbol: *const c_char) -> Self {
        let correlation_id = CORRELATION.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        let outer = CURRENT.try_with(|current| current.replace(correlation_id)).unwrap_or(0);
        let hooks = hooks();
        let mut site = ApiSite {
            cbid,
            correlation_id,
            name: name.as_ptr(),
            params,
            symbol,
            context: std::ptr::null_mut(),
            context_id: 0,
            start: 0,
            correlation_data: 0,
        };
        if let Some(hooks) = hooks {
            if let Ok(context) = crate::context::current() {
                (site.context, site.context_id) = (context.handle, context.id);
            }
            (hooks.api_enter)(&mut site);
        }
        Self { hooks, site, outer }
    }

    /// At the return.
    pub fn exit(mut self, result: i32) {
        if let Some(hooks) = self.hooks {
            (hooks.api_exit)(&mut self.site, result);
        }
        let _ = CURRENT.try_with(|current| current.set(self.outer));
    }
}

/// Announces work; the result is CUPTI's token.
pub fn op_submit(info: &OpInfo) -> u64 {
    hooks().map_or(0, |hooks| (hooks.op_submit)(info))
}

/// Work is over. Times of CLOCK_MONOTONIC.
pub fn op_done(token: u64, device: u32, start: u64, end: u64) {
    if token != 0
        && let Some(hooks) = hooks()
    {
        (hooks.op_done)(token, device, clock::to_device(device, start), clock::to_device(device, end));
    }
}

/// A synchronisation that began at `info.start` ends now.
pub fn sync(mut info: SyncInfo) {
    if let Some(hooks) = hooks()
        && info.start != 0
    {
        info.end = (hooks.clock)();
        (hooks.sync)(&info);
    }
}

/// An event was put into a stream.
pub fn event_record(info: &EventInfo) {
    if let Some(hooks) = hooks() {
        (hooks.event_record)(info);
    }
}

/// An overhead that began at `start` ends now.
pub fn overhead(kind: OverheadKind, start: u64, stream: Option<&Stream>, queue_length: u32) {
    if let Some(hooks) = hooks()
        && start != 0
    {
        (hooks.overhead)(&OverheadInfo {
            kind,
            correlation_id: correlation_id(),
            start,
            end: (hooks.clock)(),
            queue_length,
            channel: stream.map_or(0, |s| s.id),
            device: stream.map_or(0, |s| s.device),
        });
    }
}

/// Memory came or went.
pub fn memory(info: &MemoryInfo) {
    if let Some(hooks) = hooks() {
        (hooks.memory)(info);
    }
}

/// Where a host function comes from.
#[derive(Clone, Copy)]
pub struct HostOrigin {
    /// Device.
    pub device: u32,
    /// Context number.
    pub context: u32,
    /// Stream number.
    pub stream: u32,
    /// Call.
    pub correlation_id: u32,
    /// Executable graph, 0 for none.
    pub graph_id: u32,
    /// Node, 0 for none.
    pub graph_node_id: u64,
}

/// A host function that began at `start` has returned.
pub fn host_launch(origin: &HostOrigin, start: u64) {
    if let Some(hooks) = hooks()
        && start != 0
    {
        (hooks.host_launch)(&HostLaunchInfo {
            device: origin.device,
            context: origin.context,
            stream: origin.stream,
            correlation_id: origin.correlation_id,
            graph_id: origin.graph_id,
            graph_node_id: origin.graph_node_id,
            start,
            end: (hooks.clock)(),
        });
    }
}

/// A context, stream or module came or goes.
pub fn resource(kind: ResourceKind, context: Option<&Context>, stream: Option<&Stream>, module_id: u32) {
    if let Some(hooks) = hooks() {
        (hooks.resource)(&ResourceInfo {
            kind,
            context: context.map_or(std::ptr::null_mut(), |c| c.handle),
            context_info: context.map_or_else(ContextInfo::default, Context::info),
            stream: stream.map_or(std::ptr::null_mut(), |s| s.handle),
            stream_info: stream.map_or_else(StreamInfo::default, Stream::info),
            module_id,
            correlation_id: correlation_id(),
        });
    }
}
