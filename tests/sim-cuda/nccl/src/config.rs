//! The `SIMNCCL_*` settings, read once.

use std::sync::OnceLock;

/// The settings.
pub struct Config {
    /// `SIMNCCL_GBS`: bytes per second that one rank sends, 50 GB/s.
    pub bandwidth: f64,
    /// `SIMNCCL_LATENCY_US`: fixed part of a transfer, 20 µs.
    pub latency_ns: u64,
    /// `SIMNCCL_INIT_MS`: how long the transports of a communicator take to set up once all ranks have come, 20 ms.
    pub init_ms: u64,
}

/// The settings of this process.
pub fn get() -> &'static Config {
    static CONFIG: OnceLock<Config> = OnceLock::new();
    CONFIG.get_or_init(|| Config {
        bandwidth: (number("SIMNCCL_GBS", 50.0) * 1e9).max(1e3),
        latency_ns: (number("SIMNCCL_LATENCY_US", 20.0) * 1e3) as u64,
        init_ms: number("SIMNCCL_INIT_MS", 20.0) as u64,
    })
}

fn number(name: &str, default: f64) -> f64 {
    let value = std::env::var(name).ok().and_then(|text| text.trim().parse::<f64>().ok());
    value.filter(|value| value.is_finite() && *value >= 0.0).unwrap_or(default)
}
