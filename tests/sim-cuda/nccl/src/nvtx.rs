//! NVTX, as the header-only library inside the real NCCL does it: at the first use it loads what `NVTX_INJECTION64_PATH`
//! names, hands it tables of function pointers to fill, and calls through them. Where nothing is filled in, a call does
//! nothing.

use std::ffi::{CStr, CString, c_char, c_void};
use std::mem::transmute;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// `NVTX_VERSION`.
const VERSION: u16 = 3;
/// Modules of the function tables.
const MODULE_CORE: i32 = 1;
const MODULE_CORE2: i32 = 5;
/// Export tables.
const TABLE_CALLBACKS: u32 = 1;
const TABLE_VERSION: u32 = 3;
/// Places in the table of module CORE2.
const RANGE_PUSH: usize = 4;
const RANGE_POP: usize = 5;
const REGISTER_STRING: usize = 10;
const DOMAIN_CREATE: usize = 12;
/// The extension for payloads: its number, version, number of slots, the slot of a pop with payload.
const PAYLOAD_MODULE: u16 = 2;
const PAYLOAD_VERSION: u16 = 0x0103;
const PAYLOAD_SLOTS: usize = 63;
const SLOT_POP_PAYLOAD: usize = 4;
/// A slot that the injection left empty.
const SLOT_DISABLED: usize = 1;
/// Attributes of an event.
const MESSAGE_REGISTERED: i32 = 3;
const PAYLOAD_EXTENDED: i32 = 0xDFBD_0009_u32 as i32;
/// NCCL's static schemas begin here.
const FIRST_SCHEMA: u64 = 1 << 24;

/// `nvtxEventAttributes_t`.
#[repr(C)]
struct EventAttributes {
    version: u16,
    size: u16,
    category: u32,
    color_type: i32,
    color: u32,
    payload_type: i32,
    payload_count: i32,
    payload: u64,
    message_type: i32,
    message: *const c_void,
}

/// `nvtxPayloadData_t`.
#[repr(C)]
struct PayloadData {
    schema: u64,
    size: usize,
    data: *const c_void,
}

/// `NvtxExportTableCallbacks`.
#[repr(C)]
struct Callbacks {
    size: usize,
    get_module_function_table: extern "C" fn(i32, *mut *const *mut c_void, *mut u32) -> i32,
}

/// `NvtxExportTableVersionInfo`.
#[repr(C)]
struct VersionInfo {
    size: usize,
    version: u32,
    reserved: u32,
    set_injection_version: extern "C" fn(u32),
}

/// `nvtxExtModuleSegment_t`.
#[repr(C)]
struct Segment {
    id: usize,
    slots: usize,
    functions: *mut c_void,
}

/// `nvtxExtModuleInfo_t`.
#[repr(C)]
struct ModuleInfo {
    version: u16,
    size: u16,
    module: u16,
    compatibility: u16,
    segments: usize,
    segment: *const Segment,
    get_export_function: *const c_void,
    info: *const c_void,
}

type Functions = [AtomicPtr<c_void>; 16];

static CORE: Functions = [const { AtomicPtr::new(ptr::null_mut()) }; 16];
static CORE2: Functions = [const { AtomicPtr::new(ptr::null_mut()) }; 16];
static PAYLOAD: [AtomicUsize; PAYLOAD_SLOTS] = [const { AtomicUsize::new(0) }; PAYLOAD_SLOTS];

/// Pointers to the function pointers of a module, the first of them null, as the header lays them out.
fn table(functions: &'static Functions) -> *const *mut c_void {
    static TABLES: [OnceLock<usize>; 2] = [OnceLock::new(), OnceLock::new()];
    let index = usize::from(ptr::eq(functions, &raw const CORE2));
    let table = TABLES[index].get_or_init(|| {
        let mut pointers: Vec<*mut c_void> = functions.iter().map(|f| f.as_ptr().cast()).collect();
        pointers[0] = ptr::null_mut();
        pointers.push(ptr::null_mut());
        pointers.leak().as_ptr().expose_provenance()
    });
    ptr::with_exposed_provenance(*table)
}

extern "C" fn module_table(module: i32, out: *mut *const *mut c_void, size: *mut u32) -> i32 {
    let functions = match module {
        MODULE_CORE => &CORE,
        MODULE_CORE2 => &CORE2,
        _ => return 0,
    };
    // SAFETY: by the protocol null, or places to fill.
    unsafe {
        if let Some(size) = size.as_mut() {
            *size = 16;
        }
        if let Some(out) = out.as_mut() {
            *out = table(functions);
        }
    }
    1
}

extern "C" fn set_injection_version(_version: u32) {}

extern "C" fn export_table(number: u32) -> *const c_void {
    static CALLBACKS: Callbacks =
        Callbacks { size: size_of::<Callbacks>(), get_module_function_table: module_table };
    static VERSION_INFO: VersionInfo = VersionInfo {
        size: size_of::<VersionInfo>(),
        version: VERSION as u32,
        reserved: 0,
        set_injection_version,
    };
    match number {
        TABLE_CALLBACKS => (&raw const CALLBACKS).cast(),
        TABLE_VERSION => (&raw const VERSION_INFO).cast(),
        _ => ptr::null(),
    }
}

/// Loads the injection library.
fn load() {
    if std::env::var("NCCL_NVTX_DISABLE").is_ok_and(|value| value.trim() == "1") {
        return;
    }
    let Ok(path) = std::env::var("NVTX_INJECTION64_PATH") else { return };
    let Ok(path) = CString::new(path) else { return };
    // SAFETY: a NUL-terminated path; loading the library that the user named runs its constructors, as it must.
    let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_LAZY) };
    if library.is_null() {
        return;
    }
    // SAFETY: a valid library handle and a NUL-terminated name.
    let initialize = unsafe { libc::dlsym(library, c"InitializeInjectionNvtx2".as_ptr()) };
    if initialize.is_null() {
        return;
    }
    // SAFETY: the injection protocol gives the function this type.
    let initialize: extern "C" fn(extern "C" fn(u32) -> *const c_void) -> i32 =
        unsafe { transmute(initialize) };
    if initialize(export_table) == 0 {
        CORE.iter().chain(&CORE2).for_each(|function| function.store(ptr::null_mut(), Ordering::Release));
        return;
    }
    // SAFETY: as above.
    let extend = unsafe { libc::dlsym(library, c"InitializeInjectionNvtxExtension".as_ptr()) };
    if extend.is_null() {
        return;
    }
    // SAFETY: the injection protocol gives the function this type.
    let extend: extern "C" fn(*const ModuleInfo) -> i32 = unsafe { transmute(extend) };
    let segment = Segment { id: 0, slots: PAYLOAD_SLOTS, functions: PAYLOAD.as_ptr().cast_mut().cast() };
    let module = ModuleInfo {
        version: VERSION,
        size: size_of::<ModuleInfo>() as u16,
        module: PAYLOAD_MODULE,
        compatibility: PAYLOAD_VERSION,
        segments: 1,
        segment: &raw const segment,
        get_export_function: ptr::null(),
        info: ptr::null(),
    };
    let works = extend(&raw const module) != 0;
    for slot in &PAYLOAD {
        if !works || slot.load(Ordering::Acquire) == 0 {
            slot.store(SLOT_DISABLED, Ordering::Release);
        }
    }
}

fn function(place: usize) -> Option<*mut c_void> {
    let function = CORE2[place].load(Ordering::Acquire);
    (!function.is_null()).then_some(function)
}

/// The domain "NCCL"; null where nobody listens.
fn domain() -> *mut c_void {
    static DOMAIN: OnceLock<usize> = OnceLock::new();
    let handle = DOMAIN.get_or_init(|| {
        load();
        function(DOMAIN_CREATE).map_or(0, |create| {
            // SAFETY: the function table gives this place this type.
            let create: extern "C" fn(*const c_char) -> *mut c_void = unsafe { transmute(create) };
            create(c"NCCL".as_ptr()).expose_provenance()
        })
    });
    ptr::with_exposed_provenance_mut(*handle)
}

/// A function's name, registered at its first use.
pub struct RegisteredName {
    name: &'static CStr,
    handle: OnceLock<usize>,
}

impl RegisteredName {
    /// Of a function.
    pub const fn new(name: &'static CStr) -> Self {
        Self { name, handle: OnceLock::new() }
    }

    fn handle(&self, domain: *mut c_void) -> *const c_void {
        let handle = self.handle.get_or_init(|| {
            function(REGISTER_STRING).map_or(0, |register| {
                // SAFETY: the function table gives this place this type.
                let register: extern "C" fn(*mut c_void, *const c_char) -> *const c_void =
                    unsafe { transmute(register) };
                register(domain, self.name.as_ptr()).expose_provenance()
            })
        });
        ptr::with_exposed_provenance(*handle)
    }
}

/// What goes with a range: NCCL's number of the schema, and the bytes in its layout.
pub struct Payload {
    schema: u64,
    bytes: [u64; 5],
    size: usize,
}

impl Payload {
    /// `{comm, bytes}` and one number, where the schema has one.
    pub fn call(schema: u64, comm: u64, bytes: usize, number: Option<i32>) -> Self {
        let number_word = number.map_or(0, |number| u64::from(number as u32));
        let size = if number.is_some() { 24 } else { 16 };
        Self { schema, bytes: [comm, bytes as u64, number_word, 0, 0], size }
    }

    /// `{comm, ranks, rank, device}`.
    pub fn comm(schema: u64, comm: u64, ranks: i32, rank: i32, device: i32) -> Self {
        let low = u64::from(ranks as u32) | u64::from(rank as u32) << 32;
        Self { schema, bytes: [comm, low, u64::from(device as u32), 0, 0], size: 24 }
    }

    /// `{comm, devices}`.
    pub fn all(schema: u64, comm: u64, devices: i32) -> Self {
        Self { schema, bytes: [comm, u64::from(devices as u32), 0, 0, 0], size: 16 }
    }

    /// `{comm, parent, ranks, rank, device, color, key}`.
    pub fn split(schema: u64, comm: u64, parent: u64, rest: [i32; 5]) -> Self {
        let [ranks, rank, device, color, key] = rest.map(|number| u64::from(number as u32));
        let bytes = [comm, parent, ranks | rank << 32, device | color << 32, key];
        Self { schema, bytes, size: 40 }
    }

    fn data(&self) -> PayloadData {
        PayloadData { schema: FIRST_SCHEMA + self.schema, size: self.size, data: self.bytes.as_ptr().cast() }
    }
}

/// A range of the calling thread: from its making to its end.
pub struct Range {
    domain: *mut c_void,
    pushed: bool,
    payload: Option<Payload>,
}

impl Range {
    /// Begins a range with what is known of it.
    pub fn push(name: &RegisteredName, payload: Option<&Payload>) -> Self {
        let domain = domain();
        let push = function(RANGE_PUSH);
        if let Some(push) = push {
            let data = payload.map(Payload::data);
            let attributes = EventAttributes {
                version: VERSION,
                size: size_of::<EventAttributes>() as u16,
                category: 0,
                color_type: 0,
                color: 0,
                payload_type: if data.is_some() { PAYLOAD_EXTENDED } else { 0 },
                payload_count: i32::from(data.is_some()),
                payload: data.as_ref().map_or(0, |data| ptr::from_ref(data).expose_provenance() as u64),
                message_type: MESSAGE_REGISTERED,
                message: name.handle(domain),
            };
            // SAFETY: the function table gives this place this type.
            let push: extern "C" fn(*mut c_void, *const EventAttributes) -> i32 = unsafe { transmute(push) };
            push(domain, &raw const attributes);
        }
        Self { domain, pushed: push.is_some(), payload: None }
    }

    /// What became known within it: goes with its end.
    pub fn add(&mut self, payload: Payload) {
        self.payload = Some(payload);
    }
}

impl Drop for Range {
    fn drop(&mut self) {
        if !self.pushed {
            return;
        }
        if let Some(payload) = &self.payload {
            let pop = PAYLOAD[SLOT_POP_PAYLOAD].load(Ordering::Acquire);
            if pop > SLOT_DISABLED {
                let data = payload.data();
                // SAFETY: the slot's function has this type.
                let pop: extern "C" fn(*mut c_void, *const PayloadData, usize) -> i32 =
                    unsafe { transmute(ptr::with_exposed_provenance::<c_void>(pop)) };
                pop(self.domain, &raw const data, 1);
            }
        } else if let Some(pop) = function(RANGE_POP) {
            // SAFETY: the function table gives this place this type.
            let pop: extern "C" fn(*mut c_void) -> i32 = unsafe { transmute(pop) };
            pop(self.domain);
        }
    }
}
