//! The functions of the driver that NCCL uses. The real library finds them in the same way: it is not linked to libcuda.

use std::ffi::{CStr, c_char, c_void};
use std::sync::OnceLock;
use std::sync::atomic::AtomicU32;

use sim_abi::{DriverTable, EXPORT_TABLE_UUID};

use crate::result::{self, Result};

/// `CUlaunchConfig`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LaunchConfig {
    /// Grid.
    pub grid: [u32; 3],
    /// Block.
    pub block: [u32; 3],
    /// Dynamic shared memory, bytes.
    pub shared: u32,
    /// Stream.
    pub stream: *mut c_void,
    /// Attributes.
    pub attributes: *const c_void,
    /// How many.
    pub attribute_count: u32,
}

macro_rules! functions {
    ($($name:ident($($arg:ident: $type:ty),*);)*) => {
        #[allow(non_snake_case, reason = "the names are the driver's")]
        struct Functions {
            $($name: unsafe extern "C" fn($($type),*) -> i32,)*
            table: &'static DriverTable,
        }

        impl Functions {
            fn bind(library: *mut c_void, table: &'static DriverTable) -> Option<Self> {
                Some(Self {
                    $($name: {
                        const NAME: &CStr = match CStr::from_bytes_with_nul(
                            concat!(stringify!($name), "\0").as_bytes(),
                        ) {
                            Ok(name) => name,
                            Err(_) => c"",
                        };
                        let symbol = find(library, NAME)?;
                        // SAFETY: the driver API gives the function of this name this type.
                        unsafe {
                            std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($type),*) -> i32>(symbol)
                        }
                    },)*
                    table,
                })
            }
        }
    };
}

functions! {
    cuCtxGetDevice(device: *mut i32);
    cuCtxGetCurrent(context: *mut *mut c_void);
    cuCtxSetCurrent(context: *mut c_void);
    cuDevicePrimaryCtxRetain(context: *mut *mut c_void, device: i32);
    cuModuleLoadData(module: *mut *mut c_void, image: *const c_void);
    cuModuleGetFunction(function: *mut *mut c_void, module: *mut c_void, name: *const c_char);
    cuLaunchKernelEx(
        config: *const LaunchConfig, function: *mut c_void, params: *mut *mut c_void, extra: *mut *mut c_void
    );
}

fn find(library: *mut c_void, name: &CStr) -> Option<*mut c_void> {
    // SAFETY: a valid library handle and a NUL-terminated name.
    let symbol = unsafe { libc::dlsym(library, name.as_ptr()) };
    (!symbol.is_null()).then_some(symbol)
}

fn bind() -> Option<Functions> {
    // SAFETY: a NUL-terminated name; loading the driver runs its constructors, as it must.
    let library = unsafe { libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if library.is_null() {
        return None;
    }
    let get = find(library, c"cuGetExportTable")?;
    // SAFETY: the driver API gives the function this type.
    let get: unsafe extern "C" fn(*mut *const c_void, *const [u8; 16]) -> i32 =
        unsafe { std::mem::transmute(get) };
    let (mut table, uuid) = (std::ptr::null(), EXPORT_TABLE_UUID);
    // SAFETY: both pointers are valid for the call.
    if unsafe { get(&raw mut table, &raw const uuid) } != 0 || table.is_null() {
        return None;
    }
    // SAFETY: the table of that UUID is the simulated driver's, a static of this type.
    let table = unsafe { &*table.cast::<DriverTable>() };
    (table.size == size_of::<DriverTable>()).then(|| Functions::bind(library, table)).flatten()
}

fn functions() -> Result<&'static Functions> {
    static FUNCTIONS: OnceLock<Option<Functions>> = OnceLock::new();
    FUNCTIONS.get_or_init(bind).as_ref().ok_or(result::CUDA)
}

fn checked(code: i32) -> Result {
    if code == 0 { Ok(()) } else { Err(result::CUDA) }
}

/// The device of the calling thread's context.
pub fn current_device() -> Result<i32> {
    let mut device = 0;
    // SAFETY: a number to fill.
    checked(unsafe { (functions()?.cuCtxGetDevice)(&raw mut device) })?;
    Ok(device)
}

/// Makes a device's primary context current until the result is dropped.
pub fn enter(device: i32) -> Result<Entered> {
    let functions = functions()?;
    let (mut before, mut context) = (std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: handles to fill, and the context that the driver gave.
    unsafe {
        checked((functions.cuCtxGetCurrent)(&raw mut before))?;
        checked((functions.cuDevicePrimaryCtxRetain)(&raw mut context, device))?;
        if before != context {
            checked((functions.cuCtxSetCurrent)(context))?;
        }
    }
    Ok(Entered { before: (before != context).then_some(before) })
}

/// See [`enter`].
pub struct Entered {
    before: Option<*mut c_void>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        if let (Some(before), Ok(functions)) = (self.before, functions()) {
            // SAFETY: the context that was current before.
            unsafe { (functions.cuCtxSetCurrent)(before) };
        }
    }
}

/// Loads the library's kernels into the current context.
pub fn load_kernels() -> Result<*mut c_void> {
    // A binary image: the simulated driver takes it to have every kernel.
    static IMAGE: [u8; 64] = {
        let mut image = [0; 64];
        (image[0], image[1], image[2], image[3]) = (0x7f, b'E', b'L', b'F');
        image
    };
    let mut module = std::ptr::null_mut();
    // SAFETY: a handle to fill and an image that lives on.
    checked(unsafe { (functions()?.cuModuleLoadData)(&raw mut module, IMAGE.as_ptr().cast()) })?;
    Ok(module)
}

/// A kernel by its symbol.
pub fn kernel(module: *mut c_void, symbol: &CStr) -> Result<*mut c_void> {
    let mut function = std::ptr::null_mut();
    // SAFETY: a handle to fill, a module of ours, a NUL-terminated name.
    checked(unsafe { (functions()?.cuModuleGetFunction)(&raw mut function, module, symbol.as_ptr()) })?;
    Ok(function)
}

/// Launches a kernel whose argument is one u64.
pub fn launch(function: *mut c_void, stream: *mut c_void, mut argument: u64) -> Result {
    let config = LaunchConfig {
        grid: [2, 1, 1],
        block: [512, 1, 1],
        shared: 0,
        stream,
        attributes: std::ptr::null(),
        attribute_count: 0,
    };
    let mut params = [(&raw mut argument).cast::<c_void>()];
    // SAFETY: a kernel of ours, and its argument, which is copied before the call returns.
    let code = unsafe {
        (functions()?.cuLaunchKernelEx)(
            &raw const config,
            function,
            params.as_mut_ptr(),
            std::ptr::null_mut(),
        )
    };
    checked(code)
}

/// Lets the driver listen to a bell.
pub fn watch_bell(bell: &'static AtomicU32) -> Result {
    (functions()?.table.watch_bell)(bell);
    Ok(())
}
