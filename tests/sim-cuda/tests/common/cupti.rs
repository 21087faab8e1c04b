//! A client of CUPTI.

use std::ffi::{CStr, c_char, c_void};
use std::sync::Mutex;

use super::{Driver, Library};

/// CLOCK_MONOTONIC, ns.
pub extern "C" fn monotonic() -> u64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `t` is valid for the call to fill.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut t) };
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// Calls a CUPTI function.
macro_rules! cupti {
    ($cupti:expr, $name:ident($($value:expr => $ty:ty),*)) => {{
        let function: unsafe extern "C" fn($($ty),*) -> u32 = $cupti.library.get(stringify!($name));
        // SAFETY: the test passes what CUPTI asks for, or what it has to refuse.
        unsafe { function($($value),*) }
    }};
}
#[allow(unused_imports, reason = "each test file uses its part")]
pub(crate) use cupti;

/// One record, copied.
#[derive(Clone)]
pub struct Record(Vec<u8>);

impl Record {
    /// A field.
    pub fn u32(&self, at: usize) -> u32 {
        u32::from_ne_bytes(self.0[at..at + 4].try_into().unwrap())
    }

    /// A field.
    pub fn u64(&self, at: usize) -> u64 {
        u64::from_ne_bytes(self.0[at..at + 8].try_into().unwrap())
    }

    /// A field.
    pub fn u8(&self, at: usize) -> u8 {
        self.0[at]
    }

    /// Kind.
    pub fn kind(&self) -> u32 {
        self.u32(0)
    }

    /// Begin and end of a kernel, copy or memset.
    pub fn span(&self) -> (u64, u64) {
        (self.u64(16), self.u64(24))
    }

    /// Kernel's name.
    pub fn name(&self) -> String {
        // SAFETY: CUPTI's strings live as long as it does.
        unsafe { CStr::from_ptr(self.u64(104) as *const c_char) }.to_string_lossy().into_owned()
    }
}

static RECORDS: Mutex<Vec<Record>> = Mutex::new(Vec::new());
static BUFFERS: Mutex<(Vec<usize>, usize, usize)> = Mutex::new((Vec::new(), 0, 0));
static LIBRARY: Mutex<Option<Library>> = Mutex::new(None);
/// Bytes of the buffers that are given out.
pub static BUFFER_BYTES: Mutex<usize> = Mutex::new(64 << 10);

extern "C" fn request(buffer: *mut *mut u8, size: *mut usize, max: *mut usize) {
    let bytes = *BUFFER_BYTES.lock().unwrap();
    let memory: &'static mut [u64] = Box::leak(vec![0u64; bytes / 8].into_boxed_slice());
    BUFFERS.lock().unwrap().0.push(memory.as_ptr() as usize);
    // SAFETY: CUPTI gives valid places.
    unsafe {
        *buffer = memory.as_mut_ptr().cast();
        *size = bytes;
        *max = 0;
    }
}

extern "C" fn complete(_: *mut c_void, _: u32, buffer: *mut u8, _: usize, valid: usize) {
    {
        let mut buffers = BUFFERS.lock().unwrap();
        buffers.1 += 1;
        if !buffers.0.contains(&(buffer as usize)) {
            buffers.2 += 1;
        }
    }
    let next: unsafe extern "C" fn(*mut u8, usize, *mut *mut u8) -> u32 =
        LIBRARY.lock().unwrap().unwrap().get("cuptiActivityGetNextRecord");
    let mut record = std::ptr::null_mut();
    // SAFETY: the buffer that CUPTI gave back.
    while unsafe { next(buffer, valid, &raw mut record) } == 0 {
        let room = (buffer as usize + valid) - record as usize;
        // SAFETY: within the buffer.
        let bytes = unsafe { std::slice::from_raw_parts(record, room.min(256)) };
        let mut bytes = bytes.to_vec();
        bytes.resize(256, 0);
        RECORDS.lock().unwrap().push(Record(bytes));
    }
}

type Request = extern "C" fn(*mut *mut u8, *mut usize, *mut usize);
type Complete = extern "C" fn(*mut c_void, u32, *mut u8, usize, usize);

/// CUPTI, subscribed.
#[derive(Clone, Copy)]
pub struct Cupti {
    /// The library.
    pub library: Library,
    /// Subscriber.
    pub subscriber: *mut c_void,
}

impl Cupti {
    /// Loads it, with CLOCK_MONOTONIC for its times, and switches kinds on. Before the driver has a context.
    pub fn start(kinds: &[u32]) -> Self {
        Library::load("libcuda.so.1");
        let cupti = Self::load();
        assert_eq!(
            cupti!(cupti, cuptiActivityRegisterTimestampCallback(monotonic => extern "C" fn() -> u64)),
            0
        );
        for kind in kinds {
            assert_eq!(cupti!(cupti, cuptiActivityEnable(*kind => u32)), 0, "kind {kind}");
        }
        cupti
    }

    /// Loads it only, and registers the buffers.
    pub fn load() -> Self {
        let library = Library::load("libcupti.so.12");
        *LIBRARY.lock().unwrap() = Some(library);
        let mut cupti = Self { library, subscriber: std::ptr::null_mut() };
        let mut subscriber = std::ptr::null_mut();
        let null = std::ptr::null_mut();
        let result = cupti!(cupti, cuptiSubscribe(
            &raw mut subscriber => *mut *mut c_void, null => *mut c_void, null => *mut c_void
        ));
        assert_eq!(result, 0);
        cupti.subscriber = subscriber;
        assert_eq!(
            cupti!(cupti, cuptiActivityRegisterCallbacks(request => Request, complete => Complete)),
            0
        );
        cupti
    }

    /// Everything so far, by a flush of complete buffers, or of all.
    pub fn records(self, forced: bool) -> Vec<Record> {
        assert_eq!(cupti!(self, cuptiActivityFlushAll(u32::from(forced) => u32)), 0);
        std::mem::take(&mut *RECORDS.lock().unwrap())
    }

    /// What has come without a flush.
    pub fn delivered() -> usize {
        RECORDS.lock().unwrap().len()
    }

    /// Buffers that came back, and those among them that were not ours.
    pub fn buffers() -> (usize, usize) {
        let buffers = BUFFERS.lock().unwrap();
        (buffers.1, buffers.2)
    }

    /// Dropped records since the last question.
    pub fn dropped(self) -> usize {
        let mut dropped = 0;
        let null = std::ptr::null_mut();
        let result = cupti!(self, cuptiActivityGetNumDroppedRecords(
            null => *mut c_void, 0 => u32, &raw mut dropped => *mut usize
        ));
        assert_eq!(result, 0);
        dropped
    }
}

/// A driver with a context, recorded from the beginning.
pub fn recorded(kinds: &[u32]) -> (Driver, Cupti) {
    let cupti = Cupti::start(kinds);
    (Driver::start(), cupti)
}

/// The records of one kind, by begin.
pub fn of_kind(records: &[Record], kind: u32) -> Vec<Record> {
    let mut found: Vec<Record> = records.iter().filter(|r| r.kind() == kind).cloned().collect();
    found.sort_by_key(|r| r.u64(16));
    found
}
