//! Many threads at once: nothing hangs, nothing is lost, every stream keeps its order.
#![allow(clippy::unwrap_used, reason = "a failure here is a failure of the test")]

mod common;

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};

use common::cupti::{of_kind, recorded};
use common::{Driver, Handle, cu, isolated};

const THREADS: u64 = 6;
const ROUNDS: u64 = 300;

static LAUNCHED: AtomicU64 = AtomicU64::new(0);
static CALLED: AtomicU64 = AtomicU64::new(0);

extern "C" fn count(_: *mut c_void) {
    CALLED.fetch_add(1, Ordering::Relaxed);
}

/// One thread's work: a fixed mixture, different for each thread.
fn work(driver: Driver, context: usize, streams: &[usize], events: &[usize], seed: u64) {
    assert_eq!(cu!(driver, cuCtxSetCurrent(context as Handle => Handle)), 0);
    let mut state = seed * 2 + 1;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let bytes = 70_000;
    let device = driver.alloc(bytes);
    let pinned = driver.pinned(bytes).as_mut_ptr();
    for _ in 0..ROUNDS {
        let stream = streams[random(streams.len() as u64) as usize] as Handle;
        let event = events[random(events.len() as u64) as usize] as Handle;
        let result = match random(9) {
            0 => cu!(driver, cuEventRecord(event => Handle, stream => Handle)),
            1 => cu!(driver, cuStreamWaitEvent(stream => Handle, event => Handle, 0 => u32)),
            2 => cu!(driver, cuMemcpyHtoDAsync_v2(
                device => u64, pinned.cast() => *const c_void, bytes => usize, stream => Handle
            )),
            3 => cu!(driver, cuMemsetD8Async(device => u64, 1 => u8, bytes => usize, stream => Handle)),
            4 if random(4) == 0 => cu!(driver, cuStreamSynchronize(stream => Handle)),
            5 if random(4) == 0 => cu!(driver, cuEventSynchronize(event => Handle)),
            6 => cu!(driver, cuLaunchHostFunc(
                stream => Handle, count => extern "C" fn(*mut c_void), std::ptr::null_mut() => Handle
            )),
            7 if random(8) == 0 => cu!(driver, cuCtxSynchronize()),
            _ => {
                driver.spin(stream, random(50_000));
                LAUNCHED.fetch_add(1, Ordering::Relaxed);
                0
            }
        };
        assert_eq!(result, 0);
    }
    assert_eq!(cu!(driver, cuMemFree_v2(device => u64)), 0);
}

#[test]
fn many_threads_share_the_streams() {
    let body = || {
        let (driver, cupti) = recorded(&[1, 2, 10]);
        let flags = if std::env::var_os("STRESS_BLOCKING").is_some() { 4 } else { 0 };
        assert_eq!(cu!(driver, cuCtxSetFlags(flags => u32)), 0);
        let streams: Vec<usize> = (0..5).map(|i| driver.stream(i % 2) as usize).chain([0]).collect();
        let events: Vec<usize> = (0..4).map(|i| driver.event(i % 2) as usize).collect();
        let context = driver.context as usize;
        std::thread::scope(|scope| {
            for seed in 0..THREADS {
                let (streams, events) = (&streams, &events);
                scope.spawn(move || work(driver, context, streams, events, seed));
            }
        });
        driver.sync();
        let records = cupti.records(false);
        let kernels = of_kind(&records, 10);
        assert_eq!(kernels.len() as u64, LAUNCHED.load(Ordering::Relaxed));
        assert!(CALLED.load(Ordering::Relaxed) > 50);
        let mut ends: HashMap<u32, u64> = HashMap::new();
        let mut work: Vec<_> = records.iter().filter(|r| [1, 2, 10].contains(&r.kind())).collect();
        work.sort_by_key(|r| r.span());
        for record in work {
            let stream = record.u32(if record.kind() == 10 { 48 } else { 40 });
            let end = ends.insert(stream, record.span().1).unwrap_or(0);
            // Two pairs of clock times can differ by the drift between them.
            assert!(record.span().0 + 200 >= end, "stream {stream} overlaps itself");
        }
    };
    let name = "many_threads_share_the_streams";
    if std::env::var_os("SIM_CUDA_CHILD").is_some() {
        return isolated(name, &[], body);
    }
    isolated(name, &[], body);
    isolated(name, &[("STRESS_BLOCKING", "1")], body);
    isolated(
        name,
        &[("SIMCUDA_QUEUE", "4"), ("STRESS_BLOCKING", "1"), ("SIMCUDA_CONCURRENT_KERNELS", "1")],
        body,
    );
}
