//! The simulated `libnvidia-ml.so.1`: the machine's simulated GPUs, and which processes have contexts on them.
//!
//! The simulated driver keeps a memfd of the name `sim-cuda-context-DEVICE-PID` open for each context, so that its holders are
//! found in `/proc` by whoever may look there, as the real library knows them from its kernel module.
#![allow(non_snake_case, reason = "the names are the functions' names")]
#![allow(missing_docs, clippy::missing_safety_doc, reason = "the C interface is NVIDIA's")]

use std::ffi::{c_char, c_uint, c_ulonglong, c_void};
use std::fs;

const SUCCESS: i32 = 0;
const INVALID_ARGUMENT: i32 = 2;
const NOT_SUPPORTED: i32 = 3;
const INSUFFICIENT_SIZE: i32 = 7;
/// What a context takes of a device's memory.
const CONTEXT_BYTES: u64 = 512 << 20;

fn devices() -> u32 {
    std::env::var("SIMCUDA_DEVICES").ok().and_then(|text| text.trim().parse().ok()).unwrap_or(1).min(64)
}

fn memory() -> u64 {
    let megabytes = std::env::var("SIMCUDA_MEMORY_MB").ok().and_then(|text| text.trim().parse::<u64>().ok());
    megabytes.unwrap_or(81_920) << 20
}

/// A handle is the device's number and one.
fn device(handle: *mut c_void) -> Option<u32> {
    u32::try_from(handle as usize).ok()?.checked_sub(1).filter(|device| *device < devices())
}

/// The processes with a context on a device, each once.
fn holders(device: u32) -> Vec<u32> {
    let mut found: Vec<u32> = fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(Result::ok)
        .filter_map(|entry| entry.file_name().to_string_lossy().parse::<u32>().ok())
        .filter(|pid| {
            // A forked child has its parent's.
            let own = format!("/memfd:sim-cuda-context-{device}-{pid} ");
            fs::read_dir(format!("/proc/{pid}/fd"))
                .into_iter()
                .flatten()
                .filter_map(Result::ok)
                .filter_map(|fd| fs::read_link(fd.path()).ok())
                .any(|link| link.to_string_lossy().starts_with(&own))
        })
        .collect();
    found.sort_unstable();
    found
}

fn put<T>(to: *mut T, value: T) -> i32 {
    if to.is_null() {
        return INVALID_ARGUMENT;
    }
    // SAFETY: not null; a place for a `T` by the function's contract.
    unsafe { to.write_unaligned(value) };
    SUCCESS
}

fn text(to: *mut c_char, room: c_uint, text: &str) -> i32 {
    if to.is_null() {
        return INVALID_ARGUMENT;
    }
    if text.len() + 1 > room as usize {
        return INSUFFICIENT_SIZE;
    }
    for (at, byte) in text.bytes().chain([0]).enumerate() {
        // SAFETY: within the caller's room.
        unsafe { to.add(at).write(byte as c_char) };
    }
    SUCCESS
}

/// `nvmlPciInfo_t`.
#[repr(C)]
pub struct PciInfo {
    legacy: [c_char; 16],
    domain: c_uint,
    bus: c_uint,
    device: c_uint,
    device_id: c_uint,
    subsystem_id: c_uint,
    bus_id: [c_char; 32],
}

/// `nvmlMemory_t`.
#[repr(C)]
pub struct Memory {
    total: c_ulonglong,
    free: c_ulonglong,
    used: c_ulonglong,
}

/// `nvmlProcessInfo_t` of the third version of the call.
#[repr(C)]
pub struct ProcessInfo {
    pid: c_uint,
    used: c_ulonglong,
    gpu_instance: c_uint,
    compute_instance: c_uint,
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlInit_v2() -> i32 {
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlShutdown() -> i32 {
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlSystemGetDriverVersion(to: *mut c_char, room: c_uint) -> i32 {
    text(to, room, "610.20 (simulated)")
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetCount_v2(count: *mut c_uint) -> i32 {
    put(count, devices())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetHandleByIndex_v2(index: c_uint, handle: *mut *mut c_void) -> i32 {
    if index >= devices() {
        return INVALID_ARGUMENT;
    }
    put(handle, (index as usize + 1) as *mut c_void)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetName(handle: *mut c_void, to: *mut c_char, room: c_uint) -> i32 {
    match device(handle) {
        Some(_) => text(to, room, "NVIDIA H200 (simulated)"),
        None => INVALID_ARGUMENT,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetUUID(handle: *mut c_void, to: *mut c_char, room: c_uint) -> i32 {
    let Some(device) = device(handle) else { return INVALID_ARGUMENT };
    let mut uuid = *b"gtrace-sim\0\0\0\0\0\0";
    uuid[12..].copy_from_slice(&(device + 1).to_be_bytes());
    let hex = format!("{:032x}", u128::from_be_bytes(uuid));
    let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
    text(to, room, &format!("GPU-{}", parts.join("-")))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetPciInfo_v3(handle: *mut c_void, info: *mut PciInfo) -> i32 {
    let Some(device) = device(handle) else { return INVALID_ARGUMENT };
    let mut bus_id = [0; 32];
    for (to, from) in bus_id.iter_mut().zip(format!("00000000:{:02X}:00.0", device + 1).bytes()) {
        *to = from as c_char;
    }
    let bus = device + 1;
    put(info, PciInfo { legacy: [0; 16], domain: 0, bus, device: 0, device_id: 0, subsystem_id: 0, bus_id })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetNumaNodeId(handle: *mut c_void, node: *mut c_uint) -> i32 {
    match device(handle) {
        Some(_) => put(node, 0),
        None => INVALID_ARGUMENT,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetMigMode(
    handle: *mut c_void,
    current: *mut c_uint,
    pending: *mut c_uint,
) -> i32 {
    let _ = (current, pending);
    if device(handle).is_some() { NOT_SUPPORTED } else { INVALID_ARGUMENT }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetMemoryInfo(handle: *mut c_void, info: *mut Memory) -> i32 {
    let Some(device) = device(handle) else { return INVALID_ARGUMENT };
    let (total, used) = (memory(), holders(device).len() as u64 * CONTEXT_BYTES);
    put(info, Memory { total, free: total.saturating_sub(used), used })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetComputeRunningProcesses_v3(
    handle: *mut c_void,
    count: *mut c_uint,
    infos: *mut ProcessInfo,
) -> i32 {
    let Some(device) = device(handle).filter(|_| !count.is_null()) else { return INVALID_ARGUMENT };
    let found = holders(device);
    // SAFETY: not null; a number by the function's contract.
    let room = unsafe { count.read() } as usize;
    put(count, found.len() as c_uint);
    if found.len() > room {
        return INSUFFICIENT_SIZE;
    }
    for (at, pid) in found.into_iter().enumerate() {
        let none = c_uint::MAX;
        let info = ProcessInfo { pid, used: CONTEXT_BYTES, gpu_instance: none, compute_instance: none };
        // SAFETY: within the caller's room.
        put(unsafe { infos.add(at) }, info);
    }
    SUCCESS
}
