"""The few calls of the CUDA driver API that the demo needs, by ctypes. Runs on a real GPU and on a simulated one."""

import ctypes
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint, c_uint64, c_void_p

# Keeps one thread of the GPU busy for the given time. A simulated device goes by the function's name.
PTX = b"""
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
"""

SUCCESS, NOT_READY = 0, 600
EVENT_DISABLE_TIMING = 2
STREAM_NON_BLOCKING = 1


class CudaError(RuntimeError):
    """A driver call failed."""


class Driver:
    """The library; every call raises on an error."""

    def __init__(self):
        self.lib = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", c_uint(0))

    def call(self, name, *arguments):
        result = getattr(self.lib, name)(*arguments)
        if result != SUCCESS:
            raise CudaError(f"{name} failed with CUresult {result}")

    def device_count(self):
        count = c_int(0)
        self.call("cuDeviceGetCount", byref(count))
        return count.value

    def device_name(self, device):
        name = ctypes.create_string_buffer(256)
        self.call("cuDeviceGetName", name, c_int(256), c_int(device))
        return name.value.decode(errors="replace")


class Gpu:
    """One device with its primary context, one stream and the kernel."""

    def __init__(self, driver, device=0):
        self.driver, self.call = driver, driver.call
        self.name = driver.device_name(device)
        self.context, module = c_void_p(), c_void_p()
        self.call("cuDevicePrimaryCtxRetain", byref(self.context), c_int(device))
        self.make_current()
        self.call("cuModuleLoadData", byref(module), c_char_p(PTX))
        self.spin_ns, self.stream = c_void_p(), c_void_p()
        self.call("cuModuleGetFunction", byref(self.spin_ns), module, c_char_p(b"spin_ns"))
        self.call("cuStreamCreate", byref(self.stream), c_uint(STREAM_NON_BLOCKING))

    def make_current(self):
        """Each thread that calls CUDA says this once."""
        self.call("cuCtxSetCurrent", self.context)

    def kernel(self, microseconds):
        """Queues a kernel."""
        duration = c_uint64(int(microseconds * 1000))
        parameters = (c_void_p * 1)(ctypes.addressof(duration))
        one = [c_uint(1)] * 6
        self.call("cuLaunchKernel", self.spin_ns, *one, c_uint(0), self.stream, parameters, None)

    def alloc(self, size):
        pointer = c_uint64()
        self.call("cuMemAlloc_v2", byref(pointer), c_size_t(size))
        return pointer

    def alloc_pinned(self, size):
        pointer = c_void_p()
        self.call("cuMemHostAlloc", byref(pointer), c_size_t(size), c_uint(0))
        return pointer

    def copy_to_device(self, device, pinned, size):
        self.call("cuMemcpyHtoDAsync_v2", device, pinned, c_size_t(size), self.stream)

    def copy_to_host(self, host, device, size):
        self.call("cuMemcpyDtoHAsync_v2", host, device, c_size_t(size), self.stream)

    def synchronize(self):
        self.call("cuStreamSynchronize", self.stream)

    def record_event(self):
        event = c_void_p()
        self.call("cuEventCreate", byref(event), c_uint(EVENT_DISABLE_TIMING))
        self.call("cuEventRecord", event, self.stream)
        return event

    def is_done(self, event):
        """Whether all that was queued before the event is done; a done event is destroyed."""
        result = self.driver.lib.cuEventQuery(event)
        if result == NOT_READY:
            return False
        if result != SUCCESS:
            raise CudaError(f"cuEventQuery failed with CUresult {result}")
        self.call("cuEventDestroy_v2", event)
        return True
