//! How CUPTI is to misbehave. Every knob is off by default; each stands for something that real ones do.

use std::sync::OnceLock;

/// The knobs.
pub struct Faults {
    /// `SIMCUDA_SUBSCRIBER_BUSY`: another tool, of this name, holds the one subscription (39).
    pub subscriber_busy: Option<String>,
    /// `SIMCUDA_CUPTI_ERROR`: code that every call beyond version and time gives (15, 999).
    pub error: u32,
    /// `SIMCUDA_ZERO_AFTER`: device records after this many have start = end = 0.
    pub zero_after: u64,
    /// `SIMCUDA_END_BEFORE_START`: every so manieth device record ends before it starts.
    pub end_before_start: u64,
    /// `SIMCUDA_START_BEFORE_LAUNCH`: every so manieth device record starts before the call that launched it.
    pub start_before_launch: u64,
    /// `SIMCUDA_DROP_RECORDS`: every so manieth record is dropped and counted.
    pub drop_records: u64,
    /// `SIMCUDA_DROP_BUFFERS`: every so manieth buffer comes back empty, its records counted as dropped.
    pub drop_buffers: u64,
    /// `SIMCUDA_SILENT_AFTER`: device records after this many are never written; calls go on to be recorded.
    pub silent_after: u64,
    /// `SIMCUDA_MUTE_AFTER`: after this many records of any kind none is written any more.
    pub mute_after: u64,
    /// `SIMCUDA_DUPLICATES`: every so manieth device record is written twice.
    pub duplicates: u64,
    /// `SIMCUDA_UNKNOWN_KINDS`: after every so manieth record comes one of a kind that no version knows.
    pub unknown_kinds: u64,
    /// `SIMCUDA_FOREIGN_BUFFERS`: before every so manieth buffer the callback gets one that it did not give.
    pub foreign_buffers: u64,
    /// `SIMCUDA_LATE_BUFFERS_MS`: full buffers come back so much later; negative: never, except when flushed.
    pub late_ms: i64,
    /// `SIMCUDA_SLOW_ENABLE_MS`: the first enabling of kernel records takes so long.
    pub slow_enable_ms: u64,
    /// `SIMCUDA_REALTIME_STEP`: `ns@ms`: CUPTI's clock steps by that many ns after that many ms.
    pub step: Option<(i64, u64)>,
    /// `SIMCUDA_NULL_BUFFER_CRASH`: a null buffer aborts the process, as before CUDA 12.9.
    pub null_buffer_crash: bool,
}

/// The knobs of this process.
pub fn get() -> &'static Faults {
    static FAULTS: OnceLock<Faults> = OnceLock::new();
    FAULTS.get_or_init(|| Faults {
        subscriber_busy: std::env::var("SIMCUDA_SUBSCRIBER_BUSY").ok(),
        error: number("SIMCUDA_CUPTI_ERROR") as u32,
        zero_after: number("SIMCUDA_ZERO_AFTER") as u64,
        end_before_start: number("SIMCUDA_END_BEFORE_START") as u64,
        start_before_launch: number("SIMCUDA_START_BEFORE_LAUNCH") as u64,
        drop_records: number("SIMCUDA_DROP_RECORDS") as u64,
        drop_buffers: number("SIMCUDA_DROP_BUFFERS") as u64,
        silent_after: number("SIMCUDA_SILENT_AFTER") as u64,
        mute_after: number("SIMCUDA_MUTE_AFTER") as u64,
        duplicates: number("SIMCUDA_DUPLICATES") as u64,
        unknown_kinds: number("SIMCUDA_UNKNOWN_KINDS") as u64,
        foreign_buffers: number("SIMCUDA_FOREIGN_BUFFERS") as u64,
        late_ms: number("SIMCUDA_LATE_BUFFERS_MS"),
        slow_enable_ms: number("SIMCUDA_SLOW_ENABLE_MS") as u64,
        step: step(),
        null_buffer_crash: number("SIMCUDA_NULL_BUFFER_CRASH") != 0,
    })
}

fn number(name: &str) -> i64 {
    let Ok(text) = std::env::var(name) else { return 0 };
    text.trim().parse().unwrap_or_else(|_| {
        eprintln!("simulated CUPTI: {name}={text} is no number, ignored");
        0
    })
}

fn step() -> Option<(i64, u64)> {
    let text = std::env::var("SIMCUDA_REALTIME_STEP").ok()?;
    let (ns, ms) = text.split_once('@')?;
    Some((ns.trim().parse().ok()?, ms.trim().parse().ok()?))
}

/// Whether the `count`th thing, from 1, is one of every `every`; never if that is 0.
pub fn hits(every: u64, count: u64) -> bool {
    every != 0 && count.is_multiple_of(every)
}
