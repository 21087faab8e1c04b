//! When host threads wait, and how.
#![allow(clippy::unwrap_used, reason = "a failure here is a failure of the test")]

mod common;

use std::ffi::c_void;

use common::cupti::{of_kind, recorded};
use common::{Driver, Handle, cu, isolated};

const MS: u64 = 1_000_000;
/// Long enough that no busy machine makes it look finished.
const LONG: u64 = 400 * MS;

#[test]
fn pageable_copies_wait_and_pinned_ones_do_not() {
    isolated("pageable_copies_wait_and_pinned_ones_do_not", &[], || {
        const LEN: usize = 1 << 20;
        let driver = Driver::start();
        let (device, pinned, stream) = (driver.alloc(LEN), driver.pinned(LEN), driver.stream(1));
        let mut pageable = vec![1u8; LEN];
        let up = |from: *const u8, len: usize| cu!(driver, cuMemcpyHtoDAsync_v2(device => u64, from.cast() => *const c_void, len => usize, stream => Handle));
        let down = |to: *mut u8, len: usize| cu!(driver, cuMemcpyDtoHAsync_v2(to.cast() => Handle, device => u64, len => usize, stream => Handle));
        driver.spin(stream, LONG);
        assert_eq!(up(pinned.as_ptr(), LEN), 0);
        assert_eq!(driver.query(stream), 600, "a pinned copy waited");
        assert_eq!(down(pinned.as_mut_ptr(), LEN), 0);
        assert_eq!(driver.query(stream), 600, "a pinned copy waited");
        assert_eq!(up(pageable.as_ptr(), 1000), 0);
        assert_eq!(driver.query(stream), 600, "a small pageable copy is staged at the call");
        assert_eq!(up(pageable.as_ptr(), LEN), 0);
        assert_eq!(driver.query(stream), 0, "a pageable copy did not wait");
        driver.spin(stream, LONG);
        assert_eq!(down(pageable.as_mut_ptr(), 16), 0);
        assert_eq!(driver.query(stream), 0, "even a small copy into pageable memory waits");
    });
}

#[test]
fn freeing_waits_for_all_work() {
    isolated("freeing_waits_for_all_work", &[], || {
        let driver = Driver::start();
        let (device, stream) = (driver.alloc(4096), driver.stream(1));
        driver.spin(stream, 100 * MS);
        assert_eq!(driver.query(stream), 600);
        assert_eq!(cu!(driver, cuMemFree_v2(device => u64)), 0);
        assert_eq!(driver.query(stream), 0);
    });
}

#[test]
fn a_full_queue_holds_the_launching_thread() {
    isolated("a_full_queue_holds_the_launching_thread", &[("SIMCUDA_QUEUE", "8")], || {
        let (driver, cupti) = recorded(&[10, 4, 17]);
        let stream = driver.stream(1);
        for _ in 0..12 {
            driver.spin(stream, 20 * MS);
        }
        driver.sync();
        let records = cupti.records(false);
        let full: Vec<_> = records.iter().filter(|r| r.kind() == 17 && r.u32(4) == 6 << 16).collect();
        assert!((1..=4).contains(&full.len()), "{}", full.len());
        // SAFETY: CUPTI's pointer to three numbers.
        let data = unsafe { (full[0].u64(48) as *const [u32; 3]).read() };
        assert_eq!(data[0], 8);
        let call = records.iter().find(|r| r.kind() == 4 && r.u32(32) == full[0].u32(40)).unwrap();
        assert_eq!(call.u32(4), 307, "in a launch");
        assert!(call.u64(8) <= full[0].u64(24) && full[0].u64(32) <= call.u64(16));
        let lazy = records.iter().filter(|r| r.kind() == 17 && r.u32(4) == 5 << 16).count();
        assert_eq!(lazy, 1, "the kernel is loaded at its first launch");
        assert_eq!(of_kind(&records, 10).len(), 12);
    });
}

fn usage() -> (u64, i64) {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: valid for the call to fill.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
        usage.assume_init()
    };
    let ns = |t: libc::timeval| t.tv_sec as u64 * 1_000_000_000 + t.tv_usec as u64 * 1_000;
    (ns(usage.ru_utime) + ns(usage.ru_stime), usage.ru_nvcsw)
}

#[test]
fn blocking_waits_sleep_and_spinning_ones_do_not() {
    isolated("blocking_waits_sleep_and_spinning_ones_do_not", &[], || {
        let driver = Driver::start();
        let stream = driver.stream(1);
        let wait = |what: &dyn Fn() -> i32| {
            driver.spin(stream, 200 * MS);
            let before = usage();
            assert_eq!(what(), 0);
            let after = usage();
            assert_eq!(driver.query(stream), 0);
            (after.0 - before.0, after.1 - before.1)
        };
        driver.spin(stream, 1);
        let spin = wait(&|| cu!(driver, cuStreamSynchronize(stream => Handle)));
        assert!(spin.1 == 0, "a spinning wait slept {} times", spin.1);
        assert_eq!(cu!(driver, cuCtxSetFlags(4 => u32)), 0);
        let block = wait(&|| cu!(driver, cuStreamSynchronize(stream => Handle)));
        assert!(block.1 >= 1 && block.0 < 50 * MS, "{block:?}");
        let block = wait(&|| cu!(driver, cuCtxSynchronize()));
        assert!(block.1 >= 1 && block.0 < 50 * MS, "{block:?}");
        let (spinning, blocking) = (driver.event(0), driver.event(1));
        let spin = wait(&|| {
            assert_eq!(cu!(driver, cuEventRecord(spinning => Handle, stream => Handle)), 0);
            cu!(driver, cuEventSynchronize(spinning => Handle))
        });
        assert!(spin.1 == 0, "a spinning wait slept {} times", spin.1);
        let block = wait(&|| {
            assert_eq!(cu!(driver, cuEventRecord(blocking => Handle, stream => Handle)), 0);
            cu!(driver, cuEventSynchronize(blocking => Handle))
        });
        assert!(block.1 >= 1 && block.0 < 50 * MS, "{block:?}");
    });
}

#[test]
fn the_device_does_not_need_the_host() {
    // Nobody looks while the kernels run; their times are exact all the same.
    isolated("the_device_does_not_need_the_host", &[("SIMCUDA_DRIFT_PPM", "0")], || {
        let (driver, cupti) = recorded(&[10]);
        let stream = driver.stream(1);
        for _ in 0..100 {
            driver.spin(stream, 100_000);
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
        driver.sync();
        let kernels = of_kind(&cupti.records(false), 10);
        let first = kernels[0].span().0;
        for (at, kernel) in kernels.iter().enumerate() {
            let wanted = first + at as u64 * 100_800;
            assert!(kernel.span().0.abs_diff(wanted) < 20_000, "{at}: {} for {wanted}", kernel.span().0);
        }
    });
}
