//! `CUptiResult`.

use std::ffi::CStr;

/// An error code of CUPTI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CuptiError(pub u32);

/// Result of the inner functions.
pub type Result<T = ()> = std::result::Result<T, CuptiError>;

macro_rules! errors {
    ($($code:literal $name:ident $long:literal;)*) => {
        $(#[doc = concat!("Code ", $code)] pub const $name: CuptiError = CuptiError($code);)*

        /// The code's name.
        pub fn name(code: u32) -> Option<&'static CStr> {
            match code { 0 => Some(c"CUPTI_SUCCESS"), $($code => Some($long),)* _ => None }
        }
    };
}

errors! {
    1 INVALID_PARAMETER c"CUPTI_ERROR_INVALID_PARAMETER";
    3 INVALID_CONTEXT c"CUPTI_ERROR_INVALID_CONTEXT";
    7 INVALID_OPERATION c"CUPTI_ERROR_INVALID_OPERATION";
    11 NOT_IMPLEMENTED c"CUPTI_ERROR_NOT_IMPLEMENTED";
    12 MAX_LIMIT_REACHED c"CUPTI_ERROR_MAX_LIMIT_REACHED";
    14 NOT_COMPATIBLE c"CUPTI_ERROR_NOT_COMPATIBLE";
    15 NOT_INITIALIZED c"CUPTI_ERROR_NOT_INITIALIZED";
    18 QUEUE_EMPTY c"CUPTI_ERROR_QUEUE_EMPTY";
    20 INVALID_STREAM c"CUPTI_ERROR_INVALID_STREAM";
    21 INVALID_KIND c"CUPTI_ERROR_INVALID_KIND";
    27 NOT_SUPPORTED c"CUPTI_ERROR_NOT_SUPPORTED";
    39 MULTIPLE_SUBSCRIBERS c"CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED";
    999 UNKNOWN c"CUPTI_ERROR_UNKNOWN";
}
