//! Events.

use std::ffi::c_void;

use super::call::{api, put};
use crate::context;
use crate::error::{self, Result};
use crate::event::{EVENTS, Event};
use crate::stream;

fn find(handle: *mut c_void) -> Result<std::sync::Arc<Event>> {
    EVENTS.get(handle).ok_or(error::INVALID_HANDLE)
}

api! {
    /// Makes an event.
    fn cuEventCreate[](handle: *mut *mut c_void, flags: u32) {
        if handle.is_null() {
            return Err(error::INVALID_VALUE);
        }
        let made = Event::create(&*context::current()?, flags)?;
        put(handle, made.handle)
    }

    /// Records it in a stream.
    fn cuEventRecord[twin cuEventRecord_ptsz](event: *mut c_void, handle: *mut c_void) {
        find(event)?.record(&stream::resolve(handle)?);
        Ok(())
    }

    /// The same.
    fn cuEventRecordWithFlags[twin cuEventRecordWithFlags_ptsz](
        event: *mut c_void, handle: *mut c_void, flags: u32,
    ) {
        if flags & !1 != 0 {
            return Err(error::INVALID_VALUE);
        }
        find(event)?.record(&stream::resolve(handle)?);
        Ok(())
    }

    /// Whether it is reached.
    fn cuEventQuery[](event: *mut c_void) {
        find(event)?.query()
    }

    /// Waits until it is reached.
    fn cuEventSynchronize[](event: *mut c_void) {
        find(event)?.synchronize()
    }

    /// ms from one to another.
    fn cuEventElapsedTime[](ms: *mut f32, start: *mut c_void, end: *mut c_void) {
        put(ms, find(end)?.elapsed_since(&*find(start)?)?)
    }

    /// The same.
    fn cuEventElapsedTime_v2[](ms: *mut f32, start: *mut c_void, end: *mut c_void) {
        put(ms, find(end)?.elapsed_since(&*find(start)?)?)
    }

    /// Takes it away.
    fn cuEventDestroy_v2[](event: *mut c_void) {
        EVENTS.remove(event).map(drop).ok_or(error::INVALID_HANDLE)
    }
}
