//! `CUresult`: the codes in use, with their names and texts.

use std::ffi::CStr;

/// An error code of the driver API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CuError(pub i32);

/// Result of the inner functions; the border to C turns it into a number.
pub type Result<T = ()> = std::result::Result<T, CuError>;

macro_rules! errors {
    ($($code:literal $name:ident $long:literal $text:literal;)*) => {
        $(#[doc = $text] pub const $name: CuError = CuError($code);)*

        /// The code's name, as `cuGetErrorName` gives it.
        pub fn name(code: i32) -> Option<&'static CStr> {
            match code { 0 => Some(c"CUDA_SUCCESS"), $($code => Some($long),)* _ => None }
        }

        /// The code's text, as `cuGetErrorString` gives it.
        pub fn text(code: i32) -> Option<&'static CStr> {
            const fn c(s: &str) -> &CStr {
                match CStr::from_bytes_with_nul(s.as_bytes()) { Ok(c) => c, Err(_) => c"" }
            }
            match code { 0 => Some(c"no error"), $($code => Some(const { c(concat!($text, "\0")) }),)* _ => None }
        }
    };
}

errors! {
    1 INVALID_VALUE c"CUDA_ERROR_INVALID_VALUE" "invalid argument";
    2 OUT_OF_MEMORY c"CUDA_ERROR_OUT_OF_MEMORY" "out of memory";
    3 NOT_INITIALIZED c"CUDA_ERROR_NOT_INITIALIZED" "initialization error";
    100 NO_DEVICE c"CUDA_ERROR_NO_DEVICE" "no CUDA-capable device is detected";
    101 INVALID_DEVICE c"CUDA_ERROR_INVALID_DEVICE" "invalid device ordinal";
    200 INVALID_IMAGE c"CUDA_ERROR_INVALID_IMAGE" "device kernel image is invalid";
    201 INVALID_CONTEXT c"CUDA_ERROR_INVALID_CONTEXT" "invalid device context";
    218 INVALID_PTX c"CUDA_ERROR_INVALID_PTX" "a PTX JIT compilation failed";
    301 FILE_NOT_FOUND c"CUDA_ERROR_FILE_NOT_FOUND" "file not found";

    400 INVALID_HANDLE c"CUDA_ERROR_INVALID_HANDLE" "invalid resource handle";
    500 NOT_FOUND c"CUDA_ERROR_NOT_FOUND" "named symbol not found";
    600 NOT_READY c"CUDA_ERROR_NOT_READY" "device not ready";



    709 CONTEXT_IS_DESTROYED c"CUDA_ERROR_CONTEXT_IS_DESTROYED" "context is destroyed";
    712 HOST_MEMORY_ALREADY_REGISTERED c"CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED" "part or all of the requested memory range is already mapped";
    713 HOST_MEMORY_NOT_REGISTERED c"CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED" "pointer does not correspond to a registered memory region";
    801 NOT_SUPPORTED c"CUDA_ERROR_NOT_SUPPORTED" "operation not supported";
    900 CAPTURE_UNSUPPORTED c"CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED" "operation not permitted when stream is capturing";
    901 CAPTURE_INVALIDATED c"CUDA_ERROR_STREAM_CAPTURE_INVALIDATED" "operation failed due to a previous error during capture";
    904 CAPTURE_UNJOINED c"CUDA_ERROR_STREAM_CAPTURE_UNJOINED" "capturing stream has unjoined work";
    905 CAPTURE_ISOLATION c"CUDA_ERROR_STREAM_CAPTURE_ISOLATION" "dependency created on uncaptured work in another stream";
    907 CAPTURED_EVENT c"CUDA_ERROR_CAPTURED_EVENT" "operation not permitted on an event last recorded in a capturing stream";
    910 GRAPH_EXEC_UPDATE_FAILURE c"CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE" "the graph cannot be updated: it has other nodes";
    999 UNKNOWN c"CUDA_ERROR_UNKNOWN" "unknown error";
}
