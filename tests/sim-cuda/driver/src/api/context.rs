//! Contexts.

use std::ffi::c_void;

use sim_abi::{SyncInfo, SyncKind};

use super::call::{api, put, put_if};
use crate::config;
use crate::context::{self, CONTEXTS, Context};
use crate::error::{self, Result};
use crate::hook;
use crate::submit;

fn create(handle: *mut *mut c_void, flags: u32, device: i32) -> Result {
    let device = u32::try_from(device).map_err(|_| error::INVALID_DEVICE)?;
    if handle.is_null() {
        return Err(error::INVALID_VALUE);
    }
    let made = Context::create(device, flags)?;
    context::push(made.handle)?;
    put(handle, made.handle)
}

fn synchronize(context: &Context) {
    let start = hook::clock();
    submit::wait(&context.tails(), context);
    hook::sync(SyncInfo {
        kind: SyncKind::Context,
        is_query: false,
        context: context.id,
        stream: u32::MAX,
        event: u32::MAX,
        event_sync_id: 0,
        correlation_id: hook::correlation_id(),
        result: 0,
        start,
        end: 0,
    });
}

api! {
    /// Makes a context and makes it the current one.
    fn cuCtxCreate_v2[](handle: *mut *mut c_void, flags: u32, device: i32) {
        create(handle, flags, device)
    }

    /// The same; affinities to multiprocessors are accepted without effect.
    fn cuCtxCreate_v3[](handle: *mut *mut c_void, affinities: *mut c_void, count: i32, flags: u32, device: i32) {
        let _ = (affinities, count);
        create(handle, flags, device)
    }

    /// The same; further parameters are accepted without effect.
    fn cuCtxCreate_v4[](handle: *mut *mut c_void, params: *mut c_void, flags: u32, device: i32) {
        let _ = params;
        create(handle, flags, device)
    }

    /// Waits for its work and takes it away.
    fn cuCtxDestroy_v2[](handle: *mut c_void) {
        let context = context::by_handle(handle)?;
        context.destroy();
        if let Ok(current) = context::current_handle() && current == handle {
            context::pop()?;
        }
        Ok(())
    }

    /// Makes it the current one.
    fn cuCtxSetCurrent[](handle: *mut c_void) {
        context::set_current(handle)
    }

    /// The current one, or null.
    fn cuCtxGetCurrent[](handle: *mut *mut c_void) {
        put(handle, context::current().map_or(std::ptr::null_mut(), |context| context.handle))
    }

    /// Makes it the current one, above the present one.
    fn cuCtxPushCurrent_v2[](handle: *mut c_void) {
        context::push(handle)
    }

    /// Takes the current one off.
    fn cuCtxPopCurrent_v2[](handle: *mut *mut c_void) {
        let popped = context::pop()?;
        put_if(handle, popped);
        Ok(())
    }

    /// The current one's device.
    fn cuCtxGetDevice[](device: *mut i32) {
        put(device, context::current()?.device as i32)
    }

    /// The current one's flags.
    fn cuCtxGetFlags[](flags: *mut u32) {
        put(flags, context::current()?.flags())
    }

    /// Changes the current one's flags.
    fn cuCtxSetFlags[](flags: u32) {
        context::current()?.set_flags(flags);
        Ok(())
    }

    /// A number that names it.
    fn cuCtxGetId[](handle: *mut c_void, id: *mut u64) {
        let context = if handle.is_null() { context::current()? } else { context::by_handle(handle)? };
        put(id, u64::from(context.id))
    }

    /// The interface version that it was made with.
    fn cuCtxGetApiVersion[](handle: *mut c_void, version: *mut u32) {
        if !handle.is_null() {
            CONTEXTS.get(handle).ok_or(error::INVALID_CONTEXT)?;
        }
        put(version, config::get().driver_version as u32)
    }

    /// Waits for all work of the current one.
    fn cuCtxSynchronize[]() {
        synchronize(&*context::current()?);
        Ok(())
    }

    /// Waits for all work of one.
    fn cuCtxSynchronize_v2[](handle: *mut c_void) {
        synchronize(&*context::by_handle(handle)?);
        Ok(())
    }

    /// Priorities that streams can have.
    fn cuCtxGetStreamPriorityRange[](least: *mut i32, greatest: *mut i32) {
        context::current()?;
        put_if(least, 0);
        put_if(greatest, -5);
        Ok(())
    }

    /// A limit; all are the defaults of a device.
    fn cuCtxGetLimit[](value: *mut usize, limit: i32) {
        context::current()?;
        put(value, match limit { 0 => 1024, 1 => 1 << 20, 2 => 8 << 20, 5 => 128, _ => return Err(error::INVALID_VALUE) })
    }

    /// Accepted without effect.
    fn cuCtxSetLimit[](limit: i32, value: usize) {
        let _ = value;
        context::current()?;
        if (0..=6).contains(&limit) { Ok(()) } else { Err(error::INVALID_VALUE) }
    }

    /// Always no preference.
    fn cuCtxGetCacheConfig[](value: *mut i32) {
        context::current()?;
        put(value, 0)
    }

    /// Accepted without effect.
    fn cuCtxSetCacheConfig[](value: i32) {
        let _ = value;
        context::current().map(drop)
    }

    /// Lets the current context reach another's memory. Addresses are one space here, so it only remembers nothing.
    fn cuCtxEnablePeerAccess[](peer: *mut c_void, flags: u32) {
        if flags != 0 {
            return Err(error::INVALID_VALUE);
        }
        context::current()?;
        context::by_handle(peer).map(drop)
    }

    /// The opposite.
    fn cuCtxDisablePeerAccess[](peer: *mut c_void) {
        context::current()?;
        context::by_handle(peer).map(drop)
    }
}
