//! Modules, libraries and functions.
//!
//! A function does nothing but take its time. `spin_ns` takes what its first argument says; the others what
//! `SIMCUDA_KERNELS` says of their name.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_void};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use sim_abi::{COLLECTIVE_KERNEL, OverheadKind, ResourceKind};

use crate::clock;
use crate::config;
use crate::context::Context;
use crate::error::{self, Result};
use crate::handle::Table;
use crate::hook;

/// All modules and libraries.
pub static MODULES: Table<Module> = Table::new(6);
/// All functions and kernels.
pub static FUNCTIONS: Table<Function> = Table::new(7);

/// Longest image that is looked through for its entries.
const IMAGE_MAX: usize = 64 << 20;

/// A module or library.
pub struct Module {
    /// Handle.
    pub handle: *mut c_void,
    /// CUPTI's number.
    pub id: u32,
    /// Names of its kernels; `None` for binary images, which are taken to have every kernel.
    entries: Option<Vec<String>>,
    functions: Mutex<BTreeMap<String, Arc<Function>>>,
}

// SAFETY: the handle is a number, never looked into.
unsafe impl Send for Module {}
// SAFETY: as above; the rest is synchronised or fixed.
unsafe impl Sync for Module {}

/// A kernel.
pub struct Function {
    /// Handle.
    pub handle: *mut c_void,
    /// The module.
    pub module: *mut c_void,
    /// Name; lives as long as the process.
    pub name: &'static CStr,
    duration: Option<u64>,
    loaded: AtomicBool,
}

// SAFETY: the handles are numbers, never looked into.
unsafe impl Send for Function {}
// SAFETY: as above; the rest is synchronised or fixed.
unsafe impl Sync for Function {}

/// Loads a module from an image in memory.
pub fn load(image: *const c_void, context: Option<&Context>) -> Result<Arc<Module>> {
    static ID: AtomicU32 = AtomicU32::new(1);
    let start = clock::now();
    let entries = entries(image)?;
    clock::spin_until(start + config::get().module_load_ns);
    let id = ID.fetch_add(1, Ordering::Relaxed);
    let module = MODULES.insert(|handle| Module { handle, id, entries, functions: Mutex::default() });
    hook::resource(ResourceKind::ModuleLoaded, context, None, id);
    Ok(module)
}

/// Takes a module and its functions away.
pub fn unload(handle: *mut c_void, context: Option<&Context>) -> Result {
    let module = MODULES.get(handle).ok_or(error::INVALID_HANDLE)?;
    hook::resource(ResourceKind::ModuleUnloadStarting, context, None, module.id);
    for function in module.functions.lock().unwrap_or_else(PoisonError::into_inner).values() {
        FUNCTIONS.remove(function.handle);
    }
    MODULES.remove(handle);
    Ok(())
}

/// The names of an image's kernels, if it is PTX; `None` if it is a binary.
fn entries(image: *const c_void) -> Result<Option<Vec<String>>> {
    if image.is_null() {
        return Err(error::INVALID_VALUE);
    }
    // SAFETY: the API obliges the caller to pass an image or a NUL-terminated text; both have four bytes.
    let magic = unsafe { image.cast::<[u8; 4]>().read_unaligned() };
    let fat_binary = [0xba55_ed50_u32.to_le_bytes(), 0x4662_43b1_u32.to_le_bytes()];
    if magic == *b"\x7fELF" || fat_binary.contains(&magic) {
        return Ok(None);
    }
    // SAFETY: not a binary, so it has to be NUL-terminated text; the length is bounded all the same.
    let len = unsafe { libc::strnlen(image.cast(), IMAGE_MAX) };
    // SAFETY: `len` bytes were just read.
    let text = unsafe { std::slice::from_raw_parts(image.cast::<u8>(), len) };
    let text = std::str::from_utf8(text).map_err(|_| error::INVALID_IMAGE)?;
    if !text.contains(".version") || !text.contains(".target") {
        return Err(error::INVALID_IMAGE);
    }
    let names = text.split(".entry").skip(1).filter_map(|rest| {
        let name: String = rest
            .trim_start()
            .chars()
            .take_while(|c| c.is_ascii_alphanumeric() || "_$%".contains(*c))
            .collect();
        (!name.is_empty()).then_some(name)
    });
    let names: Vec<String> = names.collect();
    if names.is_empty() { Err(error::INVALID_PTX) } else { Ok(Some(names)) }
}

impl Module {
    /// A kernel by name.
    pub fn function(&self, name: *const c_char) -> Result<Arc<Function>> {
        if name.is_null() {
            return Err(error::INVALID_VALUE);
        }
        // SAFETY: a NUL-terminated string by the API's contract.
        let name = unsafe { CStr::from_ptr(name) };
        let text = name.to_str().map_err(|_| error::NOT_FOUND)?;
        if text.is_empty() || self.entries.as_ref().is_some_and(|entries| !entries.iter().any(|e| e == text))
        {
            return Err(error::NOT_FOUND);
        }
        let mut functions = self.functions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(function) = functions.get(text) {
            return Ok(Arc::clone(function));
        }
        let function = FUNCTIONS.insert(|handle| Function {
            handle,
            module: self.handle,
            name: intern(name),
            duration: duration(text),
            loaded: AtomicBool::new(false),
        });
        functions.insert(text.to_owned(), Arc::clone(&function));
        Ok(function)
    }
}

/// A name that lives as long as the process, as CUPTI's records need.
fn intern(name: &CStr) -> &'static CStr {
    static NAMES: Mutex<BTreeMap<CString, &'static CStr>> = Mutex::new(BTreeMap::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    names.entry(name.to_owned()).or_insert_with(|| Box::leak(name.to_owned().into_boxed_c_str()))
}

/// A kernel's duration by name; `None` if its argument says it.
fn duration(name: &str) -> Option<u64> {
    let config = config::get();
    let known = config.kernels.iter().find(|(known, _)| known == name || name.contains(known.as_str()));
    match known {
        Some((_, ns)) => Some(*ns),
        None if name == "spin_ns" || name.starts_with("_Z7spin_ns") => None,
        None => Some(config.kernel_ns),
    }
}

impl Function {
    /// ns that a launch with these arguments takes.
    pub fn duration(&self, params: *mut *mut c_void, extra: *mut *mut c_void) -> Result<u64> {
        match self.duration {
            Some(duration) => Ok(duration),
            // An hour at most, so that a wrong argument ends the test rather than the day.
            None => Ok(argument(params, extra)?.min(3_600_000_000_000)),
        }
    }

    /// Whether it waits for kernels of other ranks.
    pub fn is_collective(&self) -> bool {
        self.name.to_bytes().windows(COLLECTIVE_KERNEL.len()).any(|part| part == COLLECTIVE_KERNEL.as_bytes())
    }

    /// Its first argument, a u64.
    #[allow(clippy::unused_self, reason = "the arguments are this function's")]
    pub fn first_argument(&self, params: *mut *mut c_void, extra: *mut *mut c_void) -> Result<u64> {
        argument(params, extra)
    }

    /// Loads it, if this is its first launch.
    pub fn ensure_loaded(&self) {
        if !self.loaded.swap(true, Ordering::Relaxed) && config::get().lazy_load_ns > 0 {
            let (start, begin) = (hook::clock(), clock::now());
            clock::spin_until(begin + config::get().lazy_load_ns);
            hook::overhead(OverheadKind::LazyFunctionLoading, start, None, 0);
        }
    }
}

/// The first argument of a kernel, a u64, from either way of passing arguments.
fn argument(params: *mut *mut c_void, extra: *mut *mut c_void) -> Result<u64> {
    const BUFFER_POINTER: usize = 1;
    const BUFFER_SIZE: usize = 2;
    if !params.is_null() {
        // SAFETY: by the API's contract an array of pointers to the arguments.
        let first = unsafe { params.read() };
        if first.is_null() {
            return Err(error::INVALID_VALUE);
        }
        // SAFETY: the kernel's first argument is a u64.
        return Ok(unsafe { first.cast::<u64>().read_unaligned() });
    }
    if extra.is_null() {
        return Err(error::INVALID_VALUE);
    }
    let (mut buffer, mut size) = (std::ptr::null_mut::<c_void>(), 8usize);
    for pair in 0..4 {
        // SAFETY: by the API's contract pairs of key and value that end with a zero key.
        let (key, value) = unsafe {
            let key = extra.add(pair * 2).read() as usize;
            (key, if key == 0 { std::ptr::null_mut() } else { extra.add(pair * 2 + 1).read() })
        };
        match key {
            BUFFER_POINTER => buffer = value,
            // SAFETY: the value is a pointer to a size.
            BUFFER_SIZE if !value.is_null() => size = unsafe { value.cast::<usize>().read_unaligned() },
            0 => break,
            _ => return Err(error::INVALID_VALUE),
        }
    }
    if buffer.is_null() || size < 8 {
        return Err(error::INVALID_VALUE);
    }
    // SAFETY: the buffer has `size` bytes, at least eight.
    Ok(unsafe { buffer.cast::<u64>().read_unaligned() })
}

/// The name of a function, for CUPTI's launch callbacks.
pub fn symbol(function: *mut c_void) -> *const c_char {
    FUNCTIONS.get(function).map_or(std::ptr::null(), |f| f.name.as_ptr())
}
