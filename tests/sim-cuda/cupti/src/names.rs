//! Names of the traced functions by number.

use std::collections::HashMap;
use std::ffi::{CString, c_char};
use std::sync::OnceLock;

use crate::text;

/// The name of a callback.
pub fn of(domain: u32, cbid: u32) -> Option<*const c_char> {
    static NAMES: OnceLock<HashMap<(u32, u32), &'static str>> = OnceLock::new();
    let names = NAMES.get_or_init(|| {
        let rows = include_str!("../data/cbids.csv").lines().skip(1);
        rows.filter_map(|row| {
            let mut cells = row.split(',');
            let domain = if cells.next()? == "d" { 1 } else { 2 };
            Some(((domain, cells.next()?.parse().ok()?), cells.next()?))
        })
        .collect()
    });
    let name = CString::new(*names.get(&(domain, cbid))?).ok()?;
    Some(text::intern(&name))
}
