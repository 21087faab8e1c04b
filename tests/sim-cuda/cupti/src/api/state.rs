//! Version, clock, threads, results, the end.

use std::ffi::{CStr, c_char, c_void};

use super::{cupti, put};
use crate::buffer;
use crate::callback;
use crate::clock::{self, TimestampCallback};
use crate::driver;
use crate::hook;
use crate::names;
use crate::result::{self, INVALID_CONTEXT, INVALID_PARAMETER, INVALID_STREAM};
use crate::selection;
use crate::version;

cupti! {
    /// The library's version: 17 to 28, and from 13.0 on as `xxyyzz`.
    fn cuptiGetVersion(value: *mut u32) {
        // From 13.3 on even this one brings the library up, and fails without a driver.
        if version::get().cuda >= (13, 3) {
            driver::table()?;
        }
        put(value, version::get().library)
    }

    /// The clock that records are on.
    fn cuptiGetTimestamp(value: *mut u64) {
        if version::get().cuda >= (13, 3) {
            driver::table()?;
        }
        put(value, clock::now())
    }

    /// The same, of a subscriber.
    fn cuptiGetTimestamp_v2(subscriber: *mut c_void, value: *mut u64) {
        driver::table()?;
        callback::check(subscriber)?;
        put(value, clock::now())
    }

    /// The name of a result. From 13.3 on there is none without a driver.
    fn cuptiGetResultString(code: u32, text: *mut *const c_char) {
        let known = result::name(code);
        put(text, known.map_or(std::ptr::null(), CStr::as_ptr))?;
        known.map(drop).ok_or(INVALID_PARAMETER)
    }

    /// The text of a result.
    fn cuptiGetErrorMessage(code: u32, text: *mut *const c_char) {
        let known = result::name(code);
        put(text, known.map_or(std::ptr::null(), CStr::as_ptr))?;
        known.map(drop).ok_or(INVALID_PARAMETER)
    }

    /// The name of a traced function.
    fn cuptiGetCallbackName(domain: u32, cbid: u32, name: *mut *const c_char) {
        put(name, names::of(domain, cbid).ok_or(INVALID_PARAMETER)?)
    }

    /// How threads are named.
    fn cuptiSetThreadIdType(value: u32) {
        driver::table()?;
        if value > 1 {
            return Err(INVALID_PARAMETER);
        }
        selection::set_thread_id_type(value);
        Ok(())
    }

    /// How threads are named.
    fn cuptiGetThreadIdType(value: *mut u32) {
        driver::table()?;
        put(value, selection::thread_id_type())
    }

    /// The client's clock for all times to come.
    fn cuptiActivityRegisterTimestampCallback(callback: Option<TimestampCallback>) {
        driver::table()?;
        hook::note_old_contexts();
        clock::register(callback);
        Ok(())
    }

    /// A context's device.
    fn cuptiGetDeviceId(context: *mut c_void, device: *mut u32) {
        struct Search(u32, u32);
        extern "C" fn each(search: *mut c_void, info: &sim_abi::ContextInfo) {
            // SAFETY: the pointer that is passed below.
            let search = unsafe { &mut *search.cast::<Search>() };
            if info.id == search.0 {
                search.1 = info.device;
            }
        }
        let table = driver::table()?;
        let id = (table.context_id)(context);
        let mut search = Search(id, u32::MAX);
        (table.for_each_context)(each, (&raw mut search).cast());
        if id == 0 || search.1 == u32::MAX { Err(INVALID_CONTEXT) } else { put(device, search.1) }
    }

    /// A context's number.
    fn cuptiGetContextId(context: *mut c_void, id: *mut u32) {
        match (driver::table()?.context_id)(context) {
            0 => Err(INVALID_CONTEXT),
            found => put(id, found),
        }
    }

    /// A stream's number.
    fn cuptiGetStreamId(context: *mut c_void, stream: *mut c_void, id: *mut u32) {
        stream_id(context, stream, false, id)
    }

    /// A stream's number.
    fn cuptiGetStreamIdEx(context: *mut c_void, stream: *mut c_void, per_thread: u8, id: *mut u32) {
        stream_id(context, stream, per_thread != 0, id)
    }

    /// Whether some client has used CUPTI in this process.
    fn cuptiIsTracingSessionRunning(running: *mut u8) {
        put(running, u8::from(callback::handle().is_some() || buffer::is_registered()))
    }

    /// Ends it all. The client's buffers do not come back.
    fn cuptiFinalize() {
        selection::clear();
        if let Some(handle) = callback::handle() {
            callback::unsubscribe(handle)?;
        }
        hook::remove();
        buffer::forget();
        clock::register(None);
        Ok(())
    }
}

fn stream_id(context: *mut c_void, stream: *mut c_void, per_thread: bool, id: *mut u32) -> result::Result {
    match (driver::table()?.stream_id)(context, stream, per_thread) {
        u32::MAX => Err(INVALID_STREAM),
        found => put(id, found),
    }
}
