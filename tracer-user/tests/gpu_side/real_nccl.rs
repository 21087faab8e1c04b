//! The real NCCL's marks, where `GTRACE_TEST_NCCL` names its library (the wheel `nvidia-nccl-cu12` has it): without a GPU its
//! functions fail, but each is marked first. Passes without that variable, since it then has nothing to test.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use gtrace::event::Pid;
use gtrace::record::gpu::GpuSide;

use super::target::{Rows, shim};

pub const TESTS: &[(&str, fn())] = &[("real_nccl::marks_are_understood", marks_are_understood)];

/// Calls what works without a GPU, then waits to be read.
const PROGRAM: &str = r#"
import ctypes, os, sys, time
nccl = ctypes.CDLL(os.environ["GTRACE_TEST_NCCL"])
version = ctypes.c_int()
assert nccl.ncclGetVersion(ctypes.byref(version)) == 0
for _ in range(3):
    assert nccl.ncclGroupStart() == 0
    assert nccl.ncclGroupEnd() == 0
# Without a communicator: invalid argument, after it was marked.
for _ in range(5):
    assert nccl.ncclAllReduce(None, None, ctypes.c_size_t(1000), 7, 0, None, None) != 0
print(version.value, flush=True)
sys.stdin.read()
"#;

fn marks_are_understood() {
    if std::env::var_os("GTRACE_TEST_NCCL").is_none() {
        println!("    GTRACE_TEST_NCCL names no library: nothing to test");
        return;
    }
    let mut child = Command::new("python3")
        .args(["-c", PROGRAM])
        .env("GTRACE_START", "1")
        .env("NVTX_INJECTION64_PATH", shim())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = Pid(child.id() as i32);
    let (mut side, mut rows) = (GpuSide::new(), Rows::default());
    let deadline = Instant::now() + Duration::from_secs(20);
    let calls = |rows: &Rows, name: &str| rows.markers.iter().filter(|marker| &*marker.name == name).count();
    while calls(&rows, "ncclAllReduce") < 5 && Instant::now() < deadline {
        side.scan([pid]);
        side.drain(&mut |row| rows.take(row));
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    let counts = ["ncclGroupStart", "ncclGroupEnd", "ncclAllReduce"].map(|name| calls(&rows, name));
    assert_eq!(counts, [3, 3, 5], "{:?}", rows.markers);
    assert!(rows.markers.iter().all(|marker| &*marker.domain == "NCCL" && marker.start_ns <= marker.end_ns));
    // It has no GPU, and is not taken for a process that should have one.
    assert!(side.processes().is_empty());
}
