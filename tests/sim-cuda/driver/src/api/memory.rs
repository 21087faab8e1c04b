//! Allocation.

use std::ffi::c_void;
use std::sync::Arc;

use sim_abi::MemoryInfo;

use super::call::{api, put, put_if};
use crate::clock;
use crate::config;
use crate::context::{self, Context};
use crate::device::channel::Work;
use crate::device::data::DataJob;
use crate::error::{self, Result};
use crate::hook;
use crate::memory::{self, Allocation, Kind};
use crate::stream::{self, Stream};
use crate::submit;

fn report(operation: u32, allocation: &Allocation, stream: Option<&Stream>) {
    hook::memory(&MemoryInfo {
        operation,
        kind: u32::from(Kind::cupti(Some(allocation.kind))),
        correlation_id: hook::correlation_id(),
        address: allocation.base,
        bytes: allocation.len as u64,
        device: allocation.device,
        context: allocation.context,
        stream: stream.map_or(u32::MAX, |s| s.id),
        is_async: stream.is_some(),
    });
}

fn allocate(kind: Kind, len: usize, context: &Context) -> Result<Allocation> {
    let start = clock::now();
    let made = memory::allocate(kind, len, context.device, context.id)?;
    clock::spin_until(start + config::get().malloc_ns);
    report(1, &made, None);
    Ok(made)
}

/// Frees memory that operations in flight may use: waits for all of them.
fn free(address: u64, kinds: &[Kind]) -> Result {
    let context = context::current()?;
    if address == 0 {
        return Ok(());
    }
    let known = memory::find(address).filter(|a| a.base == address && kinds.contains(&a.kind));
    known.ok_or(error::INVALID_VALUE)?;
    submit::wait(&context.tails(), &context);
    let start = clock::now();
    let freed = memory::remove(address, kinds)?;
    report(2, &freed, None);
    drop(freed);
    clock::spin_until(start + config::get().malloc_ns);
    Ok(())
}

fn allocate_async(address: *mut u64, len: usize, stream: &Arc<Stream>) -> Result {
    if address.is_null() {
        return Err(error::INVALID_VALUE);
    }
    let made = memory::allocate(Kind::Device, len, stream.device, stream.context_id)?;
    submit::submit(stream, Work::Marker { point: None, data: None }, None);
    report(1, &made, Some(stream));
    put(address, made.base)
}

api! {
    /// Allocates device memory.
    fn cuMemAlloc_v2[](address: *mut u64, len: usize) {
        if address.is_null() {
            return Err(error::INVALID_VALUE);
        }
        let made = allocate(Kind::Device, len, &*context::current()?)?;
        put(address, made.base)
    }

    /// Allocates rows of device memory.
    fn cuMemAllocPitch_v2[](address: *mut u64, pitch: *mut usize, width: usize, height: usize, element: u32) {
        let _ = element;
        let row = width.checked_add(511).ok_or(error::INVALID_VALUE)? & !511;
        if address.is_null() || pitch.is_null() {
            return Err(error::INVALID_VALUE);
        }
        let len = row.checked_mul(height).ok_or(error::INVALID_VALUE)?;
        let made = allocate(Kind::Device, len, &*context::current()?)?;
        put(pitch, row)?;
        put(address, made.base)
    }

    /// Allocates managed memory.
    fn cuMemAllocManaged[](address: *mut u64, len: usize, flags: u32) {
        if address.is_null() || !matches!(flags, 1 | 2 | 4) {
            return Err(error::INVALID_VALUE);
        }
        let made = allocate(Kind::Managed, len, &*context::current()?)?;
        put(address, made.base)
    }

    /// Waits for all work of the context, then frees device or managed memory.
    fn cuMemFree_v2[](address: u64) {
        free(address, &[Kind::Device, Kind::Managed])
    }

    /// Allocates pinned memory.
    fn cuMemHostAlloc[](address: *mut *mut c_void, len: usize, flags: u32) {
        if address.is_null() || flags & !7 != 0 {
            return Err(error::INVALID_VALUE);
        }
        let made = allocate(Kind::Pinned, len, &*context::current()?)?;
        put(address, made.base as *mut c_void)
    }

    /// Allocates pinned memory.
    fn cuMemAllocHost_v2[](address: *mut *mut c_void, len: usize) {
        if address.is_null() {
            return Err(error::INVALID_VALUE);
        }
        let made = allocate(Kind::Pinned, len, &*context::current()?)?;
        put(address, made.base as *mut c_void)
    }

    /// Waits for all work of the context, then frees pinned memory.
    fn cuMemFreeHost[](address: *mut c_void) {
        free(address as u64, &[Kind::Pinned])
    }

    /// Pins the program's own memory.
    fn cuMemHostRegister_v2[](address: *mut c_void, len: usize, flags: u32) {
        if flags & !15 != 0 {
            return Err(error::INVALID_VALUE);
        }
        let context = context::current()?;
        memory::register(address as u64, len, context.device, context.id)
    }

    /// Lets it go.
    fn cuMemHostUnregister[](address: *mut c_void) {
        context::current()?;
        memory::remove(address as u64, &[Kind::Registered]).map(drop).map_err(|_| error::HOST_MEMORY_NOT_REGISTERED)
    }

    /// The device address of pinned memory, which is the same.
    fn cuMemHostGetDevicePointer_v2[](device: *mut u64, address: *mut c_void, flags: u32) {
        if flags != 0 || memory::find(address as u64).is_none_or(|a| a.kind == Kind::Device) {
            return Err(error::INVALID_VALUE);
        }
        put(device, address as u64)
    }

    /// Flags of pinned memory.
    fn cuMemHostGetFlags[](flags: *mut u32, address: *mut c_void) {
        memory::find(address as u64).filter(|a| a.kind == Kind::Pinned).ok_or(error::INVALID_VALUE)?;
        put(flags, 0)
    }

    /// Free and total memory of the current device.
    fn cuMemGetInfo_v2[](free: *mut usize, total: *mut usize) {
        let (available, all) = memory::info(context::current()?.device);
        put(free, available as usize)?;
        put(total, all as usize)
    }

    /// The allocation that an address lies in.
    fn cuMemGetAddressRange_v2[](base: *mut u64, len: *mut usize, address: u64) {
        let found = memory::find(address).ok_or(error::NOT_FOUND)?;
        put_if(base, found.base);
        put_if(len, found.len);
        Ok(())
    }

    /// What an address is. Of the attributes there are context (1), memory type (2), device pointer (3), host pointer
    /// (4), managed (8) and device ordinal (9).
    fn cuPointerGetAttribute[](value: *mut c_void, attribute: i32, address: u64) {
        let found = memory::find(address).ok_or(error::INVALID_VALUE)?;
        let of_device = matches!(found.kind, Kind::Device | Kind::Managed);
        match attribute {
            1 => {
                let owner = context::CONTEXTS.all().into_iter().find(|c| c.id == found.context);
                put(value.cast(), owner.map_or(std::ptr::null_mut(), |c| c.handle))
            }
            2 => put(value.cast(), if of_device { 2u32 } else { 1 }),
            3 => put(value.cast(), address),
            4 if found.kind != Kind::Device => put(value.cast(), address),
            8 => put(value.cast(), u32::from(found.kind == Kind::Managed)),
            9 => put(value.cast(), found.device as i32),
            _ => Err(error::INVALID_VALUE),
        }
    }

    /// Allocates in the order of a stream.
    fn cuMemAllocAsync[twin cuMemAllocAsync_ptsz](address: *mut u64, len: usize, handle: *mut c_void) {
        allocate_async(address, len, &stream::resolve(handle)?)
    }

    /// The same, from a pool.
    fn cuMemAllocFromPoolAsync[twin cuMemAllocFromPoolAsync_ptsz](
        address: *mut u64, len: usize, pool: *mut c_void, handle: *mut c_void,
    ) {
        memory::check_pool(pool)?;
        allocate_async(address, len, &stream::resolve(handle)?)
    }

    /// Frees in the order of a stream.
    fn cuMemFreeAsync[twin cuMemFreeAsync_ptsz](address: u64, handle: *mut c_void) {
        let stream = stream::resolve(handle)?;
        let freed = memory::remove(address, &[Kind::Device, Kind::Managed])?;
        report(2, &freed, Some(&stream));
        let data = freed.backing.map(DataJob::Release);
        submit::submit(&stream, Work::Marker { point: None, data }, None);
        Ok(())
    }

    /// Gives the device's one pool.
    fn cuMemPoolCreate[](pool: *mut *mut c_void, properties: *const c_void) {
        if properties.is_null() {
            return Err(error::INVALID_VALUE);
        }
        put(pool, memory::pool(context::current()?.device))
    }

    /// Accepted without effect.
    fn cuMemPoolDestroy[](pool: *mut c_void) {
        memory::check_pool(pool)
    }

    /// Accepted without effect.
    fn cuMemPoolSetAttribute[](pool: *mut c_void, attribute: i32, value: *mut c_void) {
        let _ = (attribute, value);
        memory::check_pool(pool)
    }

    /// All are 0: nothing is kept, everything is reused.
    fn cuMemPoolGetAttribute[](pool: *mut c_void, attribute: i32, value: *mut c_void) {
        memory::check_pool(pool)?;
        if attribute <= 3 { put(value.cast(), 0i32) } else { put(value.cast(), 0u64) }
    }

    /// Accepted without effect.
    fn cuMemPoolTrimTo[](pool: *mut c_void, keep: usize) {
        let _ = keep;
        memory::check_pool(pool)
    }
}
