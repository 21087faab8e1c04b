//! Devices and their primary contexts.

use std::ffi::{CStr, c_char, c_void};

use sim_abi::DeviceInfo;

use super::call::{api, put, put_if};
use crate::config;
use crate::context;
use crate::error::{self, Result};
use crate::memory;

/// Every device's name.
const DEVICE_NAME: &CStr = c"NVIDIA H200 (simulated)";
const CAPABILITY: [u32; 2] = [9, 0];
const MULTIPROCESSORS: u32 = 132;
const CLOCK_KHZ: u32 = 1_980_000;

/// A device, as CUPTI describes it.
pub fn describe(device: u32) -> DeviceInfo {
    DeviceInfo {
        name: DEVICE_NAME.as_ptr(),
        uuid: uuid(device),
        memory: config::get().memory,
        bandwidth_kb_s: config::get().device_bandwidth / 1000,
        clock_khz: CLOCK_KHZ,
        copy_engines: 3,
        multiprocessors: MULTIPROCESSORS,
        capability: CAPABILITY,
    }
}

fn uuid(device: u32) -> [u8; 16] {
    let mut uuid = *b"gtrace-sim\0\0\0\0\0\0";
    uuid[12..].copy_from_slice(&(device + 1).to_be_bytes());
    uuid
}

fn check(device: i32) -> Result<u32> {
    u32::try_from(device).ok().filter(|d| *d < config::get().devices).ok_or(error::INVALID_DEVICE)
}

/// `CUdevice_attribute` by number, those that are not 0.
const ATTRIBUTES: [(i32, i32); 35] = [
    (1, 1024),                    // threads per block
    (2, 1024),                    // block, x
    (3, 1024),                    // block, y
    (4, 64),                      // block, z
    (5, i32::MAX),                // grid, x
    (6, 65535),                   // grid, y
    (7, 65535),                   // grid, z
    (8, 48 << 10),                // shared memory per block
    (9, 64 << 10),                // constant memory
    (10, 32),                     // warp
    (12, 65536),                  // registers per block
    (13, CLOCK_KHZ as i32),       // clock
    (15, 1),                      // copies overlap kernels
    (16, MULTIPROCESSORS as i32), // multiprocessors
    (19, 1),                      // maps host memory
    (31, 1),                      // concurrent kernels
    (32, 1),                      // ECC
    (36, 2_619_000),              // memory clock
    (37, 6144),                   // memory bus width
    (38, 50 << 20),               // L2
    (39, 2048),                   // threads per multiprocessor
    (40, 3),                      // copy engines
    (41, 1),                      // unified addressing
    (75, CAPABILITY[0] as i32),   // compute capability
    (76, CAPABILITY[1] as i32),
    (78, 1),         // stream priorities
    (79, 1),         // global L1
    (80, 1),         // local L1
    (81, 228 << 10), // shared memory per multiprocessor
    (82, 65536),     // registers per multiprocessor
    (83, 1),         // managed memory
    (95, 1),         // cooperative launch
    (97, 227 << 10), // shared memory per block, at most
    (106, 32),       // blocks per multiprocessor
    (115, 1),        // memory pools
];

fn attribute(device: u32, number: i32) -> i32 {
    const PCI_BUS: i32 = 33;
    if number == PCI_BUS {
        return device as i32 + 1;
    }
    ATTRIBUTES.iter().find(|(known, _)| *known == number).map_or(0, |(_, value)| *value)
}

api! {
    /// A device by its ordinal.
    fn cuDeviceGet[](device: *mut i32, ordinal: i32) {
        put(device, check(ordinal)? as i32)
    }

    /// How many there are.
    fn cuDeviceGetCount[](count: *mut i32) {
        put(count, config::get().devices as i32)
    }

    /// Its name.
    fn cuDeviceGetName[](name: *mut c_char, len: i32, device: i32) {
        check(device)?;
        let room = usize::try_from(len).ok().filter(|len| *len > 0).ok_or(error::INVALID_VALUE)?;
        let copied = DEVICE_NAME.to_bytes().iter().take(room - 1).chain(std::iter::once(&0));
        for (at, byte) in copied.enumerate() {
            put(name.wrapping_add(at), *byte as c_char)?;
        }
        Ok(())
    }

    /// An attribute.
    fn cuDeviceGetAttribute[](value: *mut i32, number: i32, device: i32) {
        put(value, attribute(check(device)?, number))
    }

    /// Its UUID.
    fn cuDeviceGetUuid[](id: *mut [u8; 16], device: i32) {
        put(id, uuid(check(device)?))
    }

    /// Its UUID.
    fn cuDeviceGetUuid_v2[](id: *mut [u8; 16], device: i32) {
        put(id, uuid(check(device)?))
    }

    /// Its memory.
    fn cuDeviceTotalMem_v2[](bytes: *mut usize, device: i32) {
        check(device)?;
        put(bytes, config::get().memory as usize)
    }

    /// Its compute capability.
    fn cuDeviceComputeCapability[](major: *mut i32, minor: *mut i32, device: i32) {
        check(device)?;
        put(major, CAPABILITY[0] as i32)?;
        put(minor, CAPABILITY[1] as i32)
    }

    /// Its address on the bus.
    fn cuDeviceGetPCIBusId[](text: *mut c_char, len: i32, device: i32) {
        let id = format!("0000:{:02X}:00.0\0", check(device)? + 1);
        if (len as usize) < id.len() || len < 0 {
            return Err(error::INVALID_VALUE);
        }
        id.bytes().enumerate().try_for_each(|(at, byte)| put(text.wrapping_add(at), byte as c_char))
    }

    /// Whether one can reach the other's memory: all can.
    fn cuDeviceCanAccessPeer[](can: *mut i32, device: i32, peer: i32) {
        put(can, i32::from(check(device)? != check(peer)?))
    }

    /// The pool that stream-ordered allocations come from.
    fn cuDeviceGetDefaultMemPool[](pool: *mut *mut c_void, device: i32) {
        put(pool, memory::pool(check(device)?))
    }

    /// The same: programs' own pools are all one.
    fn cuDeviceGetMemPool[](pool: *mut *mut c_void, device: i32) {
        put(pool, memory::pool(check(device)?))
    }

    /// Accepted without effect, as pools have no state of their own.
    fn cuDeviceSetMemPool[](device: i32, pool: *mut c_void) {
        check(device)?;
        memory::check_pool(pool)
    }

    /// Makes or reuses the primary context.
    fn cuDevicePrimaryCtxRetain[](handle: *mut *mut c_void, device: i32) {
        let made = context::retain_primary(check(device)?)?;
        put(handle, made.handle)
    }

    /// Gives the primary context back.
    fn cuDevicePrimaryCtxRelease_v2[](device: i32) {
        context::release_primary(check(device)?)
    }

    /// Whether it exists, and its flags.
    fn cuDevicePrimaryCtxGetState[](device: i32, flags: *mut u32, active: *mut i32) {
        let (present, exists) = context::primary_state(check(device)?)?;
        put_if(flags, present);
        put(active, i32::from(exists))
    }

    /// Sets its flags.
    fn cuDevicePrimaryCtxSetFlags_v2[](device: i32, flags: u32) {
        context::set_primary_flags(check(device)?, flags)
    }
}
