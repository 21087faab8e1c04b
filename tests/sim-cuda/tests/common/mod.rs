//! What the tests share: a process for each test, the driver and CUPTI by their real names.
#![allow(dead_code, reason = "each test file uses its part")]
#![allow(clippy::unwrap_used, reason = "a failure here is a failure of the test")]

pub mod cupti;

use std::ffi::{CString, c_void};
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

pub use sim_cuda::Layout;

/// The folder with the libraries.
pub fn folder() -> PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER
        .get_or_init(|| {
            if let Some(folder) = std::env::var_os("SIM_CUDA_FOLDER") {
                return PathBuf::from(folder);
            }
            let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("sim-cuda");
            Layout::new().unwrap().write(&folder).unwrap();
            folder
        })
        .clone()
}

/// Runs a test's body in a process of its own, since the driver's settings are the process's environment.
pub fn isolated(test: &str, env: &[(&str, &str)], body: fn()) {
    if std::env::var("SIM_CUDA_CHILD").is_ok_and(|child| child == test) {
        body();
        return;
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env("SIM_CUDA_CHILD", test)
        .env("SIM_CUDA_FOLDER", folder())
        .envs(env.iter().copied())
        .output()
        .unwrap();
    let output_text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{test}: {}\n{output_text}", output.status);
    assert!(output_text.contains("1 passed"), "{test} ran nothing:\n{output_text}");
}

/// A loaded library.
#[derive(Clone, Copy)]
pub struct Library(*mut c_void);

// SAFETY: a handle of the dynamic loader may be used in any thread.
unsafe impl Send for Library {}
// SAFETY: as above.
unsafe impl Sync for Library {}

impl Library {
    /// Loads one of the folder.
    pub fn load(name: &str) -> Self {
        let path = CString::new(folder().join(name).to_str().unwrap()).unwrap();
        // SAFETY: a NUL-terminated path of a library of this workspace.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        assert!(!handle.is_null(), "cannot load {name}");
        Self(handle)
    }

    /// A function, if the library has it.
    pub fn find<F: Copy>(self, name: &str) -> Option<F> {
        assert_eq!(size_of::<F>(), size_of::<*mut c_void>());
        let name = CString::new(name).unwrap();
        // SAFETY: a valid handle and a NUL-terminated name.
        let symbol = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        // SAFETY: the callers name the function's type; its size was checked.
        (!symbol.is_null()).then(|| unsafe { std::mem::transmute_copy(&symbol) })
    }

    /// A function.
    pub fn get<F: Copy>(self, name: &str) -> F {
        self.find(name).unwrap_or_else(|| panic!("no {name}"))
    }
}

/// Calls a driver function: `cu!(driver, cuInit(0: u32))`.
macro_rules! cu {
    ($driver:expr, $name:ident($($value:expr => $ty:ty),*)) => {{
        let function: unsafe extern "C" fn($($ty),*) -> i32 = $driver.library.get(stringify!($name));
        // SAFETY: the test passes what the driver API asks for, or what it has to refuse.
        unsafe { function($($value),*) }
    }};
}
#[allow(unused_imports, reason = "each test file uses its part")]
pub(crate) use cu;

/// A handle of the driver.
pub type Handle = *mut c_void;

/// The module that all tests load.
pub const PTX: &std::ffi::CStr = c".version 7.0\n.target sm_70\n.address_size 64\n
.visible .entry spin_ns(.param .u64 ns) { ret; }\n.visible .entry other() { ret; }";

/// The driver, with a context.
#[derive(Clone, Copy)]
pub struct Driver {
    /// The library.
    pub library: Library,
    spin: Handle,
    /// Context.
    pub context: Handle,
    /// Module.
    pub module: Handle,
}

// SAFETY: the handles are numbers.
unsafe impl Send for Driver {}
// SAFETY: as above.
unsafe impl Sync for Driver {}

impl Driver {
    /// Loads it, and makes a context.
    pub fn start() -> Self {
        let library = Library::load("libcuda.so.1");
        let null = std::ptr::null_mut();
        let mut driver = Self { library, spin: null, context: null, module: null };
        assert_eq!(cu!(driver, cuInit(0 => u32)), 0);
        let mut context = null;
        assert_eq!(cu!(driver, cuDevicePrimaryCtxRetain(&raw mut context => *mut Handle, 0 => i32)), 0);
        driver.context = context;
        assert_eq!(cu!(driver, cuCtxSetCurrent(context => Handle)), 0);
        let mut module = null;
        assert_eq!(
            cu!(driver, cuModuleLoadData(&raw mut module => *mut Handle, PTX.as_ptr().cast() => *const c_void)),
            0
        );
        driver.module = module;
        driver.spin = driver.function(c"spin_ns");
        driver
    }

    /// A function of the module.
    pub fn function(self, name: &std::ffi::CStr) -> Handle {
        let mut function = std::ptr::null_mut();
        let result = cu!(self, cuModuleGetFunction(
            &raw mut function => *mut Handle, self.module => Handle, name.as_ptr() => *const std::ffi::c_char
        ));
        assert_eq!(result, 0);
        function
    }

    /// Makes a stream.
    pub fn stream(self, flags: u32) -> Handle {
        let mut stream = std::ptr::null_mut();
        assert_eq!(cu!(self, cuStreamCreate(&raw mut stream => *mut Handle, flags => u32)), 0);
        stream
    }

    /// Launches `spin_ns`.
    pub fn spin(self, stream: Handle, ns: u64) {
        assert_eq!(self.launch(self.spin, stream, ns), 0);
    }

    /// Launches a function with one argument.
    pub fn launch(self, function: Handle, stream: Handle, argument: u64) -> i32 {
        let mut arguments = [(&raw const argument).cast_mut().cast::<c_void>()];
        cu!(self, cuLaunchKernel(
            function => Handle, 1 => u32, 1 => u32, 1 => u32, 32 => u32, 1 => u32, 1 => u32, 0 => u32,
            stream => Handle, arguments.as_mut_ptr() => *mut *mut c_void, std::ptr::null_mut() => *mut *mut c_void
        ))
    }

    /// Waits for all.
    pub fn sync(self) {
        assert_eq!(cu!(self, cuCtxSynchronize()), 0);
    }

    /// 0 or 600.
    pub fn query(self, stream: Handle) -> i32 {
        cu!(self, cuStreamQuery(stream => Handle))
    }

    /// Makes an event.
    pub fn event(self, flags: u32) -> Handle {
        let mut event = std::ptr::null_mut();
        assert_eq!(cu!(self, cuEventCreate(&raw mut event => *mut Handle, flags => u32)), 0);
        event
    }

    /// Allocates device memory.
    pub fn alloc(self, bytes: usize) -> u64 {
        let mut address = 0;
        assert_eq!(cu!(self, cuMemAlloc_v2(&raw mut address => *mut u64, bytes => usize)), 0);
        address
    }

    /// Allocates pinned memory.
    pub fn pinned(self, bytes: usize) -> &'static mut [u8] {
        let mut address = std::ptr::null_mut();
        assert_eq!(cu!(self, cuMemHostAlloc(&raw mut address => *mut *mut u8, bytes => usize, 0 => u32)), 0);
        // SAFETY: the driver gave these bytes, and no test frees them.
        unsafe { std::slice::from_raw_parts_mut(address, bytes) }
    }
}
