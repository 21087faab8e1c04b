//! The one subscriber and its callbacks.

use std::ffi::{c_char, c_void};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

use crate::fault;
use crate::result::{INVALID_PARAMETER, MULTIPLE_SUBSCRIBERS, Result};

/// Callback domains.
pub const DRIVER: u32 = 1;
/// Contexts, streams, modules.
pub const RESOURCE: u32 = 3;

const DOMAINS: usize = 8;
const WORDS: usize = 16;

/// A client's callback.
pub type Callback = unsafe extern "C" fn(*mut c_void, u32, u32, *const c_void);

/// `CUpti_CallbackData`.
#[repr(C)]
pub struct CallbackData {
    /// 0 entry, 1 exit.
    pub site: u32,
    /// Name of the function.
    pub name: *const c_char,
    /// Its parameters.
    pub params: *const c_void,
    /// Its result, at the exit.
    pub result: *const i32,
    /// The kernel, for launches.
    pub symbol: *const c_char,
    /// Context.
    pub context: *mut c_void,
    /// Its number.
    pub context_uid: u32,
    /// Kept between entry and exit.
    pub correlation_data: *mut u64,
    /// Number of the call.
    pub correlation_id: u32,
}

/// `CUpti_ResourceData`.
#[repr(C)]
pub struct ResourceData {
    /// Context.
    pub context: *mut c_void,
    /// Stream.
    pub handle: *mut c_void,
    /// Module's description.
    pub descriptor: *const c_void,
}

/// `CUpti_ModuleResourceData`.
#[repr(C)]
pub struct ModuleData {
    /// Number.
    pub id: u32,
    /// Bytes of the binary.
    pub size: usize,
    /// The binary.
    pub binary: *const c_char,
}

#[derive(Clone, Copy)]
struct Subscriber {
    handle: u64,
    callback: Option<Callback>,
    user: u64,
    scoped: bool,
}

static SUBSCRIBER: RwLock<Option<Subscriber>> = RwLock::new(None);
static ANY: AtomicBool = AtomicBool::new(false);
static ENABLED: [[AtomicU64; WORDS]; DOMAINS] = [const { [const { AtomicU64::new(0) }; WORDS] }; DOMAINS];

fn get() -> Option<Subscriber> {
    *SUBSCRIBER.read().unwrap_or_else(PoisonError::into_inner)
}

/// Subscribes; there can be one only. `scoped`: through the second interface.
pub fn subscribe(callback: Option<Callback>, user: *mut c_void, scoped: bool) -> Result<*mut c_void> {
    static NEXT: AtomicU64 = AtomicU64::new(0x5b00_0000_0010);
    let mut subscriber = SUBSCRIBER.write().unwrap_or_else(PoisonError::into_inner);
    if subscriber.is_some() || fault::get().subscriber_busy.is_some() {
        return Err(MULTIPLE_SUBSCRIBERS);
    }
    let handle = NEXT.fetch_add(16, Ordering::Relaxed);
    *subscriber = Some(Subscriber { handle, callback, user: user as u64, scoped });
    Ok(handle as *mut c_void)
}

/// Ends the subscription.
pub fn unsubscribe(handle: *mut c_void) -> Result {
    check(handle)?;
    *SUBSCRIBER.write().unwrap_or_else(PoisonError::into_inner) = None;
    ANY.store(false, Ordering::Release);
    ENABLED.iter().flatten().for_each(|word| word.store(0, Ordering::Release));
    Ok(())
}

/// An error if that is not the subscriber.
pub fn check(handle: *mut c_void) -> Result {
    let known = get().is_some_and(|subscriber| subscriber.handle == handle as u64);
    if known { Ok(()) } else { Err(INVALID_PARAMETER) }
}

/// The subscriber's handle.
pub fn handle() -> Option<*mut c_void> {
    get().map(|subscriber| subscriber.handle as *mut c_void)
}

/// Whether the subscriber came through the second interface, so that the global functions are closed.
pub fn is_scoped() -> bool {
    get().is_some_and(|subscriber| subscriber.scoped)
}

/// Switches one callback. A number of `u32::MAX` means the whole domain.
pub fn enable(domain: u32, cbid: u32, on: bool) -> Result {
    let words = ENABLED.get(domain as usize).filter(|_| domain != 0).ok_or(INVALID_PARAMETER)?;
    if cbid == u32::MAX {
        for word in words {
            word.store(if on { u64::MAX } else { 0 }, Ordering::Release);
        }
    } else {
        let word = words.get(cbid as usize / 64).ok_or(INVALID_PARAMETER)?;
        let bit = 1u64 << (cbid % 64);
        if on {
            word.fetch_or(bit, Ordering::AcqRel);
        } else {
            word.fetch_and(!bit, Ordering::AcqRel);
        }
    }
    let any = ENABLED.iter().flatten().any(|word| word.load(Ordering::Acquire) != 0);
    ANY.store(any, Ordering::Release);
    Ok(())
}

/// Whether one is on.
pub fn is_on(domain: u32, cbid: u32) -> bool {
    ANY.load(Ordering::Acquire)
        && ENABLED
            .get(domain as usize)
            .and_then(|words| words.get(cbid as usize / 64))
            .is_some_and(|word| word.load(Ordering::Acquire) & (1 << (cbid % 64)) != 0)
}

/// Calls the subscriber, if it wants this one.
pub fn call<T>(domain: u32, cbid: u32, data: &T) {
    if !is_on(domain, cbid) {
        return;
    }
    if let Some(subscriber) = get()
        && let Some(callback) = subscriber.callback
    {
        // SAFETY: the client's function, called as its protocol says.
        unsafe { callback(subscriber.user as *mut c_void, domain, cbid, (&raw const *data).cast()) };
    }
}
