//! The private table that the simulated CUPTI works with.

use std::ffi::c_void;
use std::sync::atomic::AtomicU32;

use sim_abi::{ContextInfo, DeviceInfo, DriverTable, StreamInfo};

use crate::clock;
use crate::config;
use crate::context::{self, CONTEXTS};
use crate::device::machine;
use crate::device::threads;
use crate::hook;
use crate::stream::{self, PerThreadDefault, STREAMS};

/// The table.
pub static TABLE: DriverTable = DriverTable {
    size: size_of::<DriverTable>(),
    set_hooks: hook::set_hooks,
    advance,
    device_clock,
    device_count,
    device_info,
    for_each_context,
    for_each_stream,
    context_id,
    stream_id,
    correlation_id: hook::correlation_id,
    watch_bell,
};

extern "C" fn watch_bell(bell: *const AtomicU32) {
    // SAFETY: by the table's contract a word that lives as long as the process, or null.
    if let Some(bell) = unsafe { bell.as_ref() } {
        threads::watch_bell(bell);
    }
}

extern "C" fn advance() {
    machine::lock().advance();
}

extern "C" fn device_clock(device: u32) -> u64 {
    clock::to_device(device, clock::now())
}

extern "C" fn device_count() -> u32 {
    config::get().devices
}

extern "C" fn device_info(device: u32, out: &mut DeviceInfo) -> bool {
    if device >= config::get().devices {
        return false;
    }
    *out = super::device::describe(device);
    true
}

extern "C" fn for_each_context(each: extern "C" fn(*mut c_void, &ContextInfo), user: *mut c_void) {
    for context in CONTEXTS.all() {
        each(user, &context.info());
    }
}

extern "C" fn for_each_stream(each: extern "C" fn(*mut c_void, &StreamInfo), user: *mut c_void) {
    for stream in STREAMS.all() {
        each(user, &stream.info());
    }
}

extern "C" fn context_id(handle: *mut c_void) -> u32 {
    let context = if handle.is_null() { context::current() } else { context::by_handle(handle) };
    context.map_or(0, |context| context.id)
}

extern "C" fn stream_id(context: *mut c_void, handle: *mut c_void, per_thread: bool) -> u32 {
    if handle as u64 <= 1 && !per_thread && !context.is_null() {
        return context::by_handle(context).map_or(u32::MAX, |context| context.null_stream.id);
    }
    let _per_thread = per_thread.then(PerThreadDefault::enter);
    stream::resolve(handle).map_or(u32::MAX, |stream| stream.id)
}
