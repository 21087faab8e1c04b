//! A library for `CUDA_INJECTION64_PATH` that only says that it was called, in the environment.

/// What the driver calls.
#[unsafe(no_mangle)]
pub extern "C" fn InitializeInjection() -> i32 {
    let calls: u32 = std::env::var("INJECTED_CALLS").ok().and_then(|n| n.parse().ok()).unwrap_or(0);
    // SAFETY: the test that loads this library has one thread at this time.
    unsafe { std::env::set_var("INJECTED_CALLS", (calls + 1).to_string()) };
    1
}
