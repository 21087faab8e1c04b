//! Modules, libraries, functions, kernels.

use std::ffi::{CStr, c_char, c_void};

use super::call::{api, put, put_if};
use crate::context;
use crate::error::{self, Result};
use crate::module::{self, FUNCTIONS, Function, MODULES};

fn function(handle: *mut c_void) -> Result<std::sync::Arc<Function>> {
    FUNCTIONS.get(handle).ok_or(error::INVALID_HANDLE)
}

fn load(handle: *mut *mut c_void, image: *const c_void) -> Result {
    if handle.is_null() {
        return Err(error::INVALID_VALUE);
    }
    let context = context::current()?;
    put(handle, module::load(image, Some(&context))?.handle)
}

api! {
    /// Loads a module from a file.
    fn cuModuleLoad[](handle: *mut *mut c_void, path: *const c_char) {
        if path.is_null() {
            return Err(error::INVALID_VALUE);
        }
        // SAFETY: not null; a NUL-terminated string by the function's contract.
        let path = unsafe { CStr::from_ptr(path) }.to_str().map_err(|_| error::FILE_NOT_FOUND)?;
        let mut image = std::fs::read(path).map_err(|_| error::FILE_NOT_FOUND)?;
        image.extend([0; 4]);
        load(handle, image.as_ptr().cast())
    }

    /// Loads a module from memory.
    fn cuModuleLoadData[](handle: *mut *mut c_void, image: *const c_void) {
        load(handle, image)
    }

    /// The same; options of the compiler are accepted without effect.
    fn cuModuleLoadDataEx[](
        handle: *mut *mut c_void, image: *const c_void, count: u32, options: *mut i32, values: *mut *mut c_void,
    ) {
        let _ = (count, options, values);
        load(handle, image)
    }

    /// The same.
    fn cuModuleLoadFatBinary[](handle: *mut *mut c_void, image: *const c_void) {
        load(handle, image)
    }

    /// Takes it away.
    fn cuModuleUnload[](handle: *mut c_void) {
        module::unload(handle, context::current().ok().as_deref())
    }

    /// Whether kernels are loaded at their first use (2) or with the module (1).
    fn cuModuleGetLoadingMode[](mode: *mut i32) {
        put(mode, if crate::config::get().lazy_load_ns > 0 { 2 } else { 1 })
    }

    /// A function by name.
    fn cuModuleGetFunction[](handle: *mut *mut c_void, owner: *mut c_void, name: *const c_char) {
        let found = MODULES.get(owner).ok_or(error::INVALID_HANDLE)?.function(name)?;
        put(handle, found.handle)
    }

    /// Modules have no global variables here.
    fn cuModuleGetGlobal_v2[](address: *mut u64, len: *mut usize, owner: *mut c_void, name: *const c_char) {
        let _ = (address, len, name);
        MODULES.get(owner).ok_or(error::INVALID_HANDLE)?;
        Err(error::NOT_FOUND)
    }

    /// A function's name.
    fn cuFuncGetName[](name: *mut *const c_char, handle: *mut c_void) {
        put(name, function(handle)?.name.as_ptr())
    }

    /// A function's module.
    fn cuFuncGetModule[](owner: *mut *mut c_void, handle: *mut c_void) {
        put(owner, function(handle)?.module)
    }

    /// Loads it now.
    fn cuFuncLoad[](handle: *mut c_void) {
        function(handle)?.ensure_loaded();
        Ok(())
    }

    /// An attribute: threads per block (0), registers (4); the others are 0.
    fn cuFuncGetAttribute[](value: *mut i32, attribute: i32, handle: *mut c_void) {
        function(handle)?;
        put(value, match attribute { 0 => 1024, 4 => 32, _ => 0 })
    }

    /// Accepted without effect.
    fn cuFuncSetAttribute[](handle: *mut c_void, attribute: i32, value: i32) {
        let _ = (attribute, value);
        function(handle).map(drop)
    }

    /// Accepted without effect.
    fn cuFuncSetCacheConfig[](handle: *mut c_void, preference: i32) {
        let _ = preference;
        function(handle).map(drop)
    }

    /// How many blocks a multiprocessor runs: as its threads allow.
    fn cuOccupancyMaxActiveBlocksPerMultiprocessor[](
        count: *mut i32, handle: *mut c_void, threads: i32, shared: usize,
    ) {
        let _ = shared;
        function(handle)?;
        put(count, 2048 / threads.clamp(1, 1024))
    }

    /// The same.
    fn cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags[](
        count: *mut i32, handle: *mut c_void, threads: i32, shared: usize, flags: u32,
    ) {
        let _ = (shared, flags);
        function(handle)?;
        put(count, 2048 / threads.clamp(1, 1024))
    }

    /// Loads a library from memory.
    fn cuLibraryLoadData[](
        handle: *mut *mut c_void, image: *const c_void, jit: *mut i32, jit_values: *mut *mut c_void, jit_count: u32,
        options: *mut i32, option_values: *mut *mut c_void, option_count: u32,
    ) {
        let _ = (jit, jit_values, jit_count, options, option_values, option_count);
        if handle.is_null() {
            return Err(error::INVALID_VALUE);
        }
        put(handle, module::load(image, context::current().ok().as_deref())?.handle)
    }

    /// Takes it away.
    fn cuLibraryUnload[](handle: *mut c_void) {
        module::unload(handle, context::current().ok().as_deref())
    }

    /// A kernel by name.
    fn cuLibraryGetKernel[](handle: *mut *mut c_void, owner: *mut c_void, name: *const c_char) {
        let found = MODULES.get(owner).ok_or(error::INVALID_HANDLE)?.function(name)?;
        put(handle, found.handle)
    }

    /// A library as a module of the current context: the same.
    fn cuLibraryGetModule[](handle: *mut *mut c_void, owner: *mut c_void) {
        put(handle, MODULES.get(owner).ok_or(error::INVALID_HANDLE)?.handle)
    }

    /// A kernel as a function of the current context: the same.
    fn cuKernelGetFunction[](handle: *mut *mut c_void, kernel: *mut c_void) {
        put(handle, function(kernel)?.handle)
    }

    /// A kernel's name.
    fn cuKernelGetName[](name: *mut *const c_char, kernel: *mut c_void) {
        put(name, function(kernel)?.name.as_ptr())
    }

    /// Where the parameters of a kernel lie: `spin_ns` has one of eight bytes; of others nothing is known.
    fn cuFuncGetParamInfo[](handle: *mut c_void, index: usize, offset: *mut usize, size: *mut usize) {
        let found = function(handle)?;
        if index > 0 || !found.name.to_bytes().ends_with(b"spin_ns") {
            return Err(error::INVALID_VALUE);
        }
        put(offset, 0)?;
        put_if(size, 8);
        Ok(())
    }
}
