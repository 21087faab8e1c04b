//! Strings that CUPTI hands out; they live as long as the process.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char};
use std::sync::{Mutex, PoisonError};

/// A string that lives as long as the process.
pub fn intern(text: &CStr) -> *const c_char {
    static TEXTS: Mutex<BTreeMap<CString, &'static CStr>> = Mutex::new(BTreeMap::new());
    let mut texts = TEXTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = texts.get(text) {
        return known.as_ptr();
    }
    let leaked: &'static CStr = Box::leak(text.to_owned().into_boxed_c_str());
    texts.insert(text.to_owned(), leaked);
    leaked.as_ptr()
}
