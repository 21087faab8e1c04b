//! What processes call of the CUDA driver and of CUPTI.

use super::RecordHeader;

/// A call of the driver, seen from outside: without CUPTI nothing else tells what a device has to do.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CudaCallRecord {
    pub header: RecordHeader,
    /// Entry.
    pub start_ns: u64,
    /// Return; equal to `start_ns` where only entries are seen.
    pub end_ns: u64,
    pub tid: u32,
    pub tgid: u32,
    /// Number of the function, as the attachment gave it.
    pub function: u32,
    /// `CUresult`, 0 where only entries are seen.
    pub result: i32,
    /// Handle of the stream, 0: the default stream, or none.
    pub stream: u64,
    /// Handle of an event, or bytes.
    pub argument: u64,
}

/// Where the programs find what a call is about; part of an attachment's cookie.
pub mod call_argument {
    /// Nowhere.
    pub const NONE: u8 = 0xff;
    /// In the structure that the first argument points to, so far in it (`CUlaunchConfig.hStream`).
    pub const CONFIG_STREAM: u8 = 0x40;
    /// Bytes of that.
    pub const CONFIG_STREAM_OFFSET: u64 = 32;
}

/// An attachment's cookie: number of the function, where its stream is, where its event or size is (numbers of arguments from
/// 0, or [`call_argument`]).
#[must_use]
pub const fn call_cookie(function: u16, stream: u8, argument: u8) -> u64 {
    function as u64 | (stream as u64) << 16 | (argument as u64) << 24
}

/// How often another thread than the shim's called a function of CUPTI.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientCall {
    /// How often.
    pub count: u64,
    /// When last.
    pub last_ns: u64,
}
