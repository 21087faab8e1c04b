//! Activity records, through the global functions.

use std::ffi::c_void;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::{cupti, global, put};
use crate::buffer::{self, Callbacks, Which};
use crate::driver;
use crate::fault;
use crate::hook;
use crate::kind;
use crate::result::{INVALID_KIND, INVALID_PARAMETER, QUEUE_EMPTY, Result};
use crate::selection;
use crate::version;
use crate::worker;

type Request = unsafe extern "C" fn(*mut *mut u8, *mut usize, *mut usize);
type Complete = unsafe extern "C" fn(*mut c_void, u32, *mut u8, usize, usize);

/// Switches a kind on or off.
pub(super) fn switch(number: u32, on: bool) -> Result {
    driver::table()?;
    if !version::get().has_kind(number) {
        return Err(INVALID_KIND);
    }
    if on && number == kind::CONCURRENT_KERNEL {
        static ONCE: std::sync::Once = std::sync::Once::new();
        ONCE.call_once(|| std::thread::sleep(Duration::from_millis(fault::get().slow_enable_ms)));
    }
    selection::set_kind(number, on);
    Ok(())
}

/// Switches a kind on and writes the records of what there is.
pub(super) fn dump(number: u32) -> Result {
    switch(number, true)?;
    hook::dump(number, driver::table()?);
    Ok(())
}

/// Bytes of the attributes' values, by number; 0: there is none.
fn attribute_size(attribute: u32) -> usize {
    match attribute {
        0..=4 | 6 | 7 | 12..=24 => 8,
        5 | 8..=11 => 1,
        _ => 0,
    }
}

static ATTRIBUTES: Mutex<[Option<u64>; 32]> = Mutex::new([None; 32]);

fn default_attribute(attribute: u32) -> u64 {
    match attribute {
        0 | 1 => 3_200_000,
        2 => 250,
        6 => 3,
        8 => u64::from(version::get().cuda < (12, 1)),
        _ => 0,
    }
}

/// Sets an attribute. Only the one of a buffer for each thread (9) changes what the simulation does.
pub(super) fn set_attribute(attribute: u32, size: *mut usize, value: *mut c_void) -> Result {
    driver::table()?;
    let wanted = attribute_size(attribute);
    if size.is_null() || value.is_null() || wanted == 0 || (attribute == 9 && version::get().cuda < (12, 3)) {
        return Err(INVALID_PARAMETER);
    }
    // SAFETY: not null; a size by the function's contract.
    let given = unsafe { size.read_unaligned() };
    if given < wanted {
        return Err(crate::result::INVALID_OPERATION);
    }
    let mut bytes = [0u8; 8];
    // SAFETY: not null; at least `wanted` bytes, as the size says.
    unsafe { bytes.as_mut_ptr().copy_from_nonoverlapping(value.cast(), wanted) };
    let set = u64::from_le_bytes(bytes);
    ATTRIBUTES.lock().unwrap_or_else(PoisonError::into_inner)[attribute as usize & 31] = Some(set);
    if attribute == 9 {
        buffer::set_per_thread(set != 0);
    }
    Ok(())
}

/// Gives an attribute.
pub(super) fn get_attribute(attribute: u32, size: *mut usize, value: *mut c_void) -> Result {
    driver::table()?;
    let wanted = attribute_size(attribute);
    if size.is_null() || value.is_null() || wanted == 0 {
        return Err(INVALID_PARAMETER);
    }
    let set = ATTRIBUTES.lock().unwrap_or_else(PoisonError::into_inner)[attribute as usize & 31];
    let bytes = set.unwrap_or_else(|| default_attribute(attribute)).to_le_bytes();
    // SAFETY: not null; a place for an attribute's value by the function's contract.
    unsafe { value.cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), wanted) };
    put(size, wanted)
}

cupti! {
    /// The callbacks that give and take buffers; the last ones registered win.
    fn cuptiActivityRegisterCallbacks(request: Option<Request>, complete: Option<Complete>) {
        global()?;
        // Up to 13.1 this works without a driver.
        if version::get().cuda >= (13, 2) || fault::get().error != 0 {
            driver::table()?;
        }
        let (Some(request), Some(complete)) = (request, complete) else { return Err(INVALID_PARAMETER) };
        buffer::register(Callbacks::V1(request, complete));
        Ok(())
    }

    /// Switches a kind on.
    fn cuptiActivityEnable(number: u32) {
        global()?;
        switch(number, true)
    }

    /// Switches a kind on, and writes the records of the devices, contexts or streams that there are.
    fn cuptiActivityEnableAndDump(number: u32) {
        global()?;
        dump(number)
    }

    /// Switches a kind off.
    fn cuptiActivityDisable(number: u32) {
        global()?;
        switch(number, false)
    }

    /// Switches a kind on; contexts are not told apart.
    fn cuptiActivityEnableContext(context: *mut c_void, number: u32) {
        let _ = context;
        global()?;
        switch(number, true)
    }

    /// Switches a kind off; contexts are not told apart.
    fn cuptiActivityDisableContext(context: *mut c_void, number: u32) {
        let _ = context;
        global()?;
        switch(number, false)
    }

    /// Switches one driver function, from 12.5 on.
    fn cuptiActivityEnableDriverApi(cbid: u32, enable: u8) {
        global()?;
        driver::table()?;
        if selection::set_driver_api(cbid, enable != 0) { Ok(()) } else { Err(INVALID_PARAMETER) }
    }

    /// The same of the runtime, which is not part of the simulation.
    fn cuptiActivityEnableRuntimeApi(cbid: u32, enable: u8) {
        let _ = (cbid, enable);
        global()?;
        driver::table().map(drop)
    }

    /// Whether queries that are not ready make records too, from 12.8 on.
    fn cuptiActivityEnableAllSyncRecords(enable: u8) {
        driver::table()?;
        selection::set_all_sync(enable != 0);
        Ok(())
    }

    /// Accepted; there are no such times.
    fn cuptiActivityEnableLatencyTimestamps(enable: u8) {
        let _ = enable;
        driver::table().map(drop)
    }

    /// Not on this hardware.
    fn cuptiActivityEnableHWTrace(enable: u8) {
        let _ = enable;
        driver::table()?;
        Err(crate::result::NOT_SUPPORTED)
    }

    /// Accepted; there are no such times.
    fn cuptiActivityEnableCudaEventDeviceTimestamps(enable: u8) {
        let _ = enable;
        driver::table().map(drop)
    }

    /// Gives buffers back: those whose records are all complete, or all of them (1).
    fn cuptiActivityFlushAll(flag: u32) {
        (driver::table()?.advance)();
        buffer::give_back(if flag & 1 != 0 { Which::Forced } else { Which::Complete });
        Ok(())
    }

    /// How often full buffers are looked for; 0: only when they fill up.
    fn cuptiActivityFlushPeriod(ms: u32) {
        driver::table()?;
        worker::set_period(ms);
        Ok(())
    }

    /// The next record in a buffer.
    fn cuptiActivityGetNextRecord(buffer: *mut u8, valid: usize, record: *mut *mut u8) {
        global()?;
        next_record(buffer, valid, record)
    }

    /// Records dropped since the last question.
    fn cuptiActivityGetNumDroppedRecords(context: *mut c_void, stream: u32, dropped: *mut usize) {
        let _ = (context, stream);
        global()?;
        put(dropped, buffer::take_dropped())
    }

    /// Sets an attribute.
    fn cuptiActivitySetAttribute(attribute: u32, size: *mut usize, value: *mut c_void) {
        set_attribute(attribute, size, value)
    }

    /// Gives an attribute.
    fn cuptiActivityGetAttribute(attribute: u32, size: *mut usize, value: *mut c_void) {
        get_attribute(attribute, size, value)
    }

    /// Pushes a number of the client's in the calling thread.
    fn cuptiActivityPushExternalCorrelationId(external_kind: u32, id: u64) {
        driver::table()?;
        if external_kind == 0 || external_kind > 64 {
            return Err(INVALID_PARAMETER);
        }
        hook::push_external(external_kind, id);
        Ok(())
    }

    /// Pops it.
    fn cuptiActivityPopExternalCorrelationId(external_kind: u32, last: *mut u64) {
        driver::table()?;
        let popped = hook::pop_external(external_kind).ok_or(QUEUE_EMPTY)?;
        if last.is_null() { Ok(()) } else { put(last, popped) }
    }
}

/// The record after `*record`.
pub(super) fn next_record(buffer: *mut u8, valid: usize, record: *mut *mut u8) -> Result {
    if record.is_null() {
        return Err(INVALID_PARAMETER);
    }
    // SAFETY: not null; a record pointer by the function's contract.
    let present = unsafe { record.read_unaligned() };
    put(record, buffer::next(buffer, valid, present)?)
}
