//! Bringing the shim into a running process. The process is one that checks every result of every call it makes.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::time::{Duration, Instant};

use gtrace::event::Pid;
use gtrace::record::gpu::{GpuRow, GpuSide};
use gtrace::store::Bundle;
use gtrace::store::schema::{CudaApi, GpuOp, Loss};

use crate::gtrace::{gtrace, python, rows, wait_until};

fn variable(name: &str) -> PathBuf {
    PathBuf::from(
        std::env::var_os(name).unwrap_or_else(|| panic!("{name} is not set: run `cargo xtask test`")),
    )
}

pub fn shim() -> PathBuf {
    variable("GTRACE_TEST_BIN_DIR").join("libgtrace_cupti.so")
}

/// A program with many threads that uses the simulated GPU and knows nothing of gtrace.
pub struct Restless {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<std::process::ChildStdout>,
}

impl Restless {
    pub fn start(threads: u32) -> Self {
        Self::start_by(Command::new(program()).args(["restless", &threads.to_string()])).with_cuda()
    }

    /// Once it uses CUDA.
    fn with_cuda(self) -> Self {
        wait_until("it uses CUDA", || {
            let maps = std::fs::read_to_string(format!("/proc/{}/maps", self.pid())).unwrap();
            maps.contains("libcuda.so")
        });
        self
    }

    fn start_by(command: &mut Command) -> Self {
        let mut child = command
            .env("LD_LIBRARY_PATH", variable("GTRACE_SIM_PATH"))
            .env_remove("CUDA_INJECTION64_PATH")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        assert!(line.starts_with("READY "), "{line}");
        Self { input: child.stdin.take(), child, output }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends it; it must have seen nothing.
    pub fn end(mut self) {
        drop(self.input.take());
        let mut text = String::new();
        self.output.read_to_string(&mut text).unwrap();
        assert!(self.child.wait().unwrap().success() && text.starts_with("RESTLESS ok"), "{text}");
    }
}

impl Drop for Restless {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn program() -> PathBuf {
    variable("GTRACE_TEST_BIN_DIR").join("workloads")
}

fn attach(pid: u32, bundle: &Path, duration: &str) -> Command {
    let mut command = gtrace();
    command
        .args(["attach", &pid.to_string(), "--no-report", "--duration", duration, "-o"])
        .arg(bundle)
        .env("LD_LIBRARY_PATH", variable("GTRACE_SIM_PATH"))
        .env("GTRACE_SHIM", shim());
    command
}

/// The GPU side came up. (On a machine under load events may be lost, which the exit status says, too.)
fn expect_gpu(what: &str, output: &Output) {
    assert!(matches!(output.status.code(), Some(0 | 3)), "{what}: {}", said(output));
    assert!(
        said(output).contains("GPU side attached: records come from process"),
        "{what}: {}",
        said(output)
    );
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn ops(bundle: &Path) -> usize {
    rows::<GpuOp>(bundle).len()
}

/// What gtrace may leave in a process is the shim, its ring and its thread: once, however often it comes.
fn belongings(pid: u32) -> (usize, usize, usize) {
    let count = |folder: &str| std::fs::read_dir(format!("/proc/{pid}/{folder}")).unwrap().count();
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let ours = maps.lines().filter(|line| line.contains("gtrace")).count();
    (count("fd"), count("task"), ours)
}

/// Pipes of processes that are being started come and go: the least of some looks.
fn least_belongings(pid: u32) -> (usize, usize, usize) {
    let look = |_| {
        std::thread::sleep(Duration::from_millis(7));
        belongings(pid)
    };
    (0..30).map(look).min().unwrap()
}

#[test]
#[ignore = "loads eBPF programs and traces a process, which needs root"]
fn root_a_running_process_gets_a_gpu_side_and_sees_nothing() {
    let target = Restless::start(64);
    let folder = tempfile::tempdir().unwrap();
    let first = folder.path().join("first.gtrace");
    let output = attach(target.pid(), &first, "2s").output().unwrap();
    expect_gpu("first", &output);
    assert!(ops(&first) > 500, "{} kernels", ops(&first));
    let meta = Bundle::open(&first).unwrap().meta().clone();
    assert_eq!(meta.gpu_missing, None);
    let least = || least_belongings(target.pid());
    let after_first = least();
    assert!(after_first.2 > 0);
    for round in 0..5 {
        let again = folder.path().join(format!("again{round}.gtrace"));
        let output = attach(target.pid(), &again, "1s").output().unwrap();
        expect_gpu("again", &output);
    }
    let after_last = least();
    assert_eq!((after_first.0, after_first.1, after_first.2), after_last, "descriptors, threads, mappings");
    target.end();
}

#[test]
#[ignore = "loads eBPF programs and traces a process, which needs root"]
fn root_gtrace_can_be_killed_at_any_moment_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let places = [
        "seized",
        "written",
        "entered",
        "mapped",
        "filled",
        "memfd",
        "library",
        "loaded",
        "returning",
        "restored",
    ];
    for place in places {
        let target = Restless::start(16);
        let bundle = folder.path().join(format!("{place}.gtrace"));
        let output = attach(target.pid(), &bundle, "1s").env("GTRACE_INJECT_FAULT", place).output().unwrap();
        assert_eq!(output.status.code(), None, "{place}: it was to be killed: {}", said(&output));
        std::thread::sleep(Duration::from_millis(300));
        let status = std::fs::read_to_string(format!("/proc/{}/status", target.pid())).unwrap();
        assert!(status.contains("TracerPid:\t0"), "{place}: {status}");
        // And a later one comes in.
        let bundle = folder.path().join(format!("{place}-later.gtrace"));
        let output = attach(target.pid(), &bundle, "1s").output().unwrap();
        expect_gpu(place, &output);
        target.end();
    }
}

#[test]
#[ignore = "loads eBPF programs and traces a process, which needs root"]
fn root_a_process_in_namespaces_of_its_own_with_a_read_only_root_is_entered() {
    let script =
        "mount -t tmpfs -o noexec,nosuid tmpfs /tmp && mount -o remount,bind,ro / && exec \"$0\" restless 16";
    let mut command = Command::new("unshare");
    command
        .args([
            "--mount",
            "--pid",
            "--net",
            "--user",
            "--map-root-user",
            "--fork",
            "--mount-proc",
            "sh",
            "-c",
            script,
        ])
        .arg(program());
    let target = Restless::start_by(&mut command);
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("namespaces.gtrace");
    let output = attach(target.pid(), &bundle, "2s").output().unwrap();
    expect_gpu("namespaces", &output);
    target.end();
}

/// In its pid namespace only memfds are allowed that can never be executed (`vm.memfd_noexec=2`, Linux 6.3 and later).
#[test]
#[ignore = "loads eBPF programs and traces a process, which needs root"]
fn root_a_process_that_may_not_make_executable_memfds_is_entered() {
    if !Path::new("/proc/sys/vm/memfd_noexec").exists() {
        return;
    }
    let script = "echo 2 > /proc/sys/vm/memfd_noexec && exec \"$0\" restless 16";
    let mut command = Command::new("unshare");
    command.args(["--pid", "--mount", "--fork", "--mount-proc", "sh", "-c", script]).arg(program());
    let target = Restless::start_by(&mut command);
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("memfd.gtrace");
    let output = attach(target.pid(), &bundle, "2s").output().unwrap();
    expect_gpu("memfd_noexec", &output);
    target.end();
}

#[test]
#[ignore = "loads eBPF programs and traces a process, which needs root"]
fn root_a_process_that_comes_to_use_cuda_later_is_entered() {
    let mut command = Command::new("sh");
    command.args([
        "-c",
        "echo READY now; sleep 2.5; \"$0\" restless 8 > /dev/null",
        program().to_str().unwrap(),
    ]);
    let mut target = Restless::start_by(&mut command);
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("later.gtrace");
    let output = attach(target.pid(), &bundle, "7s").output().unwrap();
    expect_gpu("later", &output);
    drop(target.input.take());
    assert!(target.child.wait().unwrap().success());
}

/// `--no-cupti` leaves it alone.
#[test]
#[ignore = "loads eBPF programs, which needs root"]
fn root_nothing_is_brought_in_when_that_is_not_wanted() {
    let target = Restless::start(8);
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("none.gtrace");
    let output = attach(target.pid(), &bundle, "2s").arg("--no-cupti").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert_eq!(belongings(target.pid()).2, 0, "nothing of gtrace's is in it");
    let meta = Bundle::open(&bundle).unwrap().meta().clone();
    assert_eq!(meta.gpu_bounds, [target.pid() as i32]);
    let [gpu] = &meta.gpu_devices[..] else { panic!("{:?}", meta.gpu_devices) };
    assert!(gpu.name.contains("H200") && gpu.uuid.len() == 32 && gpu.pci.ends_with(":01:00.0"), "{gpu:?}");
    let holder = gpu.holders.iter().find(|holder| holder.pid == target.pid() as i32).expect("a holder");
    assert!(holder.recorded && holder.sent_work && holder.memory_bytes > 0, "{holder:?}");
    check_bounds(&bundle, target.pid());
    target.end();
}

/// Stretches with queued work, and gaps between them that end with a launch and begin with the return of a wait.
fn check_bounds(bundle: &Path, pid: u32) {
    let stretches = rows::<GpuOp>(bundle);
    let calls = rows::<CudaApi>(bundle);
    assert!(stretches.len() > 20, "{} stretches", stretches.len());
    assert!(stretches.iter().all(|op| &*op.kind == "queued" && op.pid.0 == pid as i32));
    assert!(stretches.windows(2).all(|pair| pair[0].end_ns <= pair[1].start_ns), "disjoint");
    for stretch in &stretches[..stretches.len() - 1] {
        let launch = calls.iter().find(|call| call.start_ns == stretch.start_ns);
        assert!(
            launch.is_some_and(|call| call.name.contains("Launch") || call.name.contains("Mem")),
            "{launch:?}"
        );
        let wait = calls.iter().find(|call| call.end_ns == stretch.end_ns && call.end_ns > call.start_ns);
        assert!(wait.is_some(), "{stretch:?} ends with no wait");
    }
}

/// A process that has a context and does nothing with it.
#[test]
#[ignore = "loads eBPF programs and traces a process, which needs root"]
fn root_a_process_that_holds_a_gpu_and_sends_it_no_work_is_named() {
    let mut command = Command::new(python());
    command.args(["-c", HOLDER]);
    let target = Restless::start_by(&mut command);
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("holder.gtrace");
    let output = attach(target.pid(), &bundle, "3s").output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    for command in ["analyze", "report"] {
        let output = gtrace().arg(command).arg(&bundle).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let named = words.contains(&format!("process {} (python", target.pid()));
        assert!(command == "analyze" || named && words.contains("but sent it no work"), "{text}");
    }
}

const HOLDER: &str = r"
import ctypes, sys
cuda = ctypes.CDLL('libcuda.so.1')
assert cuda.cuInit(0) == 0
context = ctypes.c_void_p()
assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
print('READY', flush=True, end=' \n')
sys.stdin.read()
";

/// A CUPTI that another tool holds: the driver's calls are recorded instead, and it is said why.
#[test]
#[ignore = "loads eBPF programs and traces a process, which needs root"]
fn root_where_cupti_is_refused_the_drivers_calls_give_bounds() {
    let mut command = Command::new(program());
    command.args(["restless", "8"]).env("SIMCUDA_SUBSCRIBER_BUSY", "another-tool");
    let target = Restless::start_by(&mut command).with_cuda();
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("busy.gtrace");
    let output = attach(target.pid(), &bundle, "4s").output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    assert!(
        said(&output).contains("39") && said(&output).contains("bounds from the driver's calls"),
        "{}",
        said(&output)
    );
    check_bounds(&bundle, target.pid());
    target.end();
}

/// What must not be touched is not: it is said why, and the host side is recorded all the same.
#[test]
#[ignore = "loads eBPF programs and traces a process, which needs root"]
fn root_refusals_name_their_reason() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |name: &str, target: &Restless, words: &str| {
        let bundle = folder.path().join(format!("{name}.gtrace"));
        let output = attach(target.pid(), &bundle, "500ms").output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{name}: {}", said(&output));
        assert!(said(&output).contains(words), "{name}: {}", said(&output));
        assert_eq!(belongings(target.pid()).2, 0, "{name}");
    };

    // A debugger has it.
    let target = Restless::start(8);
    let pid = target.pid() as libc::pid_t;
    // SAFETY: numbers; the thread that seizes ends the tracing, below.
    assert_eq!(unsafe { libc::ptrace(libc::PTRACE_SEIZE, pid, 0, 0) }, 0);
    refused("traced", &target, "is traced by process");
    drop(target);

    // A filter that kills for memfd_create.
    let mut command = Command::new(program());
    command.args(["restless", "8"]).env("SIMCUDA_UNMARKED", "1");
    kill_on(&mut command, libc::SYS_memfd_create as u32);
    let target = Restless::start_by(&mut command).with_cuda();
    refused("seccomp", &target, "its seccomp filter kills it");
    target.end();
}

/// A process forked from one that uses CUDA has the driver mapped and cannot use it: it is left alone, unless it does.
#[test]
#[ignore = "loads eBPF programs and traces a process, which needs root"]
fn root_forked_workers_are_left_alone() {
    let mut command = Command::new(python());
    command.args(["-c", FORKED]);
    let target = Restless::start_by(&mut command);
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("forked.gtrace");
    let output = attach(target.pid(), &bundle, "3s").output().unwrap();
    expect_gpu("forked", &output);
    let pid = target.pid();
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    let entered: Vec<bool> =
        children.split_whitespace().map(|child| belongings(child.parse().unwrap()).2 > 0).collect();
    // The first sleeps, the second calls the driver.
    assert_eq!(entered, [false, true]);
    assert!(belongings(pid).2 > 0);
    assert!(Bundle::open(&bundle).unwrap().meta().gpu_missing.is_none(), "{}", said(&output));
}

/// Two children: a worker, and one that launches as if it had initialised CUDA itself.
const FORKED: &str = r"
import ctypes, os, select, sys, time
ctypes.CDLL(None).prctl(1, 9) # PR_SET_PDEATHSIG
cuda = ctypes.CDLL('libcuda.so.1')
if os.fork() == 0:
    ctypes.CDLL(None).prctl(1, 9)
    time.sleep(1000)
if os.fork() == 0:
    ctypes.CDLL(None).prctl(1, 9)
    cuda.cuInit(0)
    while True:
        cuda.cuLaunchKernel(0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0)
        time.sleep(0.01)
assert cuda.cuInit(0) == 0
context = ctypes.c_void_p()
assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0
memory = ctypes.c_uint64()
assert cuda.cuMemAlloc_v2(ctypes.byref(memory), 4096) == 0
print('READY', flush=True, end=' \n')
while not select.select([sys.stdin], [], [], 0.01)[0]:
    assert cuda.cuMemsetD8_v2(memory, 1, 4096) == 0
";

/// CUPTI before CUDA 12.6 keeps out of a process that replays graphs; a newer one does not.
#[test]
#[ignore = "loads eBPF programs and traces a process, which needs root"]
fn root_an_old_cupti_keeps_out_of_cuda_graphs() {
    let folder = tempfile::tempdir().unwrap();
    for (cuda, driver, refused) in [("12.4", "12040", true), ("13.0", "13000", false)] {
        let mut command = Command::new(python());
        command.args(["-c", GRAPHS]).env("SIMCUDA_CUPTI_VERSION", cuda).env("SIMCUDA_DRIVER_VERSION", driver);
        let target = Restless::start_by(&mut command);
        let output = attach(target.pid(), &folder.path().join(cuda), "1s").output().unwrap();
        assert_eq!(output.status.code(), Some(if refused { 3 } else { 0 }), "{cuda}: {}", said(&output));
        let replays = said(&output).contains("replays CUDA graphs (");
        assert_eq!(replays, refused, "{cuda}: {}", said(&output));
        assert_ne!(belongings(target.pid()).2, 0, "{cuda}");
    }
}

/// Calls the driver as a program does that replays a graph a hundred times a second. (The simulated driver has no graph to
/// replay and says so; the call is what counts.)
const GRAPHS: &str = r"
import ctypes, select, sys
cuda = ctypes.CDLL('libcuda.so.1')
assert cuda.cuInit(0) == 0
print('READY', flush=True, end=' \n')
while not select.select([sys.stdin], [], [], 0.01)[0]:
    cuda.cuGraphLaunch(0, 0)
";

/// Another client of CUPTI comes, takes the records over and goes again, as a profiler within the program does: its records
/// are left to it, the time is said to be lost, and after that it goes on.
#[test]
#[ignore = "loads eBPF programs and traces a process, which needs root"]
fn root_another_client_of_cupti_comes_and_goes() {
    let mut command = Command::new(python());
    command.args(["-c", SECOND_CLIENT]);
    let target = Restless::start_by(&mut command);
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("second.gtrace");
    let output = attach(target.pid(), &bundle, "12s").output().unwrap();
    expect_gpu("second client", &output);
    assert!(said(&output).contains("another profiler began to use CUPTI"), "{}", said(&output));
    assert!(said(&output).contains("is gone: GPU work is recorded again"), "{}", said(&output));
    let taken: Vec<Loss> =
        rows::<Loss>(&bundle).into_iter().filter(|loss| &*loss.source == "cupti.taken").collect();
    assert_eq!(taken.len(), 1, "{taken:?}");
    let (start, end) = (taken[0].start_ns, taken[0].end_ns);
    assert!((2_000_000_000..8_000_000_000).contains(&(end.0 - start.0)), "{taken:?}");
    let ops = rows::<GpuOp>(&bundle);
    assert!(ops.iter().any(|op| op.end_ns <= start) && ops.iter().any(|op| op.start_ns >= end));
    assert!(ops.iter().all(|op| op.start_ns < start || op.start_ns >= end), "none within");
}

/// Works without pause; from its fifth second to its seventh it is a client of CUPTI.
const SECOND_CLIENT: &str = r"
import ctypes, select, sys, time
ctypes.CDLL(None).prctl(1, 9) # PR_SET_PDEATHSIG
cuda = ctypes.CDLL('libcuda.so.1')
assert cuda.cuInit(0) == 0
context, memory, size = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_size_t(1 << 20)
assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0
assert cuda.cuMemAlloc_v2(ctypes.byref(memory), size) == 0
cupti = ctypes.CDLL('libcupti.so.13')
sizes, buffers = ctypes.POINTER(ctypes.c_size_t), []
REQUESTED = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_void_p), sizes, sizes)
COMPLETED = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)
def requested(buffer, bytes, most):
    buffers.append(ctypes.create_string_buffer(1 << 20))
    buffer[0], bytes[0], most[0] = ctypes.addressof(buffers[-1]), 1 << 20, 0
callbacks = REQUESTED(requested), COMPLETED(lambda *_: None)
print('READY', flush=True, end=' \n')
began, state = time.monotonic(), 0
while not select.select([sys.stdin], [], [], 0.002)[0]:
    cuda.cuMemsetD8Async(memory, 1, size, None)
    cuda.cuCtxSynchronize()
    at = time.monotonic() - began
    if state == 0 and at > 6:
        cupti.cuptiActivityRegisterCallbacks(*callbacks)
        cupti.cuptiActivityEnable(2)
        state = 1
    if state == 1 and at > 8:
        cupti.cuptiActivityFlushAll(1)
        cupti.cuptiActivityDisable(2)
        state = 2
";

/// Lets a program be killed by its seccomp filter for one system call.
fn kill_on(command: &mut Command, call: u32) {
    use std::os::unix::process::CommandExt as _;
    let op = |code: u16, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let mut filter = [
        op(0x20, 0, 0, 0),
        op(0x15, 0, 1, call),
        op(0x06, 0, 0, libc::SECCOMP_RET_KILL_PROCESS),
        op(0x06, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    // SAFETY: two system calls, in the child after the fork.
    unsafe {
        command.pre_exec(move || {
            let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
            let set = libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
                && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) == 0;
            if set { Ok(()) } else { Err(std::io::Error::last_os_error()) }
        });
    }
}

/// Stopped by a signal, the process waits for nothing that could be entered; it stays stopped, and untouched.
#[test]
#[ignore = "loads eBPF programs and traces a process, which needs root"]
fn root_a_stopped_process_stays_stopped() {
    let target = Restless::start(8);
    let pid = target.pid() as libc::pid_t;
    // SAFETY: a signal to our own child.
    unsafe { libc::kill(pid, libc::SIGSTOP) };
    let state = || std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    wait_until("it is stopped", || state().contains("T (stopped)"));
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("stopped.gtrace");
    let output = attach(target.pid(), &bundle, "1s").output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    assert!(said(&output).contains("GPU side not attached"), "{}", said(&output));
    assert!(state().contains("T (stopped)"), "{}", state());
    // SAFETY: as above.
    unsafe { libc::kill(pid, libc::SIGCONT) };
    target.end();
}

/// Recorders come and go while the process launches, takes signals and forks. `GTRACE_TEST_RECORDERS` says how many.
#[test]
#[ignore = "loads eBPF programs and traces a process, which needs root"]
fn root_recorders_that_come_and_go_leave_nothing_behind() {
    let recorders: u32 =
        std::env::var("GTRACE_TEST_RECORDERS").ok().map_or(10, |text| text.parse().expect("a number"));
    let target = Restless::start(64);
    let folder = tempfile::tempdir().unwrap();
    expect_gpu("first", &attach(target.pid(), &folder.path().join("a.gtrace"), "2s").output().unwrap());
    let pid = Pid(target.pid() as i32);
    let resident = || {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap()
    };
    let mut before = None;
    for number in 0..recorders {
        let mut side = GpuSide::new();
        side.scan([pid]);
        let (mut kernels, began) = (0, Instant::now());
        while kernels < 20 {
            side.drain(&mut |row| kernels += u32::from(matches!(row, GpuRow::Op(_))));
            assert!(began.elapsed() < Duration::from_secs(30), "recorder {number} gets no kernels");
            std::thread::sleep(Duration::from_millis(5));
        }
        side.finish(Duration::from_secs(1), &mut |_| {});
        drop(side);
        // The first few make what is made once.
        if number == 5 {
            before = Some((least_belongings(target.pid()), resident()));
        }
    }
    if let Some((belongings, kilobytes)) = before {
        assert_eq!(belongings, least_belongings(target.pid()), "descriptors, threads, mappings");
        let now = resident();
        println!(
            "{recorders} recorders: resident memory {kilobytes} kB after the fifth, {now} kB after the last"
        );
        assert!(now < kilobytes + 8 * 1024, "resident memory grew from {kilobytes} to {now} kB");
    }
    target.end();
}
