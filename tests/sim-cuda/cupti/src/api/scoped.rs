//! Activity records, through the functions of a subscriber (13.2 and newer).

use std::ffi::c_void;

use super::activity::{dump, get_attribute, next_record, set_attribute, switch};
use super::{cupti, put};
use crate::buffer::{self, Callbacks, CompleteInfo, RequestInfo};
use crate::callback;
use crate::driver;
use crate::hook;
use crate::result::{INVALID_KIND, INVALID_PARAMETER, QUEUE_EMPTY};
use crate::selection;
use crate::version;

type Request = unsafe extern "C" fn(*mut *mut u8, *mut usize, *mut usize, *mut RequestInfo);
type Complete = unsafe extern "C" fn(*mut u8, usize, usize, *mut CompleteInfo);

cupti! {
    /// The callbacks that give and take buffers.
    fn cuptiActivityRegisterCallbacks_v2(
        subscriber: *mut c_void, request: Option<Request>, complete: Option<Complete>,
    ) {
        driver::table()?;
        callback::check(subscriber)?;
        let (Some(request), Some(complete)) = (request, complete) else { return Err(INVALID_PARAMETER) };
        buffer::register(Callbacks::V2(request, complete));
        Ok(())
    }

    /// Switches a kind on. Selections of fields are not simulated and are ignored.
    fn cuptiActivityEnable_v2(subscriber: *mut c_void, number: u32, config: *mut c_void) {
        let _ = config;
        callback::check(subscriber)?;
        switch(number, true)
    }

    /// Switches a kind on, and writes the records of the devices, contexts or streams that there are.
    fn cuptiActivityEnableAndDump_v2(subscriber: *mut c_void, number: u32, config: *mut c_void) {
        let _ = config;
        callback::check(subscriber)?;
        dump(number)
    }

    /// Switches a kind off.
    fn cuptiActivityDisable_v2(subscriber: *mut c_void, number: u32, config: *mut c_void) {
        let _ = config;
        callback::check(subscriber)?;
        switch(number, false)
    }

    /// Switches one driver function.
    fn cuptiActivityEnableDriverApi_v2(subscriber: *mut c_void, cbid: u32, enable: u8) {
        driver::table()?;
        callback::check(subscriber)?;
        if selection::set_driver_api(cbid, enable != 0) { Ok(()) } else { Err(INVALID_PARAMETER) }
    }

    /// The same of the runtime, which is not part of the simulation.
    fn cuptiActivityEnableRuntimeApi_v2(subscriber: *mut c_void, cbid: u32, enable: u8) {
        let _ = (cbid, enable);
        driver::table()?;
        callback::check(subscriber)
    }

    /// The next record in a buffer.
    fn cuptiActivityGetNextRecord_v2(subscriber: *mut c_void, buffer: *mut u8, valid: usize, record: *mut *mut u8) {
        callback::check(subscriber)?;
        next_record(buffer, valid, record)
    }

    /// Records dropped since the last question.
    fn cuptiActivityGetNumDroppedRecords_v2(
        subscriber: *mut c_void, context: *mut c_void, stream: u32, dropped: *mut usize,
    ) {
        let _ = (context, stream);
        callback::check(subscriber)?;
        put(dropped, buffer::take_dropped())
    }

    /// Sets an attribute.
    fn cuptiActivitySetAttribute_v2(
        subscriber: *mut c_void, attribute: u32, size: *mut usize, value: *mut c_void,
    ) {
        callback::check(subscriber)?;
        set_attribute(attribute, size, value)
    }

    /// Gives an attribute.
    fn cuptiActivityGetAttribute_v2(
        subscriber: *mut c_void, attribute: u32, size: *mut usize, value: *mut c_void,
    ) {
        callback::check(subscriber)?;
        get_attribute(attribute, size, value)
    }

    /// The kinds that are on.
    fn cuptiActivityGetEnabledKinds(
        subscriber: *mut c_void, kinds: *mut u32, room: *mut u32, count: *mut u32,
    ) {
        callback::check(subscriber)?;
        let on = selection::kinds();
        if !kinds.is_null() && !room.is_null() {
            // SAFETY: not null; a number by the function's contract.
            let entries = unsafe { room.read_unaligned() } as usize;
            for (at, kind) in on.iter().take(entries).enumerate() {
                put(kinds.wrapping_add(at), *kind)?;
            }
        }
        put(count, on.len() as u32)
    }

    /// Bytes of a kind's record in a version from 13.0.0 to this one.
    fn cuptiActivityGetStructSize(kind: u32, of_version: u32, size: *mut usize) {
        let newest = version::get().library / 100;
        if !(1300..=newest).contains(&(of_version / 100)) {
            return Err(INVALID_PARAMETER);
        }
        put(size, version::size_in(kind, of_version).ok_or(INVALID_KIND)?)
    }

    /// Pushes a number of the client's in the calling thread.
    fn cuptiActivityPushExternalCorrelationId_v2(subscriber: *mut c_void, external_kind: u32, id: u64) {
        driver::table()?;
        callback::check(subscriber)?;
        if external_kind == 0 || external_kind > 64 {
            return Err(INVALID_PARAMETER);
        }
        hook::push_external(external_kind, id);
        Ok(())
    }

    /// Pops it.
    fn cuptiActivityPopExternalCorrelationId_v2(subscriber: *mut c_void, external_kind: u32, last: *mut u64) {
        driver::table()?;
        callback::check(subscriber)?;
        let popped = hook::pop_external(external_kind).ok_or(QUEUE_EMPTY)?;
        if last.is_null() { Ok(()) } else { put(last, popped) }
    }
}
