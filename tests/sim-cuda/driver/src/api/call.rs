//! The frame around every exported function: state checks, CUPTI, and no panic into C.

use std::ffi::{CStr, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::error::{self, Result};
use crate::hook::Call;
use crate::module;
use crate::process;

/// What the frame knows of a function and this call of it.
pub struct Site {
    /// CUPTI's number, 0 for functions that it does not trace.
    pub cbid: u32,
    /// Name.
    pub name: &'static CStr,
    /// Parameters, as one struct.
    pub params: *const c_void,
    /// Handle of the kernel for launches, else null.
    pub kernel: *mut c_void,
    /// Whether `cuInit` has to come first.
    pub needs_init: bool,
}

/// Runs a function's body.
pub fn call(site: &Site, body: impl FnOnce() -> Result) -> i32 {
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let usable = process::check();
        if let (true, Err(error)) = (site.needs_init, usable) {
            return error.0;
        }
        if process::is_forked() {
            // Another thread may have held any lock at the fork: nothing but the body, which takes none.
            return body().err().map_or(0, |e| e.0);
        }
        let symbol = if site.kernel.is_null() { std::ptr::null() } else { module::symbol(site.kernel) };
        let frame = Call::enter(site.cbid, site.name, site.params, symbol);
        let result = catch_unwind(AssertUnwindSafe(body)).unwrap_or(Err(error::UNKNOWN));
        let code = result.err().map_or(0, |e| e.0);
        frame.exit(code);
        code
    }));
    outcome.unwrap_or(error::UNKNOWN.0)
}

/// Gives a value to the caller.
pub fn put<T>(to: *mut T, value: T) -> Result {
    if to.is_null() {
        return Err(error::INVALID_VALUE);
    }
    // SAFETY: not null; a place for a `T` by the function's contract.
    unsafe { to.write_unaligned(value) };
    Ok(())
}

/// The same, where the caller may not want it.
pub fn put_if<T>(to: *mut T, value: T) {
    let _ = put(to, value);
}

/// Writes exported functions. In the brackets: `init`, it can be called before `cuInit`; `launches f`, `f` is the
/// kernel that it launches; `twin g`, there is a second one, `g`, whose null stream is the calling thread's own.
macro_rules! api {
    ($( $(#[$meta:meta])* fn $name:ident $options:tt $args:tt $body:block )*) => {
        $( $crate::api::call::function! { $(#[$meta])* $name $options $args $body } )*

        /// A function of this file by its symbol.
        pub(super) fn lookup(symbol: &str) -> Option<*mut std::ffi::c_void> {
            $( $crate::api::call::find!(symbol, $name $options); )*
            None
        }
    };
}

macro_rules! find {
    ($symbol:ident, $name:ident [$(launches $function:ident,)? twin $twin:ident]) => {
        $crate::api::call::find!($symbol, $name []);
        $crate::api::call::find!($symbol, $twin []);
    };
    ($symbol:ident, $name:ident [init]) => { $crate::api::call::find!($symbol, $name []); };
    ($symbol:ident, $name:ident []) => {
        if $symbol == stringify!($name) {
            return Some($name as *const () as *mut std::ffi::c_void);
        }
    };
}

macro_rules! function {
    ($(#[$meta:meta])* $name:ident [$(launches $function:ident,)? twin $twin:ident] $args:tt $body:block) => {
        $crate::api::call::function! { $(#[$meta])* $name [$(launches $function)?] $args $body }
        $crate::api::call::function! {
            /// The same, where the null stream is the calling thread's own.
            $twin [$(launches $function)?] $args {
                let _per_thread = $crate::stream::PerThreadDefault::enter();
                $body
            }
        }
    };
    ($(#[$meta:meta])* $name:ident [init] $args:tt $body:block) => {
        $crate::api::call::function! { @ $(#[$meta])* $name, false, std::ptr::null_mut(), $args $body }
    };
    ($(#[$meta:meta])* $name:ident [] $args:tt $body:block) => {
        $crate::api::call::function! { @ $(#[$meta])* $name, true, std::ptr::null_mut(), $args $body }
    };
    ($(#[$meta:meta])* $name:ident [launches $function:ident] $args:tt $body:block) => {
        $crate::api::call::function! { @ $(#[$meta])* $name, true, $function, $args $body }
    };
    (
        @ $(#[$meta:meta])* $name:ident, $needs_init:literal, $kernel:expr,
        ($($arg:ident: $ty:ty),* $(,)?) $body:block
    ) => {
        $(#[$meta])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($arg: $ty),*) -> i32 {
            #[repr(C)]
            #[allow(dead_code, reason = "read by CUPTI's clients")]
            struct Params {
                $($arg: $ty),*
            }
            const NAME: &std::ffi::CStr =
                match std::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                    Ok(name) => name,
                    Err(_) => c"",
                };
            let params = Params { $($arg),* };
            let site = $crate::api::call::Site {
                cbid: sim_abi::cbid::$name,
                name: NAME,
                params: (&raw const params).cast(),
                kernel: $kernel,
                needs_init: $needs_init,
            };
            $crate::api::call::call(&site, || -> $crate::error::Result { $body })
        }
    };
}

pub(crate) use {api, find, function};
