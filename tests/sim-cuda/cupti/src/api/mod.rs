//! The exported C interface.

mod activity;
mod scoped;
mod state;
mod subscription;

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::callback;
use crate::result::{INVALID_PARAMETER, NOT_COMPATIBLE, NOT_IMPLEMENTED, Result, UNKNOWN};
use crate::version;

/// Runs a function's body: no panic into C, and no function that this version does not have.
fn call(name: &str, body: impl FnOnce() -> Result) -> u32 {
    let outcome =
        catch_unwind(AssertUnwindSafe(
            || {
                if version::get().has(name) { body() } else { Err(NOT_IMPLEMENTED) }
            },
        ));
    outcome.unwrap_or(Err(UNKNOWN)).err().map_or(0, |error| error.0)
}

/// The global functions are closed while a subscriber of the second interface is there.
fn global() -> Result {
    if callback::is_scoped() { Err(NOT_COMPATIBLE) } else { Ok(()) }
}

fn put<T>(to: *mut T, value: T) -> Result {
    if to.is_null() {
        return Err(INVALID_PARAMETER);
    }
    // SAFETY: not null; a place for a `T` by the function's contract.
    unsafe { to.write_unaligned(value) };
    Ok(())
}

/// Writes exported functions.
macro_rules! cupti {
    ($( $(#[$meta:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $body:block )*) => {
        $(
            $(#[$meta])*
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($arg: $ty),*) -> u32 {
                $crate::api::call(stringify!($name), || -> $crate::result::Result { $body })
            }
        )*
    };
}

pub(crate) use cupti;
