//! The subscriber and its callbacks.

use std::ffi::{c_char, c_void};

use super::{cupti, put};
use crate::callback::{self, Callback};
use crate::driver;
use crate::fault;
use crate::result::{INVALID_PARAMETER, MULTIPLE_SUBSCRIBERS};

/// `CUpti_SubscriberParams`.
#[repr(C)]
pub struct SubscriberParams {
    size: usize,
    name: *const c_char,
    old_name: *mut c_char,
    old_size: usize,
    allow_multiple: u8,
    padding: [u8; 7],
}

cupti! {
    /// Subscribes. There can be one subscriber only.
    fn cuptiSubscribe(handle: *mut *mut c_void, callback: Option<Callback>, user: *mut c_void) {
        driver::table()?;
        if handle.is_null() {
            return Err(INVALID_PARAMETER);
        }
        put(handle, callback::subscribe(callback, user, false)?)
    }

    /// The same through the second interface, which tells the name of the one that is there already.
    fn cuptiSubscribe_v2(
        handle: *mut *mut c_void, callback: Option<Callback>, user: *mut c_void, params: *mut SubscriberParams,
    ) {
        driver::table()?;
        if handle.is_null() {
            return Err(INVALID_PARAMETER);
        }
        let subscribed = callback::subscribe(callback, user, true);
        if subscribed == Err(MULTIPLE_SUBSCRIBERS) && !params.is_null() {
            // SAFETY: not null; the client's parameters by the function's contract.
            let params = unsafe { params.read_unaligned() };
            if params.size >= 32 && !params.old_name.is_null() && params.old_size > 0 {
                let holder = fault::get().subscriber_busy.as_deref().unwrap_or("");
                for (at, byte) in holder.bytes().take(params.old_size - 1).chain(std::iter::once(0)).enumerate() {
                    put(params.old_name.wrapping_add(at), byte as c_char)?;
                }
            }
        }
        put(handle, subscribed?)
    }

    /// Ends the subscription.
    fn cuptiUnsubscribe(handle: *mut c_void) {
        driver::table()?;
        callback::unsubscribe(handle)
    }

    /// Switches one callback.
    fn cuptiEnableCallback(enable: u32, subscriber: *mut c_void, domain: u32, cbid: u32) {
        driver::table()?;
        callback::check(subscriber)?;
        if cbid == u32::MAX {
            return Err(INVALID_PARAMETER);
        }
        callback::enable(domain, cbid, enable != 0)
    }

    /// Switches all callbacks of a domain.
    fn cuptiEnableDomain(enable: u32, subscriber: *mut c_void, domain: u32) {
        driver::table()?;
        callback::check(subscriber)?;
        callback::enable(domain, u32::MAX, enable != 0)
    }

    /// Switches all callbacks.
    fn cuptiEnableAllDomains(enable: u32, subscriber: *mut c_void) {
        driver::table()?;
        callback::check(subscriber)?;
        (1..=6).try_for_each(|domain| callback::enable(domain, u32::MAX, enable != 0))
    }

    /// Whether a callback is on.
    fn cuptiGetCallbackState(enable: *mut u32, subscriber: *mut c_void, domain: u32, cbid: u32) {
        driver::table()?;
        callback::check(subscriber)?;
        put(enable, u32::from(callback::is_on(domain, cbid)))
    }
}
