//! Typed access to the maps that the programs and the recorder share.

use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicU8, Ordering};

use aya::Pod;
use aya::maps::{Map, MapData};
use tracer_abi::kernel::{
    CountCache, CountKey, CountValue, KernelConfig, Offsets, PythonProcess, ThreadState,
};

use super::error::ProbeError;

macro_rules! pod {
    ($($(#[$doc:meta])* $name:ident($inner:ty)),+ $(,)?) => { $(
        $(#[$doc])*
        #[repr(transparent)]
        #[derive(Clone, Copy)]
        pub struct $name(pub $inner);
        // SAFETY: a `#[repr(C)]` structure of integers and arrays of integers: every bit pattern is a value.
        unsafe impl Pod for $name {}
    )+ };
}

pod! {
    /// [`CountKey`] in a map.
    PodCountKey(CountKey),
    /// [`CountValue`] in a map.
    PodCountValue(CountValue),
    /// [`CountCache`] in a map.
    PodCountCache(CountCache),
    /// [`KernelConfig`] as a constant of the programs.
    PodConfig(KernelConfig),
    /// [`Offsets`] as a constant of the programs.
    PodOffsets(Offsets),
    /// [`PythonProcess`] in a map.
    PodPythonProcess(PythonProcess),
    /// [`ThreadState`] in a map.
    PodThreadState(ThreadState),
}

/// An array map of bytes that is mapped into this process: the kernel's programs change it byte by byte at the same
/// time, so a read-modify-write through the `bpf` system call would lose their changes.
pub struct SharedBytes {
    address: *mut AtomicU8,
    length: usize,
}

// SAFETY: the memory is only accessed through atomics and stays mapped for the life of the value.
unsafe impl Send for SharedBytes {}

impl SharedBytes {
    /// Maps the array `map` of `length` bytes, made with `BPF_F_MMAPABLE`.
    ///
    /// # Errors
    /// The kernel refuses to map it.
    pub fn map(map: &MapData, name: &'static str, length: usize) -> Result<Self, ProbeError> {
        let descriptor = map.fd().as_fd().as_raw_fd();
        // SAFETY: a fresh mapping at an address that the kernel chooses; the result is checked.
        let address = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                descriptor,
                0,
            )
        };
        if address == libc::MAP_FAILED {
            let reason = std::io::Error::last_os_error().to_string();
            return Err(ProbeError::Map { action: "map", map: name, reason });
        }
        Ok(Self { address: address.cast(), length })
    }

    /// Sets one byte; `false` if the index is outside.
    pub fn set(&self, index: usize, value: u8) -> bool {
        self.at(index).is_some_and(|byte| {
            byte.store(value, Ordering::SeqCst);
            true
        })
    }

    /// One byte; `None` if the index is outside.
    pub fn get(&self, index: usize) -> Option<u8> {
        self.at(index).map(|byte| byte.load(Ordering::SeqCst))
    }

    fn at(&self, index: usize) -> Option<&AtomicU8> {
        // SAFETY: inside the mapping (checked), which lives as long as `self`; a byte has no alignment.
        (index < self.length).then(|| unsafe { &*self.address.add(index) })
    }
}

impl Drop for SharedBytes {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `map`, unmapped once; no reference outlives `self`.
        unsafe { libc::munmap(self.address.cast(), self.length) };
    }
}

/// The data behind an array map, for mapping it.
pub fn array_data<'a>(map: &'a Map, name: &'static str) -> Result<&'a MapData, ProbeError> {
    match map {
        Map::Array(data) => Ok(data),
        _ => Err(ProbeError::Mismatch(format!("the map {name} is no array"))),
    }
}
