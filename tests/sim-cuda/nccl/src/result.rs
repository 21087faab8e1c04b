//! `ncclResult_t`.

use std::ffi::CStr;

/// An error of NCCL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NcclError(pub i32);

/// Result of the inner functions; the border to C turns it into a number.
pub type Result<T = ()> = std::result::Result<T, NcclError>;

/// A CUDA call failed.
pub const CUDA: NcclError = NcclError(1);
/// A system call failed.
pub const SYSTEM: NcclError = NcclError(2);
/// A defect.
pub const INTERNAL: NcclError = NcclError(3);
/// An argument is wrong.
pub const ARGUMENT: NcclError = NcclError(4);
/// The calls do not go together.
pub const USAGE: NcclError = NcclError(5);

/// The text of a result, as `ncclGetErrorString` gives it.
pub fn text(code: i32) -> &'static CStr {
    match code {
        0 => c"no error",
        1 => c"unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
        2 => c"unhandled system error (run with NCCL_DEBUG=INFO for details)",
        3 => c"internal error - please report this issue to the NCCL developers",
        4 => c"invalid argument (run with NCCL_DEBUG=WARN for details)",
        5 => c"invalid usage (run with NCCL_DEBUG=WARN for details)",
        6 => c"remote process exited or there was a network error",
        7 => c"NCCL operation in progress",
        _ => c"unknown result code",
    }
}
