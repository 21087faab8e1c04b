//! The driver from Python, as workloads use it.
#![allow(clippy::unwrap_used, reason = "a failure here is a failure of the test")]

mod common;

use std::process::Command;

const PROGRAM: &str = r#"
import ctypes as C, hashlib, os, time
cu = C.CDLL("libcuda.so.1")
def check(result):
    assert result == 0, result
check(cu.cuInit(0))
context = C.c_void_p()
check(cu.cuDevicePrimaryCtxRetain(C.byref(context), 0))
check(cu.cuCtxSetCurrent(context))
ptx = b".version 7.0\n.target sm_70\n.visible .entry spin_ns(.param .u64 ns) { ret; }"
module, function, stream = C.c_void_p(), C.c_void_p(), C.c_void_p()
check(cu.cuModuleLoadData(C.byref(module), ptx))
check(cu.cuModuleGetFunction(C.byref(function), module, b"spin_ns"))
check(cu.cuStreamCreate(C.byref(stream), 1))
ns = C.c_uint64(30_000_000)
arguments = (C.c_void_p * 1)(C.cast(C.byref(ns), C.c_void_p))
begin = time.monotonic_ns()
check(cu.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, arguments, None))
check(cu.cuStreamSynchronize(stream))
assert time.monotonic_ns() - begin >= 30_000_000
data = os.urandom(1 << 20)
device, size = C.c_uint64(), C.c_size_t(len(data))
check(cu.cuMemAlloc_v2(C.byref(device), size))
check(cu.cuMemcpyHtoD_v2(device, data, size))
back = C.create_string_buffer(len(data))
check(cu.cuMemcpyDtoH_v2(back, device, size))
assert hashlib.sha256(back.raw).digest() == hashlib.sha256(data).digest()
print("good")
"#;

#[test]
fn python_can_use_it_through_ctypes() {
    let output = Command::new("python3")
        .args(["-c", PROGRAM])
        .env("LD_LIBRARY_PATH", common::folder())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "good\n", "{errors}");
}
