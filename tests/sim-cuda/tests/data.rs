//! Copies really copy, and hostile calls only get error codes.
#![allow(clippy::unwrap_used, reason = "a failure here is a failure of the test")]

mod common;

use std::ffi::{CStr, c_char, c_void};

use common::{Driver, Handle, cu, isolated};

fn pattern(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    (0..len)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        })
        .collect()
}

#[test]
fn bytes_arrive() {
    isolated("bytes_arrive", &[], || {
        let driver = Driver::start();
        let stream = driver.stream(1);
        for len in [1usize, 4096, 65_536, 65_537, 3_000_001] {
            let source = pattern(len, len as u64);
            let (a, b) = (driver.alloc(len + 8), driver.alloc(len + 8));
            let up = cu!(driver, cuMemcpyHtoDAsync_v2(
                a => u64, source.as_ptr().cast() => *const c_void, len => usize, stream => Handle
            ));
            let across =
                cu!(driver, cuMemcpyDtoDAsync_v2(b => u64, a => u64, len => usize, stream => Handle));
            let set = cu!(driver, cuMemsetD8Async(a => u64, 0 => u8, len => usize, stream => Handle));
            let mut result = vec![0u8; len];
            let down =
                cu!(driver, cuMemcpyDtoH_v2(result.as_mut_ptr().cast() => Handle, b => u64, 0 => usize));
            assert_eq!((up, across, set, down), (0, 0, 0, 0));
            assert_eq!(cu!(driver, cuStreamSynchronize(stream => Handle)), 0);
            assert_eq!(
                cu!(driver, cuMemcpyDtoH_v2(result.as_mut_ptr().cast() => Handle, b => u64, len => usize)),
                0
            );
            assert!(result == source, "{len} bytes");
            assert_eq!(
                cu!(driver, cuMemcpyDtoH_v2(result.as_mut_ptr().cast() => Handle, a => u64, len => usize)),
                0
            );
            assert!(result.iter().all(|byte| *byte == 0));
            assert_eq!(cu!(driver, cuMemFree_v2(a => u64)) + cu!(driver, cuMemFree_v2(b => u64)), 0);
        }
        let words = driver.alloc(40);
        assert_eq!(cu!(driver, cuMemsetD32_v2(words => u64, 0xdead_beef => u32, 10 => usize)), 0);
        let mut result = [0u32; 10];
        assert_eq!(
            cu!(driver, cuMemcpyDtoH_v2(result.as_mut_ptr().cast() => Handle, words => u64, 40 => usize)),
            0
        );
        assert_eq!(result, [0xdead_beef; 10]);
    });
}

#[test]
fn a_staged_copy_takes_the_bytes_at_the_call() {
    isolated("a_staged_copy_takes_the_bytes_at_the_call", &[], || {
        let driver = Driver::start();
        let (stream, device) = (driver.stream(1), driver.alloc(1024));
        let mut source = vec![1u8; 1024];
        driver.spin(stream, 20_000_000);
        let up = cu!(driver, cuMemcpyHtoDAsync_v2(
            device => u64, source.as_ptr().cast() => *const c_void, 1024 => usize, stream => Handle
        ));
        assert_eq!(up, 0);
        source.fill(2);
        let mut result = vec![0u8; 1024];
        let down = cu!(driver, cuMemcpyDtoHAsync_v2(
            result.as_mut_ptr().cast() => Handle, device => u64, 1024 => usize, stream => Handle
        ));
        assert_eq!(down, 0);
        assert!(result.iter().all(|byte| *byte == 1));
    });
}

#[test]
fn two_devices_exchange_data() {
    isolated("two_devices_exchange_data", &[("SIMCUDA_DEVICES", "2")], || {
        let driver = Driver::start();
        let mut count = 0;
        assert_eq!(cu!(driver, cuDeviceGetCount(&raw mut count => *mut i32)), 0);
        assert_eq!(count, 2);
        let source = pattern(100_000, 5);
        let here = driver.alloc(100_000);
        let up = cu!(driver, cuMemcpyHtoD_v2(here => u64, source.as_ptr().cast() => *const c_void, 100_000 => usize));
        assert_eq!(up, 0);
        let mut other = std::ptr::null_mut();
        assert_eq!(cu!(driver, cuDevicePrimaryCtxRetain(&raw mut other => *mut Handle, 1 => i32)), 0);
        assert_eq!(cu!(driver, cuCtxSetCurrent(other => Handle)), 0);
        let there = driver.alloc(100_000);
        let stream = driver.stream(1);
        let across = cu!(driver, cuMemcpyPeerAsync(
            there => u64, other => Handle, here => u64, driver.context => Handle, 100_000 => usize, stream => Handle
        ));
        assert_eq!(across, 0);
        assert_eq!(cu!(driver, cuStreamSynchronize(stream => Handle)), 0);
        let mut result = vec![0u8; 100_000];
        let down = cu!(driver, cuMemcpyDtoH_v2(result.as_mut_ptr().cast() => Handle, there => u64, 100_000 => usize));
        assert_eq!(down, 0);
        assert!(result == source);
    });
}

#[test]
fn stream_ordered_memory_lives_until_its_turn() {
    isolated("stream_ordered_memory_lives_until_its_turn", &[], || {
        let driver = Driver::start();
        let (stream, pinned) = (driver.stream(1), driver.pinned(1 << 20));
        pinned.fill(7);
        let mut address = 0u64;
        assert_eq!(
            cu!(driver, cuMemAllocAsync(&raw mut address => *mut u64, 1 << 20 => usize, stream => Handle)),
            0
        );
        driver.spin(stream, 50_000_000);
        let up = cu!(driver, cuMemcpyHtoDAsync_v2(
            address => u64, pinned.as_ptr().cast() => *const c_void, 1 << 20 => usize, stream => Handle
        ));
        assert_eq!(up, 0);
        assert_eq!(cu!(driver, cuMemFreeAsync(address => u64, stream => Handle)), 0);
        assert_eq!(cu!(driver, cuMemFreeAsync(address => u64, stream => Handle)), 1, "freed twice");
        assert_eq!(cu!(driver, cuStreamSynchronize(stream => Handle)), 0);
    });
}

#[test]
fn hostile_calls_get_error_codes() {
    isolated("hostile_calls_get_error_codes", &[("SIMCUDA_MEMORY_MB", "64")], || {
        let library = common::Library::load("libcuda.so.1");
        let count: unsafe extern "C" fn(*mut i32) -> i32 = library.get("cuDeviceGetCount");
        let mut devices = 0;
        // SAFETY: a valid place.
        assert_eq!(unsafe { count(&raw mut devices) }, 3, "before cuInit");
        let driver = Driver::start();
        let (null, wild) = (std::ptr::null_mut::<c_void>(), 0xdead_beef_usize as Handle);
        let mut handle = null;
        for bad in [wild, driver.context, driver.module] {
            assert_eq!(cu!(driver, cuStreamSynchronize(bad => Handle)), 400);
            assert_eq!(cu!(driver, cuEventSynchronize(bad => Handle)), 400);
            assert_eq!(driver.launch(bad, null, 1), 400);
            assert_eq!(cu!(driver, cuGraphLaunch(bad => Handle, null => Handle)), 400);
        }
        assert_eq!(cu!(driver, cuStreamDestroy_v2(null => Handle)), 400);
        assert_eq!(cu!(driver, cuCtxSetCurrent(wild => Handle)), 201);
        assert_eq!(cu!(driver, cuStreamCreate(null.cast() => *mut Handle, 0 => u32)), 1);
        assert_eq!(cu!(driver, cuStreamCreate(&raw mut handle => *mut Handle, 77 => u32)), 1);
        assert_eq!(cu!(driver, cuMemAlloc_v2(null.cast() => *mut u64, 8 => usize)), 1);
        let mut address = 0u64;
        assert_eq!(cu!(driver, cuMemAlloc_v2(&raw mut address => *mut u64, 0 => usize)), 1);
        assert_eq!(cu!(driver, cuMemAlloc_v2(&raw mut address => *mut u64, 65 << 20 => usize)), 2);
        assert_eq!(cu!(driver, cuMemAlloc_v2(&raw mut address => *mut u64, usize::MAX => usize)), 2);
        let device = driver.alloc(100);
        let byte = [0u8; 200];
        let copy = |dst: u64, src: *const u8, len: usize| cu!(driver, cuMemcpyHtoD_v2(dst => u64, src.cast() => *const c_void, len => usize));
        assert_eq!(copy(device, byte.as_ptr(), 101), 1, "beyond the end");
        assert_eq!(copy(device + 99, byte.as_ptr(), 2), 1);
        assert_eq!(copy(device - 1, byte.as_ptr(), 2), 1);
        assert_eq!(copy(byte.as_ptr() as u64, byte.as_ptr(), 2), 1, "a host address as a device's");
        assert_eq!(copy(device, std::ptr::null(), 2), 1);
        assert_eq!(copy(device, device as *const u8, 2), 1, "a device address as the host's");
        assert_eq!(cu!(driver, cuMemFree_v2(device + 1 => u64)), 1);
        assert_eq!(cu!(driver, cuMemFree_v2(device => u64)), 0);
        assert_eq!(cu!(driver, cuMemFree_v2(device => u64)), 1, "freed twice");
        let load = |image: *const c_char| {
            let mut module = std::ptr::null_mut();
            cu!(driver, cuModuleLoadData(&raw mut module => *mut Handle, image.cast() => *const c_void))
        };
        assert_eq!(load(std::ptr::null()), 1);
        assert_eq!(load(c"this is no module".as_ptr()), 200);
        assert_eq!(load(c".version 7.0\n.target sm_70\n".as_ptr()), 218, "no kernel in it");
        let absent = cu!(driver, cuModuleGetFunction(
            &raw mut handle => *mut Handle, driver.module => Handle, c"absent".as_ptr() => *const c_char
        ));
        assert_eq!(absent, 500);
        assert_eq!(driver.launch(driver.function(c"other"), null, 0), 0);
        let big = cu!(driver, cuLaunchKernel(
            driver.function(c"other") => Handle, 1 => u32, 1 => u32, 1 => u32, 1025 => u32, 1 => u32, 1 => u32,
            0 => u32, null => Handle, null.cast() => *mut *mut c_void, null.cast() => *mut *mut c_void
        ));
        assert_eq!(big, 1, "too many threads");
        let unargued = cu!(driver, cuLaunchKernelEx(
            null => Handle, driver.function(c"spin_ns") => Handle, null.cast() => *mut *mut c_void,
            null.cast() => *mut *mut c_void
        ));
        assert_eq!(unargued, 1);
        let mut name = std::ptr::null::<c_char>();
        assert_eq!(cu!(driver, cuGetErrorName(700_000 => i32, &raw mut name => *mut *const c_char)), 1);
        assert_eq!(cu!(driver, cuGetErrorName(400 => i32, &raw mut name => *mut *const c_char)), 0);
        // SAFETY: the driver's own string.
        assert_eq!(unsafe { CStr::from_ptr(name) }, c"CUDA_ERROR_INVALID_HANDLE");
    });
}

#[test]
fn entry_points_are_found_by_name_and_version() {
    isolated("entry_points_are_found_by_name_and_version", &[], || {
        let driver = Driver::start();
        let find = |name: &CStr, version: i32, flags: u64| {
            let mut function = std::ptr::null_mut::<c_void>();
            let mut status = -1;
            let result = cu!(driver, cuGetProcAddress_v2(
                name.as_ptr() => *const c_char, &raw mut function => *mut Handle, version => i32, flags => u64,
                &raw mut status => *mut i32
            ));
            (result, function, status)
        };
        let exported = |name: &str| driver.library.get::<Handle>(name);
        assert_eq!(find(c"cuMemAlloc", 12040, 0), (0, exported("cuMemAlloc_v2"), 0));
        assert_eq!(find(c"cuLaunchKernel", 12040, 0), (0, exported("cuLaunchKernel"), 0));
        assert_eq!(find(c"cuLaunchKernel", 12040, 2), (0, exported("cuLaunchKernel_ptsz"), 0));
        assert_eq!(find(c"cuMemcpyHtoD", 12040, 2), (0, exported("cuMemcpyHtoD_v2_ptds"), 0));
        assert_eq!(find(c"cuCtxSynchronize", 12040, 0).1, exported("cuCtxSynchronize"));
        assert_eq!(find(c"cuCtxSynchronize", 13000, 0).1, exported("cuCtxSynchronize_v2"));
        assert_eq!(find(c"cuNoSuchThing", 12040, 0), (500, std::ptr::null_mut(), 1));
    });
}

#[test]
fn a_forked_child_cannot_use_the_driver() {
    isolated("a_forked_child_cannot_use_the_driver", &[], || {
        let driver = Driver::start();
        // SAFETY: the child only calls the driver, which refuses, and leaves.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let code = cu!(driver, cuInit(0 => u32)) * 10 + cu!(driver, cuCtxSynchronize());
            // SAFETY: leaves at once.
            unsafe { libc::_exit(code) };
        }
        let mut status = 0;
        // SAFETY: waits for the own child.
        unsafe { libc::waitpid(child, &raw mut status, 0) };
        assert_eq!(libc::WEXITSTATUS(status), 33);
        driver.sync();
    });
}

#[test]
fn the_injected_library_is_called_once() {
    let program = std::env::current_exe().unwrap();
    let injected = program.with_file_name("libsim_injected.so");
    let injected = injected.to_str().unwrap().to_owned();
    isolated("the_injected_library_is_called_once", &[("CUDA_INJECTION64_PATH", &injected)], || {
        assert!(std::env::var("INJECTED_CALLS").is_err());
        let driver = Driver::start();
        assert_eq!(cu!(driver, cuInit(0 => u32)), 0);
        assert_eq!(std::env::var("INJECTED_CALLS").unwrap(), "1");
    });
}
