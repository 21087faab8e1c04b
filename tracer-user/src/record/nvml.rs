//! What NVIDIA's management library (`libnvidia-ml.so.1`) says of the machine's GPUs, where it is: which they are, where they
//! are plugged in, and which processes hold contexts on them. It comes with the driver; without it nothing is missing but this.

use std::ffi::{CStr, c_char, c_uint, c_ulonglong, c_void};
use std::sync::mpsc::{Receiver, channel};

use libloading::os::unix::Library;

use crate::store::meta::{GpuFacts, GpuHolder};

const SUCCESS: i32 = 0;
const INSUFFICIENT_SIZE: i32 = 7;
/// Devices and processes that are asked about.
const MOST_DEVICES: u32 = 64;
const MOST_PROCESSES: u32 = 4096;
/// Bytes of a name or UUID: `NVML_DEVICE_UUID_V2_BUFFER_SIZE`.
const TEXT_BYTES: usize = 96;

type Handle = *mut c_void;
type Processes = unsafe extern "C" fn(Handle, *mut c_uint, *mut ProcessInfo) -> i32;
type Text = unsafe extern "C" fn(Handle, *mut c_char, c_uint) -> i32;
type MemoryInfo = unsafe extern "C" fn(Handle, *mut Memory) -> i32;
type Mig = unsafe extern "C" fn(Handle, *mut c_uint, *mut c_uint) -> i32;
type Numa = unsafe extern "C" fn(Handle, *mut c_uint) -> i32;
type Pci = unsafe extern "C" fn(Handle, *mut PciInfo) -> i32;

/// `nvmlPciInfo_t`.
#[repr(C)]
struct PciInfo {
    legacy: [c_char; 16],
    numbers: [c_uint; 5],
    bus_id: [c_char; 32],
}

/// `nvmlMemory_t`.
#[repr(C)]
struct Memory {
    total: c_ulonglong,
    free: c_ulonglong,
    used: c_ulonglong,
}

/// `nvmlProcessInfo_t` of the third version of the call.
#[repr(C)]
#[derive(Clone, Copy)]
struct ProcessInfo {
    pid: c_uint,
    used: c_ulonglong,
    gpu_instance: c_uint,
    compute_instance: c_uint,
}

/// Asks in a thread of its own: the first question of a machine may take the driver a second.
#[must_use]
pub fn ask() -> Receiver<Vec<GpuFacts>> {
    let (sender, receiver) = channel();
    let asked = std::thread::Builder::new().name("gtrace-nvml".into()).spawn(move || {
        // The recorder may have gone on without it.
        let _ = sender.send(read().unwrap_or_default());
    });
    drop(asked);
    receiver
}

fn read() -> Option<Vec<GpuFacts>> {
    // SAFETY: the driver's library, whose initialisers are meant to run in any process.
    let library = unsafe { Library::new("libnvidia-ml.so.1") }.ok()?;
    let init = function::<unsafe extern "C" fn() -> i32>(&library, b"nvmlInit_v2\0")?;
    let shutdown = function::<unsafe extern "C" fn() -> i32>(&library, b"nvmlShutdown\0")?;
    // SAFETY: no arguments.
    if unsafe { init() } != SUCCESS {
        return None;
    }
    let facts = devices(&library);
    // SAFETY: no arguments.
    unsafe { shutdown() };
    facts
}

/// A function, if the library has it. `F` is its type by NVIDIA's documentation.
fn function<F: Copy>(library: &Library, name: &[u8]) -> Option<F> {
    // SAFETY: the callers name the function's type.
    unsafe { library.get::<F>(name) }.ok().map(|found| *found)
}

fn devices(library: &Library) -> Option<Vec<GpuFacts>> {
    let count = function::<unsafe extern "C" fn(*mut c_uint) -> i32>(library, b"nvmlDeviceGetCount_v2\0")?;
    let by_index = function::<unsafe extern "C" fn(c_uint, *mut Handle) -> i32>(
        library,
        b"nvmlDeviceGetHandleByIndex_v2\0",
    )?;
    let mut devices = 0;
    // SAFETY: a number to fill.
    if unsafe { count(&raw mut devices) } != SUCCESS {
        return None;
    }
    let handles = (0..devices.min(MOST_DEVICES)).filter_map(|index| {
        let mut handle = std::ptr::null_mut();
        // SAFETY: a handle to fill.
        (unsafe { by_index(index, &raw mut handle) } == SUCCESS).then_some(handle)
    });
    Some(handles.map(|handle| device(library, handle)).collect())
}

/// One device. What the library does not know, or this version of it does not tell, stays empty.
fn device(library: &Library, handle: Handle) -> GpuFacts {
    let mut facts = GpuFacts {
        name: text(library, handle, b"nvmlDeviceGetName\0"),
        uuid: uuid(&text(library, handle, b"nvmlDeviceGetUUID\0")),
        holders: holders(library, handle),
        ..GpuFacts::default()
    };
    let mut pci = PciInfo { legacy: [0; 16], numbers: [0; 5], bus_id: [0; 32] };
    if let Some(get) = function::<Pci>(library, b"nvmlDeviceGetPciInfo_v3\0")
        // SAFETY: a structure to fill.
        && unsafe { get(handle, &raw mut pci) } == SUCCESS
    {
        facts.pci = string(&pci.bus_id);
    }
    let mut node = 0;
    if let Some(get) = function::<Numa>(library, b"nvmlDeviceGetNumaNodeId\0")
        // SAFETY: a number to fill.
        && unsafe { get(handle, &raw mut node) } == SUCCESS
    {
        facts.numa_node = i32::try_from(node).ok();
    }
    if facts.numa_node.is_none() {
        facts.numa_node = numa_node(&facts.pci);
    }
    let (mut current, mut pending) = (0, 0);
    if let Some(get) = function::<Mig>(library, b"nvmlDeviceGetMigMode\0")
        // SAFETY: numbers to fill.
        && unsafe { get(handle, &raw mut current, &raw mut pending) } == SUCCESS
    {
        facts.mig = current != 0;
    }
    let mut memory = Memory { total: 0, free: 0, used: 0 };
    if let Some(get) = function::<MemoryInfo>(library, b"nvmlDeviceGetMemoryInfo\0")
        // SAFETY: a structure to fill.
        && unsafe { get(handle, &raw mut memory) } == SUCCESS
    {
        (facts.memory_bytes, facts.memory_used_bytes) = (memory.total, memory.used);
    }
    facts
}

fn text(library: &Library, handle: Handle, name: &[u8]) -> String {
    let mut bytes = [0 as c_char; TEXT_BYTES];
    let Some(get) = function::<Text>(library, name) else { return String::new() };
    // SAFETY: room of that many bytes.
    if unsafe { get(handle, bytes.as_mut_ptr(), TEXT_BYTES as c_uint) } != SUCCESS {
        return String::new();
    }
    string(&bytes)
}

/// A terminated text in an array.
fn string(chars: &[c_char]) -> String {
    let bytes: Vec<u8> = chars.iter().map(|&byte| byte as u8).collect();
    CStr::from_bytes_until_nul(&bytes).map(|text| text.to_string_lossy().into_owned()).unwrap_or_default()
}

/// `GPU-12345678-…` as the 32 hex digits by which CUPTI knows the device.
fn uuid(text: &str) -> String {
    let hex: String = text.trim_start_matches("GPU-").chars().filter(char::is_ascii_hexdigit).collect();
    if hex.len() == 32 { hex.to_ascii_lowercase() } else { String::new() }
}

/// The kernel's word for the memory that is near a device on the bus. -1: none.
fn numa_node(pci: &str) -> Option<i32> {
    let address = pci.to_ascii_lowercase();
    // NVML writes the domain with eight digits, the kernel with four.
    let address = address.strip_prefix("0000").filter(|rest| rest.len() == 12).unwrap_or(&address);
    if address.is_empty() || !address.chars().all(|c| c.is_ascii_hexdigit() || c == ':' || c == '.') {
        return None;
    }
    let text = std::fs::read_to_string(format!("/sys/bus/pci/devices/{address}/numa_node")).ok()?;
    text.trim().parse().ok().filter(|node| *node >= 0)
}

fn holders(library: &Library, handle: Handle) -> Vec<GpuHolder> {
    let Some(get) = function::<Processes>(library, b"nvmlDeviceGetComputeRunningProcesses_v3\0") else {
        return Vec::new();
    };
    let none = ProcessInfo { pid: 0, used: 0, gpu_instance: 0, compute_instance: 0 };
    let mut room = 64;
    // They may become more from one question to the next.
    for _ in 0..4 {
        let mut infos = vec![none; room as usize];
        let mut count = room;
        // SAFETY: room for that many.
        match unsafe { get(handle, &raw mut count, infos.as_mut_ptr()) } {
            SUCCESS => {
                infos.truncate(count.min(room) as usize);
                return infos.iter().map(holder).collect();
            }
            INSUFFICIENT_SIZE if room < MOST_PROCESSES => room = (room * 4).min(MOST_PROCESSES),
            _ => return Vec::new(),
        }
    }
    Vec::new()
}

fn holder(info: &ProcessInfo) -> GpuHolder {
    // All ones: the library cannot tell.
    let memory_bytes = if info.used == c_ulonglong::MAX { 0 } else { info.used };
    let comm = std::fs::read_to_string(format!("/proc/{}/comm", info.pid)).unwrap_or_default();
    GpuHolder {
        pid: i32::try_from(info.pid).unwrap_or(0),
        comm: comm.trim_end().to_owned(),
        memory_bytes,
        recorded: false,
        sent_work: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuids_are_those_of_cupti() {
        assert_eq!(uuid("GPU-67747261-6365-2d73-696d-000000000001"), "6774726163652d73696d000000000001");
        assert_eq!(uuid("MIG-GPU"), "");
        assert_eq!(uuid(""), "");
    }

    #[test]
    fn hostile_bus_addresses_lead_nowhere() {
        assert_eq!(numa_node("../../../etc/passwd"), None);
        assert_eq!(numa_node(""), None);
        assert_eq!(string(&[65, 66, 0, 67]), "AB");
        assert_eq!(string(&[65, 66]), "", "never ends");
    }
}
