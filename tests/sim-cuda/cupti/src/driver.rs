//! The way to the driver.

use std::ffi::c_void;
use std::sync::OnceLock;

use sim_abi::{DriverTable, EXPORT_TABLE_UUID};

use crate::fault;
use crate::hook;
use crate::result::{CuptiError, NOT_INITIALIZED, Result, UNKNOWN};
use crate::version;

/// The driver's private table. The first call brings CUPTI up: as the real one does, it loads `libcuda.so.1` and
/// registers itself there.
pub fn table() -> Result<&'static DriverTable> {
    static TABLE: OnceLock<Option<&'static DriverTable>> = OnceLock::new();
    match fault::get().error {
        0 => {}
        code => return Err(CuptiError(code)),
    }
    let table = TABLE.get_or_init(find).ok_or(if version::get().cuda >= (13, 0) {
        UNKNOWN
    } else {
        NOT_INITIALIZED
    })?;
    hook::install(table);
    Ok(table)
}

fn find() -> Option<&'static DriverTable> {
    // SAFETY: a NUL-terminated name; loading the driver runs its constructors, as it must.
    let library = unsafe { libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if library.is_null() {
        return None;
    }
    // SAFETY: a valid library handle and a NUL-terminated name.
    let symbol = unsafe { libc::dlsym(library, c"cuGetExportTable".as_ptr()) };
    if symbol.is_null() {
        return None;
    }
    // SAFETY: the driver API gives the function this type.
    let get: unsafe extern "C" fn(*mut *const c_void, *const [u8; 16]) -> i32 =
        unsafe { std::mem::transmute(symbol) };
    let (mut table, uuid) = (std::ptr::null(), EXPORT_TABLE_UUID);
    // SAFETY: both pointers are valid for the call.
    let result = unsafe { get(&raw mut table, &raw const uuid) };
    if result != 0 || table.is_null() {
        return None;
    }
    // SAFETY: the table of that UUID is the simulated driver's, a static of this type.
    let table = unsafe { &*table.cast::<DriverTable>() };
    (table.size == size_of::<DriverTable>()).then_some(table)
}
