//! One GPU through the driver API: a stream, and a kernel that keeps the device busy for a given time. The same calls work
//! on a real device and on the simulated one, which goes by the kernel's name.

mod build;
mod memory;
mod order;

use std::ffi::{CString, c_void};

use anyhow::{Result, anyhow, bail};
use cudarc::driver::{result, sys};

pub use order::HostSleep;

/// Busy-waits on the device's own clock. `%globaltimer` counts nanoseconds.
const PTX: &str = "
.version 6.0
.target sm_50
.address_size 64
.visible .entry spin_ns(.param .u64 duration)
{
    .reg .u64 %now, %end, %duration;
    .reg .pred %more;
    ld.param.u64 %duration, [duration];
    mov.u64 %now, %globaltimer;
    add.u64 %end, %now, %duration;
again:
    mov.u64 %now, %globaltimer;
    setp.lt.u64 %more, %now, %end;
    @%more bra again;
    ret;
}
";

/// A device with its primary context, current on the thread that made it.
pub struct Gpu {
    context: sys::CUcontext,
    spin_ns: sys::CUfunction,
    stream: sys::CUstream,
}

/// Memory of the device.
#[derive(Clone, Copy)]
pub struct DeviceMemory {
    pointer: sys::CUdeviceptr,
    bytes: usize,
}

impl DeviceMemory {
    /// Where it lies.
    pub fn address(self) -> u64 {
        self.pointer
    }
}

impl Gpu {
    /// Opens device 0.
    ///
    /// # Errors
    /// There is no CUDA driver or no device, or a call fails.
    pub fn open() -> Result<Self> {
        Self::open_device(0)
    }

    /// How many devices there are; one must have been opened.
    ///
    /// # Errors
    /// The call fails.
    pub fn count() -> Result<i32> {
        result::device::get_count().or_say("cannot count the devices")
    }

    /// Opens a device; it is the calling thread's current one after that.
    ///
    /// # Errors
    /// There is no CUDA driver or no such device, or a call fails.
    pub fn open_device(number: i32) -> Result<Self> {
        Self::open_on(number, false)
    }

    /// The same. `blocking`: threads that wait for it sleep.
    ///
    /// # Errors
    /// As above.
    pub fn open_on(number: i32, blocking: bool) -> Result<Self> {
        // cudarc panics on a missing library, so ask first.
        // SAFETY: this only loads the CUDA driver's library, which is made for it.
        if !unsafe { sys::is_culib_present() } {
            bail!(
                "no CUDA driver (libcuda.so.1): on a machine without one set LD_LIBRARY_PATH to `cargo xtask sim-path`"
            );
        }
        result::init().or_say("cuInit failed")?;
        let device = result::device::get(number).or_say(&format!("there is no CUDA device {number}"))?;
        if blocking {
            let flags = sys::CUctx_flags_enum::CU_CTX_SCHED_BLOCKING_SYNC as u32;
            // SAFETY: a device that the driver gave, and a flag.
            unsafe { sys::cuDevicePrimaryCtxSetFlags_v2(device, flags) }
                .result()
                .or_say("cannot let waits for the device sleep")?;
        }
        // SAFETY: the device was returned by the driver; its context stays retained for the life of the process.
        let context =
            unsafe { result::primary_ctx::retain(device) }.or_say("cannot get the device's context")?;
        // SAFETY: the context was just returned by the driver.
        unsafe { result::ctx::set_current(context) }.or_say("cannot make the context current")?;
        let image = CString::new(PTX)?;
        // SAFETY: the image is NUL-terminated PTX.
        let module =
            unsafe { result::module::load_data(image.as_ptr().cast()) }.or_say("cannot load the kernel")?;
        // SAFETY: the module was just loaded and is never unloaded.
        let spin_ns = unsafe { result::module::get_function(module, CString::new("spin_ns")?) }
            .or_say("the kernel has no spin_ns")?;
        let stream =
            result::stream::create(result::stream::StreamKind::NonBlocking).or_say("cannot make a stream")?;
        Ok(Self { context, spin_ns, stream })
    }

    /// Queues a kernel that runs for so long.
    ///
    /// # Errors
    /// The launch fails.
    pub fn kernel(&self, nanoseconds: u64) -> Result<()> {
        let mut duration = nanoseconds;
        let mut parameters = [(&raw mut duration).cast::<c_void>()];
        // SAFETY: function and stream are live; the kernel has one parameter of 8 bytes, copied before the call returns.
        unsafe { result::launch_kernel(self.spin_ns, (1, 1, 1), (1, 1, 1), 0, self.stream, &mut parameters) }
            .or_say("cannot launch the kernel")
    }

    /// The stream.
    pub fn stream(&self) -> *mut c_void {
        self.stream.cast()
    }

    /// Waits until the device has done all that was queued.
    ///
    /// # Errors
    /// The call fails.
    pub fn synchronize(&self) -> Result<()> {
        // SAFETY: the stream is live.
        unsafe { result::stream::synchronize(self.stream) }.or_say("cannot synchronise with the stream")
    }

    /// Allocates memory of the device, for the life of the process.
    ///
    /// # Errors
    /// There is not enough.
    #[allow(clippy::unused_self, reason = "the call goes to the context that this object made current")]
    pub fn alloc(&self, bytes: usize) -> Result<DeviceMemory> {
        // SAFETY: the memory is only ever written by copies.
        let pointer = unsafe { result::malloc_sync(bytes) }.or_say("cannot allocate memory of the device")?;
        Ok(DeviceMemory { pointer, bytes })
    }

    /// Copies ordinary (pageable) memory to the device, and waits for it: the driver stages it through its own buffer.
    ///
    /// # Errors
    /// It does not fit, or the call fails.
    #[allow(clippy::unused_self, reason = "the call goes to the context that this object made current")]
    pub fn copy_pageable(&self, to: DeviceMemory, from: &[u8]) -> Result<()> {
        if from.len() > to.bytes {
            bail!("{} bytes do not fit into {}", from.len(), to.bytes);
        }
        // SAFETY: the device memory is live and large enough; the call returns when the source is no longer needed.
        unsafe { result::memcpy_htod_sync(to.pointer, from) }.or_say("cannot copy to the device")
    }
}

/// Words for a failed call.
trait OrSay<T> {
    /// The error as `what` and the name of CUDA's result.
    fn or_say(self, what: &str) -> Result<T>;
}

impl<T> OrSay<T> for Result<T, result::DriverError> {
    fn or_say(self, what: &str) -> Result<T> {
        self.map_err(|error| anyhow!("{what}: {:?}", error.0))
    }
}
