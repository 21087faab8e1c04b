//! The process that is recorded. Speaks the driver API as any program does, and prints what it did, one line a call.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::io::{BufRead, Write};
use std::ptr;
use std::time::Duration;

use libloading::Library;

/// The variable that makes this binary the client: what to do.
pub const WORK: &str = "GTRACE_TEST_CLIENT";

const PTX: &CStr = c"
.version 6.0
.target sm_50
.address_size 64
.visible .entry spin_ns(.param .u64 duration)
{
    ret;
}
";

/// Names the communicator of its ranks.
pub const COMMUNICATOR: &str = "GTRACE_TEST_COMMUNICATOR";
/// The device that it uses, 0 without.
pub const DEVICE: &str = "GTRACE_TEST_DEVICE";

/// Bytes of a copy.
pub const COPY_BYTES: usize = 1 << 20;

type Handle = *mut c_void;

struct Cuda {
    library: Library,
    context: Handle,
    function: Handle,
    stream: Handle,
    memory: u64,
    host: Vec<u8>,
}

macro_rules! call {
    ($cuda:expr, $name:literal ( $($argument:expr => $type:ty),* $(,)? )) => {{
        // SAFETY: the type of the CUDA driver API.
        let function = unsafe {
            $cuda.get::<unsafe extern "C" fn($($type),*) -> c_int>(concat!($name, "\0").as_bytes())
        }.unwrap();
        // SAFETY: handles of the driver and variables of ours.
        let code = unsafe { function($($argument),*) };
        assert_eq!(code, 0, $name);
    }};
}

impl Cuda {
    fn open() -> Self {
        // SAFETY: the driver may be loaded into any process.
        let library = unsafe { Library::new("libcuda.so.1") }.unwrap();
        let (mut device, mut memory) = (0, 0);
        let (mut context, mut module, mut function, mut stream) =
            (ptr::null_mut(), ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
        call!(library, "cuInit"(0 => c_uint));
        let number: c_int = std::env::var(DEVICE).map_or(0, |number| number.parse().unwrap());
        call!(library, "cuDeviceGet"(&raw mut device => *mut c_int, number => c_int));
        call!(library, "cuDevicePrimaryCtxRetain"(&raw mut context => *mut Handle, device => c_int));
        call!(library, "cuCtxSetCurrent"(context => Handle));
        call!(library, "cuModuleLoadData"(&raw mut module => *mut Handle, PTX.as_ptr() => *const c_char));
        let name = c"spin_ns";
        call!(library, "cuModuleGetFunction"(&raw mut function => *mut Handle, module => Handle, name.as_ptr() => *const c_char));
        call!(library, "cuStreamCreate"(&raw mut stream => *mut Handle, 1 => c_uint));
        call!(library, "cuMemAlloc_v2"(&raw mut memory => *mut u64, COPY_BYTES => usize));
        Self { library, context, function, stream, memory, host: vec![7; COPY_BYTES] }
    }

    fn launch(&self, nanoseconds: u64) {
        let mut duration = nanoseconds;
        let mut parameters = [(&raw mut duration).cast::<c_void>()];
        call!(self.library, "cuLaunchKernel"(
            self.function => Handle, 2 => c_uint, 3 => c_uint, 4 => c_uint, 32 => c_uint, 2 => c_uint, 1 => c_uint,
            0 => c_uint, self.stream => Handle, parameters.as_mut_ptr() => *mut *mut c_void, ptr::null_mut() => Handle,
        ));
    }

    fn copy_in(&self) {
        call!(self.library, "cuMemcpyHtoDAsync_v2"(
            self.memory => u64, self.host.as_ptr() => *const u8, COPY_BYTES => usize, self.stream => Handle));
    }

    fn set(&self) {
        call!(self.library, "cuMemsetD8Async"(self.memory => u64, 5 => u8, COPY_BYTES => usize, self.stream => Handle));
    }

    fn synchronize(&self) {
        call!(self.library, "cuStreamSynchronize"(self.stream => Handle));
    }
}

/// CLOCK_MONOTONIC, in ns.
pub fn now() -> i64 {
    let time = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC).unwrap();
    time.tv_sec() * 1_000_000_000 + time.tv_nsec()
}

/// Does what the word says.
pub fn run(work: &str) {
    let (what, number) = work.split_once(':').unwrap_or((work, "0"));
    let number: u64 = number.parse().unwrap();
    if what == "wait" {
        // For somebody to appear before the first call.
        wait_for_line();
    }
    let cuda = Cuda::open();
    say("ready");
    match what {
        "steps" | "wait" => steps(&cuda, number),
        "steps_then_line" => {
            steps(&cuda, number);
            wait_for_line();
        }
        "line_then_steps" => {
            wait_for_line();
            steps(&cuda, number);
            wait_for_line();
        }
        "loop" => loop {
            steps(&cuda, 1);
        },
        "graph" => graph(&cuda, number),
        "threads" => threads(cuda, number),
        "fork" => fork(&cuda, number),
        "nccl" => nccl(&cuda, number as c_int),
        "exit_at_once" => {
            for _ in 0..number {
                cuda.launch(1_000);
            }
            cuda.synchronize();
        }
        other => panic!("no such work: {other}"),
    }
    say("done");
}

/// Each step: a copy, a memset, ten kernels, a wait. Prints when each began and ended.
fn steps(cuda: &Cuda, number: u64) {
    for _ in 0..number {
        let began = now();
        cuda.copy_in();
        cuda.set();
        for kernel in 0..10 {
            cuda.launch(10_000 + 1_000 * kernel);
        }
        cuda.synchronize();
        say(&format!("step {} {began} {}", gettid(), now()));
    }
}

/// Captures a step as a graph and launches it so often.
fn graph(cuda: &Cuda, number: u64) {
    let (mut graph, mut exec): (Handle, Handle) = (ptr::null_mut(), ptr::null_mut());
    call!(cuda.library, "cuStreamBeginCapture_v2"(cuda.stream => Handle, 0 => c_uint));
    cuda.copy_in();
    cuda.set();
    for kernel in 0..10 {
        cuda.launch(10_000 + 1_000 * kernel);
    }
    call!(cuda.library, "cuStreamEndCapture"(cuda.stream => Handle, &raw mut graph => *mut Handle));
    call!(cuda.library, "cuGraphInstantiateWithFlags"(&raw mut exec => *mut Handle, graph => Handle, 0 => u64));
    for _ in 0..number {
        call!(cuda.library, "cuGraphLaunch"(exec => Handle, cuda.stream => Handle));
        cuda.synchronize();
    }
    call!(cuda.library, "cuGraphExecDestroy"(exec => Handle));
    call!(cuda.library, "cuGraphDestroy"(graph => Handle));
}

fn threads(cuda: Cuda, number: u64) {
    struct Shared(Cuda);
    // SAFETY: the driver's handles may be used from any thread.
    unsafe impl Send for Shared {}
    // SAFETY: as above.
    unsafe impl Sync for Shared {}
    let shared = Shared(cuda);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let shared = &shared;
            scope.spawn(move || {
                let Shared(cuda) = shared;
                call!(cuda.library, "cuCtxSetCurrent"(cuda.context => Handle));
                steps(cuda, number);
            });
        }
    });
}

/// The child must not disturb the parent's ring, whatever it does and however it ends.
fn fork(cuda: &Cuda, number: u64) {
    steps(cuda, number);
    // SAFETY: the child only sleeps and exits.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        std::thread::sleep(Duration::from_millis(300));
        std::process::exit(0); // with all exit handlers
    }
    steps(cuda, number);
    let mut status = 0;
    let before = now();
    // SAFETY: our own child.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!(status, 0, "the child ended well");
    say(&format!("child {child} {}", now() - before));
}

/// `ncclUniqueId`.
#[repr(C)]
#[derive(Clone, Copy)]
struct UniqueId([u8; 128]);

/// One of two ranks: ten all-reduces, the second rank a little late for each; a group of an all-reduce and an all-gather; a
/// send to the other rank and a receive from it.
fn nccl(cuda: &Cuda, rank: c_int) {
    let mut id = UniqueId([7; 128]);
    let name = std::env::var(COMMUNICATOR).unwrap();
    id.0[..name.len()].copy_from_slice(name.as_bytes());
    // SAFETY: NCCL may be loaded into any process.
    let library = unsafe { Library::new("libnccl.so.2") }.unwrap();
    let (mut comm, stream, none) = (ptr::null_mut(), cuda.stream, ptr::null_mut::<c_void>());
    call!(library, "ncclCommInitRank"(&raw mut comm => *mut Handle, 2 => c_int, id => UniqueId, rank => c_int));
    let all_reduce = || {
        call!(library, "ncclAllReduce"(none => Handle, none => Handle, 1024 => usize, 7 => c_int, 0 => c_int,
            comm => Handle, stream => Handle));
    };
    for _ in 0..10 {
        if rank == 1 {
            std::thread::sleep(Duration::from_millis(20));
        }
        cuda.launch(10_000);
        all_reduce();
        cuda.synchronize();
    }
    call!(library, "ncclGroupStart"());
    all_reduce();
    call!(library, "ncclAllGather"(none => Handle, none => Handle, 512 => usize, 7 => c_int, comm => Handle, stream => Handle));
    call!(library, "ncclGroupEnd"());
    call!(library, "ncclGroupStart"());
    call!(library, "ncclSend"(none => Handle, 64 => usize, 7 => c_int, 1 - rank => c_int, comm => Handle, stream => Handle));
    call!(library, "ncclRecv"(none => Handle, 64 => usize, 7 => c_int, 1 - rank => c_int, comm => Handle, stream => Handle));
    call!(library, "ncclGroupEnd"());
    cuda.synchronize();
    call!(library, "ncclCommDestroy"(comm => Handle));
}

fn gettid() -> i32 {
    nix::unistd::gettid().as_raw()
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // A parent that died is no reason to end.
    let _ = writeln!(out, "{line}");
    let _ = out.flush();
}

fn wait_for_line() {
    let _ = std::io::stdin().lock().read_line(&mut String::new());
}
