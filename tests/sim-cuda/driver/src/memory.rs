//! Device, pinned and managed memory.
//!
//! A device address means nothing to the host, as on real hardware, but there are real bytes behind it, so that copies
//! and their results can be checked.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use crate::config;
use crate::device::data::Place;
use crate::error::{self, Result};

/// First device address. Far from any address that Linux maps by itself.
const DEVICE_BASE: u64 = 0x0301_0000_0000_0000 >> 8;

/// Pages of the host that stand for memory.
pub struct Backing {
    address: *mut u8,
    len: usize,
    device: Option<u32>,
}

// SAFETY: a range of mapped memory; all access is by the data plane and by the program, under the API's rules.
unsafe impl Send for Backing {}
// SAFETY: as above.
unsafe impl Sync for Backing {}

static USED: [AtomicU64; 64] = [const { AtomicU64::new(0) }; 64];

impl Backing {
    fn map(len: usize, device: Option<u32>, populate: bool) -> Result<Arc<Self>> {
        if let Some(device) = device {
            let used = USED[device as usize & 63].fetch_add(len as u64, Ordering::Relaxed);
            if used + len as u64 > config::get().memory {
                USED[device as usize & 63].fetch_sub(len as u64, Ordering::Relaxed);
                return Err(error::OUT_OF_MEMORY);
            }
        }
        let extra = if populate { libc::MAP_POPULATE } else { libc::MAP_NORESERVE };
        // SAFETY: a fresh anonymous mapping at an address of the kernel's choice.
        let address = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | extra,
                -1,
                0,
            )
        };
        if address == libc::MAP_FAILED {
            if let Some(device) = device {
                USED[device as usize & 63].fetch_sub(len as u64, Ordering::Relaxed);
            }
            return Err(error::OUT_OF_MEMORY);
        }
        Ok(Arc::new(Self { address: address.cast(), len, device }))
    }
}

impl Drop for Backing {
    fn drop(&mut self) {
        // SAFETY: the mapping is this object's own, and nothing refers to it any more.
        unsafe { libc::munmap(self.address.cast(), self.len) };
        if let Some(device) = self.device {
            USED[device as usize & 63].fetch_sub(self.len as u64, Ordering::Relaxed);
        }
    }
}

/// What sort of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Of a device.
    Device,
    /// Of the host, pinned by `cuMemHostAlloc`.
    Pinned,
    /// Of the program itself, pinned by `cuMemHostRegister`.
    Registered,
    /// Managed.
    Managed,
}

impl Kind {
    /// CUPTI's number of a kind of memory; `None` is pageable.
    pub fn cupti(kind: Option<Kind>) -> u8 {
        match kind {
            None => 1,
            Some(Kind::Pinned | Kind::Registered) => 2,
            Some(Kind::Device) => 3,
            Some(Kind::Managed) => 5,
        }
    }
}

/// One allocation.
#[derive(Clone)]
pub struct Allocation {
    /// Address that the program sees.
    pub base: u64,
    /// Bytes.
    pub len: usize,
    /// Sort.
    pub kind: Kind,
    /// Device.
    pub device: u32,
    /// Context number.
    pub context: u32,
    /// The bytes; `None` for registered memory, which is the program's own.
    pub backing: Option<Arc<Backing>>,
}

static ALLOCATIONS: RwLock<BTreeMap<u64, Allocation>> = RwLock::new(BTreeMap::new());

fn page_up(len: usize) -> Option<usize> {
    Some(len.checked_add(4095)? & !4095)
}

/// Allocates memory.
pub fn allocate(kind: Kind, len: usize, device: u32, context: u32) -> Result<Allocation> {
    static NEXT: AtomicU64 = AtomicU64::new(DEVICE_BASE);
    if len == 0 {
        return Err(error::INVALID_VALUE);
    }
    let rounded = page_up(len).ok_or(error::OUT_OF_MEMORY)?;
    let of_device = matches!(kind, Kind::Device | Kind::Managed).then_some(device);
    let backing = Backing::map(rounded, of_device, kind == Kind::Pinned)?;
    let base = if kind == Kind::Device {
        NEXT.fetch_add(rounded as u64 + 4096, Ordering::Relaxed)
    } else {
        backing.address as u64
    };
    let allocation = Allocation { base, len, kind, device, context, backing: Some(backing) };
    insert(allocation.clone());
    Ok(allocation)
}

fn insert(allocation: Allocation) {
    let mut all = ALLOCATIONS.write().unwrap_or_else(PoisonError::into_inner);
    all.insert(allocation.base, allocation);
}

/// Notes that a range of the program's own memory is pinned.
pub fn register(base: u64, len: usize, device: u32, context: u32) -> Result {
    if base == 0 || len == 0 {
        return Err(error::INVALID_VALUE);
    }
    if find(base).is_some() || find(base.saturating_add(len as u64 - 1)).is_some() {
        return Err(error::HOST_MEMORY_ALREADY_REGISTERED);
    }
    insert(Allocation { base, len, kind: Kind::Registered, device, context, backing: None });
    Ok(())
}

/// Takes an allocation of one of these kinds out. The bytes go with the last user of them.
pub fn remove(base: u64, kinds: &[Kind]) -> Result<Allocation> {
    let mut all = ALLOCATIONS.write().unwrap_or_else(PoisonError::into_inner);
    match all.get(&base) {
        Some(allocation) if kinds.contains(&allocation.kind) => all.remove(&base).ok_or(error::INVALID_VALUE),
        _ => Err(error::INVALID_VALUE),
    }
}

/// The allocation in which an address lies.
pub fn find(address: u64) -> Option<Allocation> {
    let all = ALLOCATIONS.read().unwrap_or_else(PoisonError::into_inner);
    let (_, allocation) = all.range(..=address).next_back()?;
    (address - allocation.base < allocation.len as u64).then(|| allocation.clone())
}

/// The bytes of a range of device or managed memory (or of pinned memory, which devices can address too).
pub fn device_range(address: u64, len: usize) -> Result<(Allocation, Place)> {
    let allocation = find(address).ok_or(error::INVALID_VALUE)?;
    let offset = (address - allocation.base) as usize;
    if len > allocation.len - offset {
        return Err(error::INVALID_VALUE);
    }
    let address = match &allocation.backing {
        Some(backing) => backing.address.wrapping_add(offset),
        None => address as *mut u8,
    };
    let keep = allocation.backing.clone();
    Ok((allocation, Place { address, keep }))
}

/// A range of the host's memory: pageable unless it is known.
pub fn host_range(address: *const u8, len: usize) -> Result<(Option<Allocation>, Place)> {
    if address.is_null() {
        return Err(error::INVALID_VALUE);
    }
    match find(address as u64) {
        Some(allocation) if allocation.kind == Kind::Device => Err(error::INVALID_VALUE),
        Some(_) => device_range(address as u64, len).map(|(allocation, place)| (Some(allocation), place)),
        None => Ok((None, Place { address: address.cast_mut(), keep: None })),
    }
}

/// Free and total bytes of a device.
pub fn info(device: u32) -> (u64, u64) {
    let total = config::get().memory;
    (total.saturating_sub(USED[device as usize & 63].load(Ordering::Relaxed)), total)
}

/// A device's memory pool. There is one for each device, without state of its own.
pub fn pool(device: u32) -> *mut std::ffi::c_void {
    (0x5a0f_0000_0010_u64 + u64::from(device) * 16) as *mut std::ffi::c_void
}

/// An error if that is no pool.
pub fn check_pool(handle: *mut std::ffi::c_void) -> Result {
    let known = (0..config::get().devices).any(|device| pool(device) == handle);
    if known { Ok(()) } else { Err(error::INVALID_VALUE) }
}
