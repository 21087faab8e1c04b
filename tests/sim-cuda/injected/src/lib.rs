//! A library for `CUDA_INJECTION64_PATH` that says that it was called, in the environment, and where `SIM_INJECTED_KINDS` names
//! kinds of records (`10,1,4`), is a client of CUPTI that asks for them and throws them away.

use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicU64, Ordering};

/// Buffers: one bit each of a word.
const BUFFERS: usize = 64;
/// Bytes of one.
const BYTES: usize = 256 << 10;

static FREE: AtomicU64 = AtomicU64::new(u64::MAX);
static START: AtomicU64 = AtomicU64::new(0);

/// What the driver calls.
#[unsafe(no_mangle)]
pub extern "C" fn InitializeInjection() -> i32 {
    let calls: u32 = std::env::var("INJECTED_CALLS").ok().and_then(|n| n.parse().ok()).unwrap_or(0);
    // SAFETY: the program that loads this library has one thread at this time.
    unsafe { std::env::set_var("INJECTED_CALLS", (calls + 1).to_string()) };
    match std::env::var("SIM_INJECTED_KINDS") {
        Ok(kinds) => i32::from(collect(&kinds).is_some()),
        Err(_) => 1,
    }
}

type Requested = unsafe extern "C" fn(*mut *mut u8, *mut usize, *mut usize);
type Completed = unsafe extern "C" fn(*mut c_void, u32, *mut u8, usize, usize);
type Callback = unsafe extern "C" fn(*mut c_void, u32, u32, *const c_void);

fn collect(kinds: &str) -> Option<()> {
    let names = [c"libcupti.so.13", c"libcupti.so.12"];
    // SAFETY: NUL-terminated names; loading CUPTI runs its constructors, as it must.
    let library = names
        .iter()
        .map(|name| unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW) })
        .find(|l| !l.is_null())?;
    let find = |name: &CStr| {
        // SAFETY: a valid handle and a NUL-terminated name.
        let symbol = unsafe { libc::dlsym(library, name.as_ptr()) };
        (!symbol.is_null()).then_some(symbol)
    };
    // SAFETY: CUPTI gives these functions these types.
    let (subscribe, register, enable) = unsafe {
        (
            std::mem::transmute::<
                *mut c_void,
                unsafe extern "C" fn(*mut *mut c_void, Callback, *mut c_void) -> u32,
            >(find(c"cuptiSubscribe")?),
            std::mem::transmute::<*mut c_void, unsafe extern "C" fn(Requested, Completed) -> u32>(find(
                c"cuptiActivityRegisterCallbacks",
            )?),
            std::mem::transmute::<*mut c_void, unsafe extern "C" fn(u32) -> u32>(find(
                c"cuptiActivityEnable",
            )?),
        )
    };
    let memory = vec![0_u8; BUFFERS * BYTES + 8].leak();
    START.store((memory.as_ptr() as u64).next_multiple_of(8), Ordering::Release);
    let mut subscriber = std::ptr::null_mut();
    // SAFETY: a place to fill, and functions that live as long as the process.
    unsafe {
        subscribe(&raw mut subscriber, nothing, std::ptr::null_mut());
        register(requested, completed);
        for kind in kinds.split(',').filter_map(|kind| kind.parse().ok()) {
            enable(kind);
        }
    }
    Some(())
}

unsafe extern "C" fn nothing(_user: *mut c_void, _domain: u32, _number: u32, _data: *const c_void) {}

unsafe extern "C" fn requested(buffer: *mut *mut u8, size: *mut usize, most: *mut usize) {
    let mut free = FREE.load(Ordering::Relaxed);
    let number = loop {
        if free == 0 {
            break None;
        }
        let number = free.trailing_zeros();
        match FREE.compare_exchange_weak(free, free & !(1 << number), Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => break Some(number as usize),
            Err(now) => free = now,
        }
    };
    let start = START.load(Ordering::Acquire) as usize;
    // SAFETY: CUPTI's own variables.
    unsafe {
        buffer.write(number.map_or(std::ptr::null_mut(), |number| (start + number * BYTES) as *mut u8));
        size.write(if number.is_some() { BYTES } else { 0 });
        most.write(0);
    }
}

unsafe extern "C" fn completed(
    _context: *mut c_void,
    _stream: u32,
    buffer: *mut u8,
    _size: usize,
    _valid: usize,
) {
    let start = START.load(Ordering::Acquire) as usize;
    let number = (buffer as usize).wrapping_sub(start) / BYTES;
    if number < BUFFERS {
        FREE.fetch_or(1 << number, Ordering::Release);
    }
}
