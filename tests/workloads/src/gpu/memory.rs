//! Memory that comes and goes, pinned memory, and code.

use std::ffi::CString;

use anyhow::{Result, bail};
use cudarc::driver::result;

use super::{DeviceMemory, Gpu, OrSay as _, PTX};

/// Pinned host memory, for the life of the process.
pub struct PinnedMemory {
    bytes: &'static mut [u8],
}

impl Gpu {
    /// Frees memory of the device; the driver waits for everything that may use it.
    ///
    /// # Errors
    /// The call fails.
    #[allow(clippy::unused_self, reason = "the call goes to the context that this object made current")]
    pub fn free(&self, memory: DeviceMemory) -> Result<()> {
        // SAFETY: the memory is the caller's, who gives it away.
        unsafe { result::free_sync(memory.pointer) }.or_say("cannot free memory of the device")
    }

    /// Allocates pinned host memory.
    ///
    /// # Errors
    /// There is not enough.
    #[allow(clippy::unused_self, reason = "the call goes to the context that this object made current")]
    pub fn pinned(&self, bytes: usize) -> Result<PinnedMemory> {
        // SAFETY: the memory is used below only.
        let start = unsafe { result::malloc_host(bytes, 0) }.or_say("cannot allocate pinned memory")?;
        // SAFETY: the driver gave these bytes, which are never freed.
        let bytes = unsafe { std::slice::from_raw_parts_mut(start.cast::<u8>(), bytes) };
        bytes.fill(1);
        Ok(PinnedMemory { bytes })
    }

    /// Queues a copy of pinned memory to the device.
    ///
    /// # Errors
    /// It does not fit, or the call fails.
    pub fn copy_pinned(&self, to: DeviceMemory, from: &PinnedMemory) -> Result<()> {
        if from.bytes.len() > to.bytes {
            bail!("{} bytes do not fit into {}", from.bytes.len(), to.bytes);
        }
        // SAFETY: both live for the life of the process, and the target is large enough.
        unsafe { result::memcpy_htod_async(to.pointer, from.bytes, self.stream) }
            .or_say("cannot copy to the device")
    }

    /// Loads the kernel's code once more, and lets it go.
    ///
    /// # Errors
    /// A call fails.
    #[allow(clippy::unused_self, reason = "the call goes to the context that this object made current")]
    pub fn load_code(&self) -> Result<()> {
        let image = CString::new(PTX)?;
        // SAFETY: the image is NUL-terminated PTX.
        let module =
            unsafe { result::module::load_data(image.as_ptr().cast()) }.or_say("cannot load the kernel")?;
        // SAFETY: nothing of the module is used.
        unsafe { result::module::unload(module) }.or_say("cannot unload the kernel")
    }
}
