//! The state of the process: whether the driver is initialised, and whether a fork has made it unusable.

use std::ffi::{CString, c_int};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use sim_abi::ResourceKind;

use crate::config;
use crate::error::{self, Result};
use crate::hook;

static INITIALISED: AtomicBool = AtomicBool::new(false);
static FORKED: AtomicBool = AtomicBool::new(false);
static INJECTED: AtomicBool = AtomicBool::new(false);

/// An error unless `cuInit` was called in this very process.
pub fn check() -> Result {
    if INITIALISED.load(Ordering::Acquire) && !FORKED.load(Ordering::Relaxed) {
        Ok(())
    } else {
        Err(error::NOT_INITIALIZED)
    }
}

/// Whether this process is a child that was forked after `cuInit`.
pub fn is_forked() -> bool {
    FORKED.load(Ordering::Relaxed)
}

/// `cuInit`.
pub fn init(flags: u32) -> Result {
    static INIT: Mutex<()> = Mutex::new(());
    if flags != 0 {
        return Err(error::INVALID_VALUE);
    }
    if FORKED.load(Ordering::Relaxed) {
        return Err(error::NOT_INITIALIZED);
    }
    let guard = INIT.lock().unwrap_or_else(PoisonError::into_inner);
    if INITIALISED.load(Ordering::Acquire) {
        return Ok(());
    }
    if config::get().devices == 0 {
        return Err(error::NO_DEVICE);
    }
    // SAFETY: the handler only stores to an atomic.
    unsafe { libc::pthread_atfork(None, None, Some(after_fork)) };
    INITIALISED.store(true, Ordering::Release);
    // The injected library may call the driver and CUPTI, and threads that it starts may call `cuInit`.
    drop(guard);
    if !INJECTED.swap(true, Ordering::AcqRel) {
        inject();
    }
    hook::resource(ResourceKind::InitFinished, None, None, 0);
    Ok(())
}

extern "C" fn after_fork() {
    FORKED.store(true, Ordering::Relaxed);
}

/// Loads the library that `CUDA_INJECTION64_PATH` names and calls its `InitializeInjection`, as the real driver does.
/// The program goes on whatever comes of it.
fn inject() {
    let Ok(path) = std::env::var("CUDA_INJECTION64_PATH") else { return };
    let Ok(c_path) = CString::new(path.as_bytes()) else { return };
    // SAFETY: a NUL-terminated path; loading the library that the user named runs its constructors, as it must.
    let library = unsafe { libc::dlopen(c_path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if library.is_null() {
        log(&format!("cannot load the injection library {path}"));
        return;
    }
    // SAFETY: a valid library handle and a NUL-terminated name.
    let symbol = unsafe { libc::dlsym(library, c"InitializeInjection".as_ptr()) };
    if symbol.is_null() {
        log(&format!("{path} exports no InitializeInjection"));
        return;
    }
    // SAFETY: the injection protocol gives the function this type.
    let initialize: extern "C" fn() -> c_int = unsafe { std::mem::transmute(symbol) };
    log(&format!("InitializeInjection of {path} returned {}", initialize()));
}

/// Writes a line to stderr if `SIMCUDA_LOG` is set.
pub fn log(line: &str) {
    if std::env::var_os("SIMCUDA_LOG").is_some() {
        eprintln!("simulated CUDA: {line}");
    }
}
