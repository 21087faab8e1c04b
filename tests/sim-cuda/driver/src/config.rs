//! The `SIMCUDA_*` settings of the simulated hardware. Read once, at the first call into the library.

use std::sync::OnceLock;

use crate::clock;

/// The settings. Times are ns, bandwidths bytes per second.
pub struct Config {
    /// `SIMCUDA_DEVICES`: number of devices, 1.
    pub devices: u32,
    /// `SIMCUDA_DRIVER_VERSION`: what `cuDriverGetVersion` says, 13050.
    pub driver_version: i32,
    /// `SIMCUDA_KERNELS`: `name=us,…`, durations of kernels by name.
    pub kernels: Vec<(String, u64)>,
    /// `SIMCUDA_KERNEL_US`: duration of all other kernels, 10 µs.
    pub kernel_ns: u64,
    /// `SIMCUDA_CONCURRENT_KERNELS`: kernels that a device runs at once, 16.
    pub concurrent_kernels: u32,
    /// `SIMCUDA_SUBMIT_NS`: from the call to the earliest start on the device, 3000.
    pub submit_ns: u64,
    /// `SIMCUDA_KERNEL_GAP_NS`: between two operations of one stream, 800.
    pub kernel_gap_ns: u64,
    /// `SIMCUDA_LAUNCH_NS`: CPU time of a launch call, 2000.
    pub launch_ns: u64,
    /// `SIMCUDA_QUEUE`: operations that a stream holds before calls block, 1024.
    pub queue: usize,
    /// `SIMCUDA_PINNED_GBS`: host link with pinned memory, 12 GB/s.
    pub pinned_bandwidth: u64,
    /// `SIMCUDA_PAGEABLE_GBS`: host link with pageable memory, 4 GB/s.
    pub pageable_bandwidth: u64,
    /// `SIMCUDA_DEVICE_GBS`: memory of a device, 400 GB/s.
    pub device_bandwidth: u64,
    /// `SIMCUDA_PEER_GBS`: between two devices, 25 GB/s.
    pub peer_bandwidth: u64,
    /// `SIMCUDA_COPY_NS`: fixed part of a copy, 1500.
    pub copy_ns: u64,
    /// `SIMCUDA_MODULE_LOAD_US`: CPU time of loading a module, 500 µs.
    pub module_load_ns: u64,
    /// `SIMCUDA_LAZY_LOAD_US`: CPU time of the first launch of each kernel, 100 µs.
    pub lazy_load_ns: u64,
    /// `SIMCUDA_MALLOC_US`: CPU time of an allocation or release of device memory, 20 µs.
    pub malloc_ns: u64,
    /// `SIMCUDA_CONTEXT_US`: CPU time of creating a context, 2000 µs.
    pub context_ns: u64,
    /// `SIMCUDA_GRAPH_INSTANTIATE_US`: CPU time of instantiating a graph, per node, 5 µs.
    pub instantiate_ns: u64,
    /// `SIMCUDA_MEMORY_MB`: memory of a device, 81920.
    pub memory: u64,
    /// `SIMCUDA_DRIFT_PPM`: of the device's clock, 20 (may be negative or broken).
    pub drift_ppb: i64,
    /// `SIMCUDA_DEVICE_EPOCH_NS`: device clock at the start, 1e15 + 123456789.
    pub device_epoch: u64,
    /// CLOCK_MONOTONIC when the settings were read.
    pub started: u64,
}

/// The settings of this process.
pub fn get() -> &'static Config {
    static CONFIG: OnceLock<Config> = OnceLock::new();
    CONFIG.get_or_init(read)
}

fn read() -> Config {
    let gbs = |name, default: f64| (number(name, default) * 1e9).max(1e3) as u64;
    let us = |name, default: f64| (number(name, default) * 1e3).max(0.0) as u64;
    Config {
        devices: (number("SIMCUDA_DEVICES", 1.0) as u32).min(64),
        driver_version: number("SIMCUDA_DRIVER_VERSION", 13050.0) as i32,
        kernels: kernels(&std::env::var("SIMCUDA_KERNELS").unwrap_or_default()),
        kernel_ns: us("SIMCUDA_KERNEL_US", 10.0),
        concurrent_kernels: (number("SIMCUDA_CONCURRENT_KERNELS", 16.0) as u32).max(1),
        submit_ns: number("SIMCUDA_SUBMIT_NS", 3000.0) as u64,
        kernel_gap_ns: number("SIMCUDA_KERNEL_GAP_NS", 800.0) as u64,
        launch_ns: number("SIMCUDA_LAUNCH_NS", 2000.0) as u64,
        queue: (number("SIMCUDA_QUEUE", 1024.0) as usize).max(1),
        pinned_bandwidth: gbs("SIMCUDA_PINNED_GBS", 12.0),
        pageable_bandwidth: gbs("SIMCUDA_PAGEABLE_GBS", 4.0),
        device_bandwidth: gbs("SIMCUDA_DEVICE_GBS", 400.0),
        peer_bandwidth: gbs("SIMCUDA_PEER_GBS", 25.0),
        copy_ns: number("SIMCUDA_COPY_NS", 1500.0) as u64,
        module_load_ns: us("SIMCUDA_MODULE_LOAD_US", 500.0),
        lazy_load_ns: us("SIMCUDA_LAZY_LOAD_US", 100.0),
        malloc_ns: us("SIMCUDA_MALLOC_US", 20.0),
        context_ns: us("SIMCUDA_CONTEXT_US", 2000.0),
        instantiate_ns: us("SIMCUDA_GRAPH_INSTANTIATE_US", 5.0),
        memory: (number("SIMCUDA_MEMORY_MB", 81920.0) as u64) << 20,
        drift_ppb: (number("SIMCUDA_DRIFT_PPM", 20.0) * 1e3) as i64,
        device_epoch: number("SIMCUDA_DEVICE_EPOCH_NS", 1e15 + 123_456_789.0) as u64,
        started: clock::now(),
    }
}

fn number(name: &str, default: f64) -> f64 {
    match std::env::var(name) {
        Ok(text) => match text.trim().parse::<f64>() {
            Ok(value) if value.is_finite() => value,
            _ => {
                eprintln!("simulated CUDA: {name}={text} is no number, {default} is used");
                default
            }
        },
        Err(_) => default,
    }
}

fn kernels(text: &str) -> Vec<(String, u64)> {
    text.split(',')
        .filter(|part| !part.trim().is_empty())
        .filter_map(|part| {
            let parsed = part.split_once('=').and_then(|(name, us)| {
                let us = us.trim().parse::<f64>().ok().filter(|us| *us >= 0.0 && *us < 1e12)?;
                Some((name.trim().to_owned(), (us * 1e3) as u64))
            });
            if parsed.is_none() {
                eprintln!("simulated CUDA: SIMCUDA_KERNELS: '{part}' is not name=microseconds, ignored");
            }
            parsed
        })
        .collect()
}
