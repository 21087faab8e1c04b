//! CUPTI's clock, and the conversion of device times to it.
//!
//! As the real one does, it takes pairs of (device time, host time) and interpolates between them.

use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use sim_abi::DriverTable;

use crate::fault;

/// A client's clock.
pub type TimestampCallback = unsafe extern "C" fn() -> u64;

static CALLBACK: AtomicPtr<()> = AtomicPtr::new(std::ptr::null_mut());

/// Which clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// CLOCK_REALTIME.
    Realtime,
    /// The client's.
    Callback,
}

fn read(clock_id: libc::clockid_t) -> u64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `t` is valid for the call to fill; both clocks exist on every Linux.
    unsafe { libc::clock_gettime(clock_id, &raw mut t) };
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

fn realtime() -> u64 {
    static START: OnceLock<u64> = OnceLock::new();
    let now = read(libc::CLOCK_REALTIME);
    match fault::get().step {
        None => now,
        Some((step, after_ms)) => {
            let start = *START.get_or_init(|| read(libc::CLOCK_MONOTONIC));
            let passed = read(libc::CLOCK_MONOTONIC).saturating_sub(start) / 1_000_000;
            if passed >= after_ms { now.saturating_add_signed(step) } else { now }
        }
    }
}

/// The clock in use.
pub fn current() -> Clock {
    if CALLBACK.load(Ordering::Acquire).is_null() { Clock::Realtime } else { Clock::Callback }
}

/// The clock in use, ns.
pub fn now() -> u64 {
    read_clock(current())
}

fn read_clock(clock: Clock) -> u64 {
    let callback = CALLBACK.load(Ordering::Acquire);
    if clock == Clock::Realtime || callback.is_null() {
        return realtime();
    }
    // SAFETY: only `register` stores here, and it stores functions of this type.
    let callback: TimestampCallback = unsafe { std::mem::transmute(callback) };
    // SAFETY: the client promised that it can be called at any time.
    unsafe { callback() }
}

/// Registers the client's clock.
pub fn register(callback: Option<TimestampCallback>) {
    let callback = callback.map_or(std::ptr::null_mut(), |callback| callback as *mut ());
    CALLBACK.store(callback, Ordering::Release);
    PAIRS.lock().unwrap_or_else(PoisonError::into_inner).clear();
}

/// A device time and the same moment on a host clock.
#[derive(Clone, Copy)]
struct Pair {
    device: u64,
    host: u64,
}

/// The pairs of one device and clock.
struct Pairs {
    device: u32,
    clock: Clock,
    first: Pair,
    last: Pair,
}

static PAIRS: Mutex<Vec<Pairs>> = Mutex::new(Vec::new());

/// How old the last pair may be, ns.
const FRESH: u64 = 20_000_000;
/// How long the base of the slope has to be, ns.
const BASE: u64 = 100_000_000;

fn sample(table: &DriverTable, device: u32, clock: Clock) -> Pair {
    let attempt = || {
        let before = (table.device_clock)(device);
        let host = read_clock(clock);
        let after = (table.device_clock)(device);
        (after - before, Pair { device: u64::midpoint(before, after), host })
    };
    // The narrowest of several: one may be torn apart by a switch of the thread.
    let (_, best) =
        (1..5).map(|_| attempt()).fold(attempt(), |best, next| if next.0 < best.0 { next } else { best });
    best
}

/// Converts a device time to a host clock.
pub fn convert(table: &DriverTable, device: u32, time: u64, clock: Clock) -> u64 {
    let mut all = PAIRS.lock().unwrap_or_else(PoisonError::into_inner);
    let at = all.iter().position(|pairs| pairs.device == device && pairs.clock == clock);
    let at = at.unwrap_or_else(|| {
        let first = sample(table, device, clock);
        all.push(Pairs { device, clock, first, last: first });
        all.len() - 1
    });
    let pairs = &mut all[at];
    if time > pairs.last.device + FRESH {
        pairs.last = sample(table, device, clock);
    }
    let (first, last) = (pairs.first, pairs.last);
    let base = last.device - first.device;
    let slope = if base > BASE { (last.host as f64 - first.host as f64) / base as f64 } else { 1.0 };
    if (slope - 1.0).abs() > 500e-6 {
        // The host clock has stepped: the slope says nothing, begin anew.
        pairs.first = last;
    }
    let slope = if (slope - 1.0).abs() > 500e-6 { 1.0 } else { slope };
    let since = (time as i64).wrapping_sub(last.device as i64);
    last.host.saturating_add_signed((since as f64 * slope).round() as i64)
}
