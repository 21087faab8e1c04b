//! NCCL, loaded at run time like the driver: the same calls work with the real library and the simulated one.

use std::ffi::{CStr, c_void};

use anyhow::{Context as _, Result, bail};

/// Names a communicator that is to be: `ncclUniqueId`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct UniqueId([u8; 128]);

/// The library.
pub struct Nccl {
    get_unique_id: unsafe extern "C" fn(*mut UniqueId) -> i32,
    init_rank: unsafe extern "C" fn(*mut Comm, i32, UniqueId, i32) -> i32,
    all_reduce: unsafe extern "C" fn(*const c_void, *mut c_void, usize, i32, i32, Comm, *mut c_void) -> i32,
    split: unsafe extern "C" fn(Comm, i32, i32, *mut Comm, *mut c_void) -> i32,
    destroy: unsafe extern "C" fn(Comm) -> i32,
}

/// A rank's end of a communicator.
pub type Comm = *mut c_void;

/// `ncclFloat32` and `ncclSum`.
const FLOAT: i32 = 7;
const SUM: i32 = 0;

impl Nccl {
    /// Loads `libnccl.so.2`.
    ///
    /// # Errors
    /// It is not there.
    pub fn load() -> Result<Self> {
        // SAFETY: a NUL-terminated name; loading NCCL runs its constructors, as it must.
        let library = unsafe { libc::dlopen(c"libnccl.so.2".as_ptr(), libc::RTLD_NOW) };
        if library.is_null() {
            bail!(
                "no NCCL (libnccl.so.2): on a machine without one set LD_LIBRARY_PATH to `cargo xtask sim-path`"
            );
        }
        let find = |name: &CStr| {
            // SAFETY: a valid handle and a NUL-terminated name.
            let symbol = unsafe { libc::dlsym(library, name.as_ptr()) };
            if symbol.is_null() {
                bail!("NCCL has no {}", name.to_string_lossy());
            }
            Ok(symbol)
        };
        // SAFETY: nccl.h gives the functions of these names these types.
        unsafe {
            Ok(Self {
                get_unique_id: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut UniqueId) -> i32>(
                    find(c"ncclGetUniqueId")?,
                ),
                init_rank: std::mem::transmute::<
                    *mut c_void,
                    unsafe extern "C" fn(*mut Comm, i32, UniqueId, i32) -> i32,
                >(find(c"ncclCommInitRank")?),
                all_reduce: std::mem::transmute::<
                    *mut c_void,
                    unsafe extern "C" fn(
                        *const c_void,
                        *mut c_void,
                        usize,
                        i32,
                        i32,
                        Comm,
                        *mut c_void,
                    ) -> i32,
                >(find(c"ncclAllReduce")?),
                split: std::mem::transmute::<
                    *mut c_void,
                    unsafe extern "C" fn(Comm, i32, i32, *mut Comm, *mut c_void) -> i32,
                >(find(c"ncclCommSplit")?),
                destroy: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(Comm) -> i32>(find(
                    c"ncclCommDestroy",
                )?),
            })
        }
    }

    /// A name for a new communicator.
    ///
    /// # Errors
    /// The call fails.
    pub fn unique_id(&self) -> Result<UniqueId> {
        let mut id = UniqueId([0; 128]);
        // SAFETY: a struct to fill.
        checked(unsafe { (self.get_unique_id)(&raw mut id) }, "ncclGetUniqueId")?;
        Ok(id)
    }

    /// Makes this rank's end of a communicator; waits for the other ranks.
    ///
    /// # Errors
    /// The call fails.
    pub fn init(&self, id: UniqueId, rank: usize, ranks: usize) -> Result<Comm> {
        let mut comm = std::ptr::null_mut();
        // SAFETY: a handle to fill.
        let code = unsafe { (self.init_rank)(&raw mut comm, ranks as i32, id, rank as i32) };
        checked(code, "ncclCommInitRank")?;
        Ok(comm)
    }

    /// Queues an all-reduce of so many floats in device memory.
    ///
    /// # Errors
    /// The call fails.
    pub fn all_reduce(&self, comm: Comm, memory: u64, floats: usize, stream: *mut c_void) -> Result<()> {
        let buffer = std::ptr::with_exposed_provenance_mut::<c_void>(memory as usize);
        // SAFETY: a communicator and a stream that live, memory of that size.
        let code = unsafe { (self.all_reduce)(buffer, buffer, floats, FLOAT, SUM, comm, stream) };
        checked(code, "ncclAllReduce")
    }

    /// Makes a communicator of all ranks of one.
    ///
    /// # Errors
    /// The call fails.
    pub fn split(&self, comm: Comm, rank: usize) -> Result<Comm> {
        let mut new = std::ptr::null_mut();
        // SAFETY: a communicator that lives and a handle to fill.
        let code = unsafe { (self.split)(comm, 0, rank as i32, &raw mut new, std::ptr::null_mut()) };
        checked(code, "ncclCommSplit")?;
        Ok(new)
    }

    /// Ends a communicator.
    ///
    /// # Errors
    /// The call fails.
    pub fn destroy(&self, comm: Comm) -> Result<()> {
        // SAFETY: a communicator that lives and is not used after this.
        checked(unsafe { (self.destroy)(comm) }, "ncclCommDestroy")
    }
}

fn checked(code: i32, call: &str) -> Result<()> {
    if code != 0 {
        bail!("{call} failed with {code}");
    }
    Ok(())
}

impl UniqueId {
    /// As text, for an argument of a command.
    pub fn to_hex(self) -> String {
        use std::fmt::Write as _;

        self.0.iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
    }

    /// From that text.
    ///
    /// # Errors
    /// It is none.
    pub fn from_hex(text: &str) -> Result<Self> {
        let mut bytes = [0; 128];
        for (index, byte) in bytes.iter_mut().enumerate() {
            let digits =
                text.get(2 * index..2 * index + 2).context("the communicator's name is too short")?;
            *byte =
                u8::from_str_radix(digits, 16).context("the communicator's name is no hexadecimal text")?;
        }
        Ok(Self(bytes))
    }
}
