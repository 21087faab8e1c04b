//! Host clock and device clocks.

use crate::config;

/// CLOCK_MONOTONIC, ns. All of the model's times are of this clock.
pub fn now() -> u64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `t` is a valid timespec for the call to fill; the clock exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut t) };
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// Keeps the calling thread on its CPU until `until`, as a driver that does work does.
pub fn spin_until(until: u64) {
    while now() < until {
        std::hint::spin_loop();
    }
}

/// Converts a time to the clock of a device: an offset of its own and a constant drift. Device clocks count ns since
/// some power-on, and every device has another offset and drift.
pub fn to_device(device: u32, mono: u64) -> u64 {
    let config = config::get();
    let drift = config.drift_ppb + i64::from(device) * 1_700;
    let base = config.started;
    let since = i128::from(mono) - i128::from(base);
    let drifted = since + since * i128::from(drift) / 1_000_000_000;
    let offset = i128::from(config.device_epoch) + i128::from(device) * 77_000_000_003;
    u64::try_from(offset + drifted).unwrap_or(0)
}
