//! The shared objects of this process.

use std::ffi::{CStr, CString, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Paths of all shared objects that are mapped, as the dynamic linker has them.
#[must_use]
pub fn mapped_objects() -> Vec<CString> {
    unsafe extern "C" fn add(info: *mut libc::dl_phdr_info, _: usize, list: *mut c_void) -> c_int {
        let added = catch_unwind(AssertUnwindSafe(|| {
            // SAFETY: the linker passes a valid entry, and our list.
            let (name, list) = unsafe { ((*info).dlpi_name, &mut *list.cast::<Vec<CString>>()) };
            if !name.is_null() {
                // SAFETY: a string of the linker that lives during this call.
                list.push(unsafe { CStr::from_ptr(name) }.to_owned());
            }
        }));
        c_int::from(added.is_err())
    }
    let mut list: Vec<CString> = Vec::new();
    // SAFETY: `add` is called during this call only.
    unsafe { libc::dl_iterate_phdr(Some(add), (&raw mut list).cast()) };
    list.retain(|path| !path.is_empty());
    list
}

/// The last component of a path.
pub(super) fn base_name(path: &CStr) -> &[u8] {
    path.to_bytes().rsplit(|byte| *byte == b'/').next().unwrap_or_default()
}
