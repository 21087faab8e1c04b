//! Initialisation, errors, entry points.

use std::ffi::{CStr, c_char, c_void};

use super::call::{api, put, put_if};
use crate::config;
use crate::error;
use crate::process;

/// Flag of `cuGetProcAddress`: the null stream is to be the calling thread's own.
const PER_THREAD_DEFAULT_STREAM: u64 = 2;

api! {
    /// Initialises the driver; loads the library in `CUDA_INJECTION64_PATH`.
    fn cuInit[init](flags: u32) {
        process::init(flags)
    }

    /// The CUDA version of the driver.
    fn cuDriverGetVersion[init](version: *mut i32) {
        put(version, config::get().driver_version)
    }

    /// The name of an error code.
    fn cuGetErrorName[init](code: i32, name: *mut *const c_char) {
        let known = error::name(code);
        put(name, known.map_or(std::ptr::null(), CStr::as_ptr))?;
        known.map(drop).ok_or(error::INVALID_VALUE)
    }

    /// The text of an error code.
    fn cuGetErrorString[init](code: i32, text: *mut *const c_char) {
        let known = error::text(code);
        put(text, known.map_or(std::ptr::null(), CStr::as_ptr))?;
        known.map(drop).ok_or(error::INVALID_VALUE)
    }

    /// An entry point by its name without version.
    fn cuGetProcAddress[init](symbol: *const c_char, function: *mut *mut c_void, version: i32, flags: u64) {
        entry_point(symbol, function, version, flags, std::ptr::null_mut())
    }

    /// The same, which says why it found none.
    fn cuGetProcAddress_v2[init](
        symbol: *const c_char, function: *mut *mut c_void, version: i32, flags: u64, status: *mut i32,
    ) {
        entry_point(symbol, function, version, flags, status)
    }

    /// Private tables. There is one, for the simulated CUPTI.
    fn cuGetExportTable[init](table: *mut *const c_void, uuid: *const [u8; 16]) {
        if uuid.is_null() {
            return Err(error::INVALID_VALUE);
        }
        // SAFETY: not null; a UUID by the function's contract.
        let uuid = unsafe { uuid.read_unaligned() };
        if uuid != sim_abi::EXPORT_TABLE_UUID {
            put(table, std::ptr::null())?;
            return Err(error::NOT_FOUND);
        }
        put(table, (&raw const super::table::TABLE).cast())
    }

    /// Does nothing, as no profiler of the old interface is there.
    fn cuProfilerStart[]() {
        Ok(())
    }

    /// Does nothing, as no profiler of the old interface is there.
    fn cuProfilerStop[]() {
        Ok(())
    }
}

fn entry_point(
    symbol: *const c_char,
    function: *mut *mut c_void,
    version: i32,
    flags: u64,
    status: *mut i32,
) -> error::Result {
    if symbol.is_null() || flags & !3 != 0 {
        return Err(error::INVALID_VALUE);
    }
    // SAFETY: not null; a NUL-terminated string by the function's contract.
    let name = unsafe { CStr::from_ptr(symbol) }.to_str().map_err(|_| error::NOT_FOUND)?;
    let found = candidates(name, version, flags).iter().find_map(|symbol| super::lookup(symbol));
    put(function, found.unwrap_or(std::ptr::null_mut()))?;
    put_if(status, i32::from(found.is_none()));
    found.map(drop).ok_or(error::NOT_FOUND)
}

/// The symbols that a name can mean for a program of a CUDA version, the wanted one first.
fn candidates(name: &str, version: i32, flags: u64) -> Vec<String> {
    let from = |suffix: &str| match (name, suffix) {
        ("cuCtxSynchronize", "_v2") => 13000,
        ("cuEventElapsedTime", "_v2") => 12080,
        ("cuCtxCreate", "_v4") => 12050,
        ("cuMemAdvise" | "cuMemPrefetchAsync", "_v2") => 12020,
        ("cuCtxCreate", "_v3") | ("cuDeviceGetUuid", "_v2") => 11040,
        _ => 0,
    };
    let versions = ["_v4", "_v3", "_v2", ""].into_iter().filter(|suffix| from(suffix) <= version);
    versions
        .flat_map(|suffix| {
            let plain = format!("{name}{suffix}");
            if flags & PER_THREAD_DEFAULT_STREAM == 0 {
                vec![plain]
            } else {
                vec![format!("{plain}_ptsz"), format!("{plain}_ptds"), plain]
            }
        })
        .collect()
}
