//! CUPTI's functions.

use std::ffi::{c_char, c_void};

use libloading::os::unix::Library;

/// `CUptiResult`.
pub type ResultCode = u32;
/// `CUPTI_SUCCESS`.
pub const SUCCESS: ResultCode = 0;
/// `CUpti_SubscriberHandle`.
pub type SubscriberHandle = *mut c_void;
/// Gives CUPTI a buffer: where it is, how large, how many records at most (0: as many as fit).
pub type BufferRequested = unsafe extern "C" fn(*mut *mut u8, *mut usize, *mut usize);
/// Takes a buffer back: context, stream, buffer, its size, bytes of records in it.
pub type BufferCompleted = unsafe extern "C" fn(*mut c_void, u32, *mut u8, usize, usize);
/// Is told events: user data, domain, number, data.
pub type CallbackFunction = unsafe extern "C" fn(*mut c_void, u32, u32, *const c_void);

/// `CUpti_SubscriberParams` of CUDA 13.2 and later.
#[repr(C)]
pub struct SubscriberParams {
    /// Its size: 40.
    pub struct_size: usize,
    /// Our name, at most 53 bytes.
    pub subscriber_name: *const c_char,
    /// Where the name of the subscriber in our way goes.
    pub old_subscriber_name: *mut c_char,
    /// Room for that, at least 64.
    pub old_subscriber_size: usize,
    /// Whether others may subscribe beside us.
    pub allow_multiple_subscribers: u8,
}

/// `CUpti_StateData`: what the STATE domain tells (CUDA 12.2 and later).
#[repr(C)]
pub struct StateData {
    /// The result code.
    pub result: ResultCode,
    /// The message.
    pub message: *const c_char,
}

macro_rules! functions {
    ($(#[doc = $doc:literal] $field:ident = $symbol:literal: fn($($argument:ty),*) -> $result:ty;)*) => {
        /// CUPTI's functions, as far as the library that was found has them.
        #[derive(Clone, Default)]
        pub struct Cupti {
            $(
                #[doc = $doc]
                pub $field: Option<unsafe extern "C" fn($($argument),*) -> $result>,
            )*
        }

        impl Cupti {
            /// Looks every function up.
            #[must_use]
            pub fn load(library: &Library) -> Self {
                Self {
                    // SAFETY: the type is that of CUPTI's headers in all versions from 11.7 to 13.5.
                    $( $field: unsafe { library.get(concat!($symbol, "\0").as_bytes()) }.ok().map(|found| *found), )*
                }
            }
        }
    };
}

functions! {
    #[doc = "Version of the library."]
    get_version = "cuptiGetVersion": fn(*mut u32) -> ResultCode;
    #[doc = "Time on the clock of the records."]
    get_timestamp = "cuptiGetTimestamp": fn(*mut u64) -> ResultCode;
    #[doc = "Becomes the subscriber."]
    subscribe = "cuptiSubscribe": fn(*mut SubscriberHandle, CallbackFunction, *mut c_void) -> ResultCode;
    #[doc = "The same with a name (13.0, useful from 13.3): here it only tells who is in our way."]
    subscribe_v2 = "cuptiSubscribe_v2": fn(*mut SubscriberHandle, CallbackFunction, *mut c_void, *mut SubscriberParams) -> ResultCode;
    #[doc = "Ceases to be it."]
    unsubscribe = "cuptiUnsubscribe": fn(SubscriberHandle) -> ResultCode;
    #[doc = "Switches a domain of call-backs."]
    enable_domain = "cuptiEnableDomain": fn(u32, SubscriberHandle, u32) -> ResultCode;
    #[doc = "Sets who gives and takes buffers."]
    register_callbacks = "cuptiActivityRegisterCallbacks": fn(BufferRequested, BufferCompleted) -> ResultCode;
    #[doc = "Sets the clock of the records (CUDA 11.6)."]
    register_timestamp_callback = "cuptiActivityRegisterTimestampCallback": fn(unsafe extern "C" fn() -> u64) -> ResultCode;
    #[doc = "Switches a kind of records on."]
    enable = "cuptiActivityEnable": fn(u32) -> ResultCode;
    #[doc = "The same, and writes the records of what exists already."]
    enable_and_dump = "cuptiActivityEnableAndDump": fn(u32) -> ResultCode;
    #[doc = "Switches a kind of records off."]
    disable = "cuptiActivityDisable": fn(u32) -> ResultCode;
    #[doc = "Switches one driver call (12.5)."]
    enable_driver_api = "cuptiActivityEnableDriverApi": fn(u32, u8) -> ResultCode;
    #[doc = "Switches one runtime call (12.5)."]
    enable_runtime_api = "cuptiActivityEnableRuntimeApi": fn(u32, u8) -> ResultCode;
    #[doc = "Whether queries that found nothing make synchronisation records (12.8)."]
    enable_all_sync_records = "cuptiActivityEnableAllSyncRecords": fn(u8) -> ResultCode;
    #[doc = "Gives buffers back: 0 those whose records are complete, 1 all."]
    flush_all = "cuptiActivityFlushAll": fn(u32) -> ResultCode;
    #[doc = "Walks a buffer."]
    get_next_record = "cuptiActivityGetNextRecord": fn(*mut u8, usize, *mut *mut u8) -> ResultCode;
    #[doc = "Records that did not fit."]
    get_num_dropped_records = "cuptiActivityGetNumDroppedRecords": fn(*mut c_void, u32, *mut usize) -> ResultCode;
    #[doc = "Which thread ids records carry: 1 is the system's."]
    set_thread_id_type = "cuptiSetThreadIdType": fn(u32) -> ResultCode;
    #[doc = "Sets an attribute of the activity API."]
    set_attribute = "cuptiActivitySetAttribute": fn(u32, *mut usize, *mut c_void) -> ResultCode;
    #[doc = "Size of a kind's record (13.2)."]
    get_struct_size = "cuptiActivityGetStructSize": fn(u32, u32, *mut usize) -> ResultCode;
}

impl Cupti {
    /// The name of a function that is missing and without which nothing can be collected.
    #[must_use]
    pub fn missing(&self) -> Option<&'static str> {
        let required = [
            (self.get_version.is_some(), "cuptiGetVersion"),
            (self.subscribe.is_some(), "cuptiSubscribe"),
            (self.register_callbacks.is_some(), "cuptiActivityRegisterCallbacks"),
            (self.enable.is_some(), "cuptiActivityEnable"),
            (self.disable.is_some(), "cuptiActivityDisable"),
            (self.flush_all.is_some(), "cuptiActivityFlushAll"),
            (self.get_next_record.is_some(), "cuptiActivityGetNextRecord"),
        ];
        required.into_iter().find(|(there, _)| !there).map(|(_, name)| name)
    }
}

/// The name of a result code, with what it means here. Own text: newer versions have none without a driver.
#[must_use]
pub fn result_name(code: ResultCode) -> &'static str {
    match code {
        0 => "success",
        1 => "invalid parameter",
        7 => "invalid operation",
        11 => "not implemented",
        12 => "limit reached",
        14 => "not compatible with another client's session",
        15 => "not initialised: the driver is missing or older than this CUPTI",
        18 => "queue empty",
        21 => "this version does not know the kind",
        27 => "not supported here",
        35 => "insufficient privileges",
        36 => "the old profiler API is in use",
        38 => "a legacy profiler is in use",
        39 => "another profiler is subscribed, or the process has not used CUDA",
        40 => "not supported on virtual GPUs",
        999 => "unknown error: the driver is missing or too old",
        _ => "error",
    }
}
