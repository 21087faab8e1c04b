//! CUPTI's protocol: what is recorded, when, on which clock, and what the faults do to it.
#![allow(clippy::unwrap_used, reason = "a failure here is a failure of the test")]

mod common;

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_void};
use std::sync::Mutex;

use common::cupti::{BUFFER_BYTES, Cupti, cupti, monotonic, of_kind, recorded};
use common::{Driver, Handle, Layout, Library, cu, isolated};

const KERNEL: u32 = 10;
const DRIVER: u32 = 4;
const MS: u64 = 1_000_000;

fn counts(records: &[common::cupti::Record]) -> BTreeMap<u32, usize> {
    let mut counts = BTreeMap::new();
    for record in records {
        *counts.entry(record.kind()).or_default() += 1;
    }
    counts
}

#[test]
fn every_launch_has_its_call_and_its_kernel() {
    isolated("every_launch_has_its_call_and_its_kernel", &[("SIMCUDA_DRIFT_PPM", "150")], || {
        let (driver, cupti) = recorded(&[KERNEL, DRIVER, 38]);
        assert_eq!(cupti!(cupti, cuptiSetThreadIdType(1 => u32)), 0);
        let stream = driver.stream(1);
        for at in 0..300 {
            driver.spin(stream, 1_000 + at);
            if at % 100 == 99 {
                std::thread::sleep(std::time::Duration::from_millis(150));
                assert_eq!(cu!(driver, cuStreamSynchronize(stream => Handle)), 0);
            }
        }
        let records = cupti.records(false);
        let kernels = of_kind(&records, KERNEL);
        assert_eq!(kernels.len(), 300);
        // SAFETY: no arguments.
        let tid = unsafe { libc::syscall(libc::SYS_gettid) } as u32;
        for kernel in &kernels {
            let call = records.iter().find(|r| r.kind() == DRIVER && r.u32(32) == kernel.u32(92)).unwrap();
            assert_eq!((call.u32(4), call.u32(24), call.u32(28)), (307, std::process::id(), tid));
            // The clock's residual: drift between two pairs of times.
            assert!(
                kernel.span().0 + 2_000 >= call.u64(8),
                "started {} ns early",
                call.u64(8) - kernel.span().0
            );
        }
        let ends: Vec<u64> = records.iter().filter(|r| r.kind() == 38).map(|r| r.u64(16)).collect();
        for (nth, end) in ends.iter().enumerate() {
            let done = kernels.iter().filter(|k| k.span().1 <= end + 4_000).count();
            assert!(done >= (nth + 1) * 100, "{done} kernels ended before wait {nth} did");
        }
    });
}

#[test]
fn without_a_callback_times_are_of_the_real_time_clock() {
    isolated("without_a_callback_times_are_of_the_real_time_clock", &[], || {
        Library::load("libcuda.so.1");
        let cupti = Cupti::load();
        assert_eq!(cupti!(cupti, cuptiActivityEnable(KERNEL => u32)), 0);
        let driver = Driver::start();
        let now =
            || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as u64;
        let before = now();
        driver.spin(driver.stream(1), MS);
        driver.sync();
        let span = cupti.records(false)[0].span();
        assert!(before <= span.0 + 2_000 && span.1 <= now() + 2_000);
        let mut stamp = 0u64;
        assert_eq!(cupti!(cupti, cuptiGetTimestamp(&raw mut stamp => *mut u64)), 0);
        assert!(now().abs_diff(stamp) < 1_000 * MS);
    });
}

#[test]
fn contexts_older_than_the_clock_stay_on_real_time() {
    let body = || {
        let driver = Driver::start();
        let cupti = Cupti::start(&[KERNEL]);
        driver.spin(driver.stream(1), MS);
        driver.sync();
        let start = cupti.records(false)[0].span().0;
        let is_monotonic = start < monotonic();
        assert_eq!(is_monotonic, std::env::var("SIMCUDA_CUPTI_VERSION").unwrap() == "13.4");
    };
    let name = "contexts_older_than_the_clock_stay_on_real_time";
    if std::env::var_os("SIM_CUDA_CHILD").is_some() {
        return isolated(name, &[], body);
    }
    isolated(name, &[("SIMCUDA_CUPTI_VERSION", "12.4")], body);
    isolated(name, &[("SIMCUDA_CUPTI_VERSION", "13.4")], body);
}

#[test]
fn a_late_client_sees_what_is_there_and_what_comes() {
    isolated("a_late_client_sees_what_is_there_and_what_comes", &[("SIMCUDA_DEVICES", "2")], || {
        let driver = Driver::start();
        let stream = driver.stream(1);
        driver.spin(stream, MS);
        let cupti = Cupti::load();
        for kind in [8u32, 9, 37, KERNEL] {
            assert_eq!(cupti!(cupti, cuptiActivityEnableAndDump(kind => u32)), 0);
        }
        driver.spin(stream, MS);
        driver.sync();
        let records = cupti.records(false);
        assert_eq!(counts(&records), BTreeMap::from([(8, 2), (9, 1), (37, 2), (KERNEL, 1)]));
        let context = &of_kind(&records, 9)[0];
        assert_eq!((context.u32(4), context.u32(8)), (1, 0));
        let kernel = &of_kind(&records, KERNEL)[0];
        let streams = of_kind(&records, 37);
        assert!(streams.iter().any(|s| s.u32(8) == kernel.u32(48) && s.u32(16) == 2));
        assert!(streams.iter().any(|s| s.u32(8) == 7 && s.u32(16) == 3), "the default stream");
        let mut id = 0;
        let null = std::ptr::null_mut();
        let result = cupti!(cupti, cuptiGetStreamIdEx(
            null => Handle, stream => Handle, 0 => u8, &raw mut id => *mut u32
        ));
        assert_eq!((result, id), (0, kernel.u32(48)));
    });
}

#[test]
fn buffers_go_back_when_full_and_complete() {
    isolated("buffers_go_back_when_full_and_complete", &[], || {
        *BUFFER_BYTES.lock().unwrap() = 4096;
        let (driver, cupti) = recorded(&[KERNEL]);
        let stream = driver.stream(1);
        // 19 records of 208 bytes fill a buffer.
        driver.spin(stream, 300 * MS);
        for _ in 0..37 {
            driver.spin(stream, 1_000);
        }
        assert_eq!(cupti.records(false).len(), 0, "the first kernel still runs: nothing is complete");
        driver.sync();
        for _ in 0..400 {
            if Cupti::delivered() >= 19 {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        assert_eq!(Cupti::delivered(), 19, "the worker gives the full buffer back by itself");
        assert_eq!(cupti.records(false).len(), 38);
        driver.spin(stream, 300 * MS);
        let forced = cupti.records(true);
        assert_eq!((forced.len(), forced[0].span()), (1, (0, 0)), "a forced flush gives the open record");
        driver.sync();
        assert_eq!(cupti.records(true).len(), 0, "and it never comes again");
    });
}

#[test]
fn single_functions_can_be_chosen() {
    isolated("single_functions_can_be_chosen", &[("SIMCUDA_CUPTI_VERSION", "12.5")], || {
        let cupti = Cupti::start(&[]);
        let driver = Driver::start();
        let enable = |cbid: u32, on: u8| cupti!(cupti, cuptiActivityEnableDriverApi(cbid => u32, on => u8));
        assert_eq!(enable(307, 1), 0);
        driver.spin(std::ptr::null_mut(), 1);
        driver.sync();
        let chosen: Vec<u32> = cupti.records(false).iter().map(|r| r.u32(4)).collect();
        assert_eq!(chosen, [307]);
        assert_eq!(cupti!(cupti, cuptiActivityEnable(DRIVER => u32)), 0);
        assert_eq!(enable(17, 0), 0);
        driver.spin(std::ptr::null_mut(), 1);
        driver.sync();
        driver.event(0);
        let all_but: Vec<u32> = cupti.records(false).iter().map(|r| r.u32(4)).collect();
        assert_eq!(all_but, [307, 118]);
    });
}

#[test]
fn old_versions_lack_what_came_later() {
    isolated("old_versions_lack_what_came_later", &[("SIMCUDA_CUPTI_VERSION", "12.4")], || {
        Driver::start();
        let cupti = Cupti::load();
        assert_eq!(cupti!(cupti, cuptiActivityEnableDriverApi(307 => u32, 1 => u8)), 11);
        assert_eq!(cupti!(cupti, cuptiActivityEnable(58 => u32)), 21);
        assert_eq!(cupti!(cupti, cuptiActivityEnable(4_000_000 => u32)), 21);
        let exact = std::env::temp_dir().join(format!("sim-cuda-exact-{}", std::process::id()));
        Layout::new().unwrap().cupti_version("12.4").without("cuptiFinalize").write(&exact).unwrap();
        let path = std::ffi::CString::new(exact.join("libcupti.so.12").to_str().unwrap()).unwrap();
        // SAFETY: a library of this workspace.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        // SAFETY: a valid handle and NUL-terminated names.
        let has = |name: &CStr| unsafe { !libc::dlsym(handle, name.as_ptr()).is_null() };
        assert!(has(c"cuptiActivityEnable") && has(c"cuptiSubscribe"));
        assert!(
            !has(c"cuptiActivityEnableDriverApi") && !has(c"cuptiSubscribe_v2") && !has(c"cuptiFinalize")
        );
        std::fs::remove_dir_all(exact).unwrap();
    });
}

/// Domain, number, site, correlation, name.
type Call = (u32, u32, u32, u32, String);
type Callback = extern "C" fn(*mut c_void, u32, u32, *const c_void);

static CALLS: Mutex<Vec<Call>> = Mutex::new(Vec::new());

#[repr(C)]
struct CallbackData {
    site: u32,
    name: *const c_char,
    params: *const c_void,
    result: *const i32,
    symbol: *const c_char,
    context: *mut c_void,
    context_uid: u32,
    kept: *mut u64,
    correlation_id: u32,
}

extern "C" fn on_callback(_: *mut c_void, domain: u32, cbid: u32, data: *const c_void) {
    if domain != 1 {
        CALLS.lock().unwrap().push((domain, cbid, 0, 0, String::new()));
        return;
    }
    // SAFETY: CUPTI's data of a driver callback.
    let data = unsafe { &*data.cast::<CallbackData>() };
    // SAFETY: CUPTI's strings; the symbol is null except for launches.
    let text = unsafe {
        if data.site == 0 {
            *data.kept = 42;
        } else {
            assert_eq!((*data.kept, *data.result), (42, 0));
        }
        if data.symbol.is_null() { CStr::from_ptr(data.name) } else { CStr::from_ptr(data.symbol) }
    };
    let text = text.to_string_lossy().into_owned();
    CALLS.lock().unwrap().push((domain, cbid, data.site, data.correlation_id, text));
}

#[test]
fn callbacks_come_at_entry_and_exit() {
    isolated("callbacks_come_at_entry_and_exit", &[], || {
        Library::load("libcuda.so.1");
        let library = Library::load("libcupti.so.12");
        let cupti = Cupti { library, subscriber: std::ptr::null_mut() };
        let mut subscriber = std::ptr::null_mut();
        let null = std::ptr::null_mut();
        let subscribe = || {
            let mut handle = null;
            let result = cupti!(cupti, cuptiSubscribe(
                &raw mut handle => *mut Handle, on_callback => Callback, null => Handle
            ));
            (result, handle)
        };
        let (result, handle) = subscribe();
        assert_eq!(result, 0);
        subscriber = if subscriber == null { handle } else { subscriber };
        assert_eq!(subscribe().0, 39, "one subscriber only");
        let enable = |domain: u32, cbid: u32| cupti!(cupti, cuptiEnableCallback(1 => u32, subscriber => Handle, domain => u32, cbid => u32));
        assert_eq!(enable(1, 307) + enable(3, 1) + enable(3, 5), 0);
        assert_eq!(cupti!(cupti, cuptiEnableCallback(1 => u32, null => Handle, 1 => u32, 307 => u32)), 1);
        let driver = Driver::start();
        driver.spin(null, 1);
        let calls = std::mem::take(&mut *CALLS.lock().unwrap());
        assert_eq!((calls[0].0, calls[0].1), (3, 5), "cuInit finished");
        assert_eq!((calls[1].0, calls[1].1), (3, 1), "context created");
        assert_eq!((calls[2].2, calls[3].2, calls[2].3), (0, 1, calls[3].3));
        assert_eq!((calls[2].4.as_str(), calls.len()), ("spin_ns", 4));
        assert_eq!(cupti!(cupti, cuptiUnsubscribe(subscriber => Handle)), 0);
        driver.spin(null, 1);
        assert!(CALLS.lock().unwrap().is_empty());
        assert_eq!(subscribe().0, 0, "free again");
    });
}

#[test]
fn external_numbers_go_with_the_calls() {
    isolated("external_numbers_go_with_the_calls", &[], || {
        let (driver, cupti) = recorded(&[DRIVER, 39]);
        assert_eq!(cupti!(cupti, cuptiActivityPushExternalCorrelationId(5 => u32, 99 => u64)), 0);
        driver.spin(std::ptr::null_mut(), 1);
        let mut last = 0u64;
        let result =
            cupti!(cupti, cuptiActivityPopExternalCorrelationId(5 => u32, &raw mut last => *mut u64));
        assert_eq!((result, last), (0, 99));
        let empty = cupti!(cupti, cuptiActivityPopExternalCorrelationId(5 => u32, &raw mut last => *mut u64));
        assert_eq!(empty, 18);
        driver.sync();
        let records = cupti.records(false);
        let external = of_kind(&records, 39);
        assert_eq!(external.len(), 1);
        assert_eq!((external[0].u32(4), external[0].u64(8)), (5, 99));
        let launch = records.iter().find(|r| r.kind() == DRIVER && r.u32(4) == 307).unwrap();
        assert_eq!(launch.u32(32), external[0].u32(16));
    });
}

#[test]
fn a_busy_subscription_is_refused() {
    isolated("a_busy_subscription_is_refused", &[("SIMCUDA_SUBSCRIBER_BUSY", "nsys")], || {
        Driver::start();
        let cupti = Cupti { library: Library::load("libcupti.so.13"), subscriber: std::ptr::null_mut() };
        let null = std::ptr::null_mut();
        let mut handle = null;
        let result =
            cupti!(cupti, cuptiSubscribe(&raw mut handle => *mut Handle, null => Handle, null => Handle));
        assert_eq!(result, 39);
        let mut holder = [0u8; 64];
        let mut params = [40u64, 0, holder.as_mut_ptr() as u64, 64, 0];
        let result = cupti!(cupti, cuptiSubscribe_v2(
            &raw mut handle => *mut Handle, null => Handle, null => Handle, params.as_mut_ptr() => *mut u64
        ));
        assert_eq!((result, &holder[..5]), (39, &b"nsys\0"[..]));
        let mut version = 0u32;
        assert_eq!(cupti!(cupti, cuptiGetVersion(&raw mut version => *mut u32)), 0);
        assert_eq!(version, 130_001, "the file's name says the version");
    });
}

#[test]
fn an_unusable_cupti_says_so() {
    isolated("an_unusable_cupti_says_so", &[("SIMCUDA_CUPTI_ERROR", "15")], || {
        Driver::start();
        let cupti = Cupti { library: Library::load("libcupti.so.12"), subscriber: std::ptr::null_mut() };
        assert_eq!(cupti!(cupti, cuptiActivityEnable(KERNEL => u32)), 15);
        assert_eq!(cupti!(cupti, cuptiActivityFlushAll(0 => u32)), 15);
    });
}

#[test]
fn a_cupti_without_a_driver_does_not_initialise() {
    isolated("a_cupti_without_a_driver_does_not_initialise", &[("SIMCUDA_CUPTI_VERSION", "12.9")], || {
        let cupti = Cupti { library: Library::load("libcupti.so.12"), subscriber: std::ptr::null_mut() };
        assert_eq!(cupti!(cupti, cuptiActivityEnable(KERNEL => u32)), 15);
        let mut version = 0u32;
        assert_eq!(cupti!(cupti, cuptiGetVersion(&raw mut version => *mut u32)), 0);
        assert_eq!(version, 27);
    });
}

#[test]
fn device_records_can_be_wrong() {
    let env = [
        ("SIMCUDA_ZERO_AFTER", "6"),
        ("SIMCUDA_END_BEFORE_START", "2"),
        ("SIMCUDA_START_BEFORE_LAUNCH", "3"),
    ];
    isolated("device_records_can_be_wrong", &env, || {
        let (driver, cupti) = recorded(&[KERNEL, DRIVER]);
        for _ in 0..8 {
            driver.spin(std::ptr::null_mut(), 1_000);
            driver.sync();
        }
        let records = cupti.records(false);
        let kernels: Vec<_> = records.iter().filter(|r| r.kind() == KERNEL).collect();
        let launched = |k: &common::cupti::Record| {
            records.iter().find(|r| r.kind() == DRIVER && r.u32(32) == k.u32(92)).unwrap().u64(8)
        };
        let inverted: Vec<bool> = kernels.iter().map(|k| k.span().1 < k.span().0).collect();
        assert_eq!(inverted, [false, true, false, true, false, true, false, false]);
        let early: Vec<bool> = kernels.iter().take(6).map(|k| k.span().0 + 10_000 < launched(k)).collect();
        assert_eq!(early, [false, false, true, false, false, false]);
        assert_eq!((kernels[6].span(), kernels[7].span()), ((0, 0), (0, 0)));
    });
}

#[test]
fn buffers_can_be_wrong() {
    let env = [
        ("SIMCUDA_UNKNOWN_KINDS", "10"),
        ("SIMCUDA_DROP_BUFFERS", "3"),
        ("SIMCUDA_FOREIGN_BUFFERS", "2"),
        ("SIMCUDA_LATE_BUFFERS_MS", "-1"),
    ];
    isolated("buffers_can_be_wrong", &env, || {
        *BUFFER_BYTES.lock().unwrap() = 4096;
        let (driver, cupti) = recorded(&[DRIVER]);
        for _ in 0..600 {
            assert_eq!(cu!(driver, cuCtxSynchronize()), 0);
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert_eq!(Cupti::delivered(), 0, "full buffers do not come by themselves");
        let records = cupti.records(false);
        let (buffers, foreign) = Cupti::buffers();
        assert!(foreign >= 2 && buffers > foreign, "{buffers} {foreign}");
        let dropped = cupti.dropped();
        assert!(dropped > 100 && cupti.dropped() == 0);
        let counts = counts(&records);
        assert!(counts[&250] >= 30, "{counts:?}");
        let total = counts[&DRIVER] + counts[&250] + dropped - foreign;
        assert!((600 + 60..600 + 70).contains(&total), "{total}: {counts:?}, dropped {dropped}");
    });
}

#[test]
fn every_version_can_be_walked() {
    let body = || {
        let null = std::ptr::null_mut();
        let cupti = Cupti::start(&[1, 2, DRIVER, 8, 9, KERNEL, 17, 27, 36, 37, 38, 49]);
        let driver = Driver::start();
        let (device, stream, event) = (driver.alloc(4096), driver.stream(1), driver.event(0));
        let host = [1u8; 4096];
        driver.spin(stream, 1_000);
        assert_eq!(
            cu!(driver, cuMemcpyHtoD_v2(device => u64, host.as_ptr().cast() => *const c_void, 4096 => usize)),
            0
        );
        assert_eq!(cu!(driver, cuMemsetD8Async(device => u64, 1 => u8, 4096 => usize, null => Handle)), 0);
        assert_eq!(cu!(driver, cuEventRecord(event => Handle, stream => Handle)), 0);
        driver.sync();
        let records = cupti.records(false);
        let counts = counts(&records);
        let overheads = usize::from(std::env::var("SIMCUDA_CUPTI_VERSION").unwrap().as_str() >= "12.3");
        assert_eq!(counts.get(&17).copied().unwrap_or(0), overheads);
        for (kind, wanted) in
            [(1, 1), (2, 1), (8, 1), (9, 1), (KERNEL, 1), (27, 1), (36, 1), (37, 1), (38, 1), (49, 1)]
        {
            assert_eq!(counts.get(&kind), Some(&wanted), "kind {kind}: {counts:?}");
        }
        assert!(counts[&DRIVER] >= 10);
        assert_eq!(of_kind(&records, KERNEL)[0].name(), "spin_ns");
    };
    let name = "every_version_can_be_walked";
    if std::env::var_os("SIM_CUDA_CHILD").is_some() {
        return isolated(name, &[], body);
    }
    for ((major, minor), ..) in sim_cupti::sizes::VERSIONS {
        isolated(name, &[("SIMCUDA_CUPTI_VERSION", &format!("{major}.{minor}"))], body);
    }
}

#[test]
fn after_finalize_nothing_comes_and_a_new_session_works() {
    isolated("after_finalize_nothing_comes_and_a_new_session_works", &[], || {
        let (driver, cupti) = recorded(&[KERNEL]);
        driver.spin(std::ptr::null_mut(), 1_000);
        driver.sync();
        assert_eq!(cupti.records(false).len(), 1);
        assert_eq!(cupti!(cupti, cuptiFinalize()), 0);
        driver.spin(std::ptr::null_mut(), 1_000);
        driver.sync();
        let again = Cupti::load();
        assert_eq!(cupti!(again, cuptiActivityEnable(KERNEL => u32)), 0);
        driver.spin(std::ptr::null_mut(), 1_000);
        driver.sync();
        assert_eq!(again.records(false).len(), 1);
    });
}
