//! Where NVTX comes in. The protocol is that of NVTX 3 (nvtxDetail/nvtxTypes.h, nvtxInit.h, nvtxExtTypes.h).

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use super::calls::{core, domains};
use crate::entry;

/// `NVTX_ETID_CALLBACKS`.
const CALLBACKS: u32 = 1;
/// `NVTX_CB_MODULE_CORE` and `…_CORE2`.
const CORE: i32 = 1;
const CORE2: i32 = 5;
/// The extension of payloads, and the slot of the function that ends a range with one.
const PAYLOAD_MODULE: u16 = 2;
const POP_PAYLOAD: usize = 4;

/// `NvtxExportTableCallbacks`.
#[repr(C)]
struct Callbacks {
    size: usize,
    get_module_function_table: Option<GetTable>,
}

type GetTable = unsafe extern "C" fn(i32, *mut *const *mut Function, *mut u32) -> i32;
type Function = *const c_void;
type GetExportTable = unsafe extern "C" fn(u32) -> *const Callbacks;

/// `nvtxExtModuleSegment_t`.
#[repr(C)]
struct Segment {
    id: usize,
    slots: usize,
    functions: *mut Function,
}

/// `nvtxExtModuleInfo_t`, as far as it is used.
#[repr(C)]
pub struct ModuleInfo {
    version: u16,
    size: u16,
    module: u16,
    compatibility: u16,
    segments: usize,
    segment: *const Segment,
}

/// Called by each library that uses NVTX at its first use, if `NVTX_INJECTION64_PATH` names this library. 1: it works.
///
/// # Safety
/// Called by NVTX, which passes a function of this type.
#[unsafe(no_mangle)]
#[allow(non_snake_case, private_interfaces, reason = "the name is NVTX's, and only NVTX calls it")]
pub unsafe extern "C" fn InitializeInjectionNvtx2(get: Option<GetExportTable>) -> i32 {
    catch_unwind(AssertUnwindSafe(|| {
        let Some(get) = get else { return false };
        // SAFETY: by the protocol: null or a table of this type that lives on.
        let Some(callbacks) = (unsafe { get(CALLBACKS).as_ref() }) else { return false };
        let Some(get_table) =
            callbacks.get_module_function_table.filter(|_| callbacks.size >= size_of::<Callbacks>())
        else {
            return false;
        };
        // SAFETY: the protocol's function.
        entry::open_for_markers()
            && unsafe {
                fill(get_table, CORE, &core_functions()) && fill(get_table, CORE2, &domain_functions())
            }
    }))
    .unwrap_or(false)
    .into()
}

/// Called for each extension of NVTX at its first use by a library. 1: it works.
///
/// # Safety
/// Called by NVTX with what it describes.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "the name is NVTX's")]
pub unsafe extern "C" fn InitializeInjectionNvtxExtension(module: *const ModuleInfo) -> i32 {
    // SAFETY: by the protocol null or such a struct.
    let Some(module) = (unsafe { module.as_ref() }) else { return 0 };
    if module.module != PAYLOAD_MODULE
        || usize::from(module.size) < size_of::<ModuleInfo>()
        || module.segments == 0
        || !super::is_used()
    {
        return 0;
    }
    // SAFETY: by the protocol an array of at least one.
    let Some(segment) = (unsafe { module.segment.as_ref() }) else { return 0 };
    if segment.slots <= POP_PAYLOAD || segment.functions.is_null() {
        return 0;
    }
    // SAFETY: a slot of the segment, which is to be filled in now.
    unsafe { segment.functions.add(POP_PAYLOAD).write(domains::pop_payload as Function) };
    1
}

/// Fills in the functions of a module.
///
/// # Safety
/// `get` is NVTX's.
unsafe fn fill(get: GetTable, module: i32, functions: &[(usize, Function)]) -> bool {
    let (mut table, mut size) = (ptr::null(), 0);
    // SAFETY: variables to fill.
    if unsafe { get(module, &raw mut table, &raw mut size) } == 0 || table.is_null() {
        return false;
    }
    for &(place, function) in functions.iter().filter(|(place, _)| *place < size as usize) {
        // SAFETY: by the protocol an array of that length, of addresses of function pointers.
        unsafe {
            let address = table.add(place).read();
            if !address.is_null() {
                address.write(function);
            }
        }
    }
    true
}

fn core_functions() -> [(usize, Function); 11] {
    [
        (1, core::mark_ex as Function),
        (2, core::mark_a as Function),
        (3, core::mark_w as Function),
        (4, core::start_ex as Function),
        (5, core::start_a as Function),
        (6, core::start_w as Function),
        (7, core::range_end as Function),
        (8, core::push_ex as Function),
        (9, core::push_a as Function),
        (10, core::push_w as Function),
        (11, core::pop as Function),
    ]
}

fn domain_functions() -> [(usize, Function); 9] {
    [
        (1, domains::mark_ex as Function),
        (2, domains::start_ex as Function),
        (3, domains::range_end as Function),
        (4, domains::push_ex as Function),
        (5, domains::pop as Function),
        (10, domains::register_a as Function),
        (11, domains::register_w as Function),
        // A domain is a registered name.
        (12, create_a as Function),
        (13, create_w as Function),
    ]
}

unsafe extern "C" fn create_a(name: *const std::ffi::c_char) -> *const c_void {
    // SAFETY: NVTX's contract.
    unsafe { domains::register_a(ptr::null(), name) }
}

unsafe extern "C" fn create_w(name: *const libc::wchar_t) -> *const c_void {
    // SAFETY: NVTX's contract.
    unsafe { domains::register_w(ptr::null(), name) }
}
