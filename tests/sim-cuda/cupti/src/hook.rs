//! What the driver reports, turned into records and callbacks.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::ffi::{CStr, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use sim_abi::{
    ApiSite, ContextInfo, DeviceInfo, DriverTable, EventInfo, Hooks, HostLaunchInfo, MemoryInfo, OpInfo,
    OpKind, OverheadInfo, OverheadKind, ResourceInfo, ResourceKind, StreamInfo, SyncInfo,
};

use crate::buffer;
use crate::callback::{self, CallbackData, ModuleData, ResourceData};
use crate::clock::{self, Clock};
use crate::driver;
use crate::kind;
use crate::record;
use crate::selection;
use crate::text;
use crate::version;
use crate::worker;

static HOOKS: Hooks = Hooks {
    clock: clock_now,
    api_enter,
    api_exit,
    op_submit,
    op_done,
    sync,
    event_record,
    overhead,
    host_launch,
    memory,
    resource,
};

static INSTALLED: AtomicBool = AtomicBool::new(false);
/// Contexts up to this number were there before the client's clock.
static OLD_CONTEXTS: AtomicU32 = AtomicU32::new(0);

/// Puts the hooks into the driver, if they are not there.
pub fn install(table: &DriverTable) {
    if !INSTALLED.swap(true, Ordering::AcqRel) {
        worker::start();
        (table.set_hooks)(&raw const HOOKS);
    }
}

/// Takes them out.
pub fn remove() {
    if INSTALLED.load(Ordering::Acquire)
        && let Ok(table) = driver::table()
    {
        (table.set_hooks)(std::ptr::null());
        INSTALLED.store(false, Ordering::Release);
    }
}

/// No panic may go into the driver.
fn guard<T>(otherwise: T, body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(otherwise)
}

extern "C" fn clock_now() -> u64 {
    guard(0, clock::now)
}

/// Notes which contexts a newly registered clock comes too late for.
pub fn note_old_contexts() {
    extern "C" fn each(newest: *mut c_void, info: &ContextInfo) {
        // SAFETY: the pointer that is passed below.
        let newest = unsafe { &mut *newest.cast::<u32>() };
        *newest = info.id.max(*newest);
    }
    let mut newest = 0u32;
    if let Ok(table) = driver::table() {
        (table.for_each_context)(each, (&raw mut newest).cast());
    }
    OLD_CONTEXTS.store(newest, Ordering::Relaxed);
}

/// The clock of a context's device records. Before 13.3.3 contexts that are older than the client's clock stay on
/// CLOCK_REALTIME.
fn clock_of(context: u32) -> Clock {
    if version::get().library < 130_303 && context <= OLD_CONTEXTS.load(Ordering::Relaxed) {
        Clock::Realtime
    } else {
        clock::current()
    }
}

fn callback_data(site: &ApiSite, is_exit: bool, result: *const i32, kept: *mut u64) -> CallbackData {
    CallbackData {
        site: u32::from(is_exit),
        name: site.name,
        params: site.params,
        result,
        symbol: site.symbol,
        context: site.context,
        context_uid: site.context_id,
        correlation_data: kept,
        correlation_id: site.correlation_id,
    }
}

extern "C" fn api_enter(site: &mut ApiSite) {
    guard((), || {
        if callback::is_on(callback::DRIVER, site.cbid) {
            let mut kept = 0;
            let data = callback_data(site, false, std::ptr::null(), &raw mut kept);
            callback::call(callback::DRIVER, site.cbid, &data);
            site.correlation_data = kept;
        }
        if selection::driver_api_is_on(site.cbid) {
            site.start = clock::now();
        }
    });
}

extern "C" fn api_exit(site: &mut ApiSite, result: i32) {
    guard((), || {
        if site.start != 0 && selection::driver_api_is_on(site.cbid) {
            let (end, ids) = (clock::now(), selection::ids());
            buffer::write(&record::api(site.cbid, site.start, end, ids, site.correlation_id, result as u32));
            external_records(site.correlation_id);
        }
        if callback::is_on(callback::DRIVER, site.cbid) {
            let mut kept = site.correlation_data;
            let data = callback_data(site, true, &raw const result, &raw mut kept);
            callback::call(callback::DRIVER, site.cbid, &data);
        }
    });
}

thread_local!(static EXTERNAL: RefCell<HashMap<u32, Vec<u64>>> = RefCell::default());

/// Pushes a number of the client's, of one of its kinds, in the calling thread.
pub fn push_external(external_kind: u32, id: u64) {
    let _ = EXTERNAL.try_with(|stacks| stacks.borrow_mut().entry(external_kind).or_default().push(id));
}

/// Pops it.
pub fn pop_external(external_kind: u32) -> Option<u64> {
    EXTERNAL.try_with(|stacks| stacks.borrow_mut().get_mut(&external_kind)?.pop()).ok().flatten()
}

fn external_records(correlation_id: u32) {
    if !selection::kind_is_on(kind::EXTERNAL_CORRELATION) {
        return;
    }
    let tops: Vec<(u32, u64)> = EXTERNAL
        .try_with(|stacks| {
            stacks.borrow().iter().filter_map(|(kind, ids)| Some((*kind, *ids.last()?))).collect()
        })
        .unwrap_or_default();
    for (external_kind, id) in tops {
        buffer::write(&record::external_correlation(external_kind, id, correlation_id));
    }
}

extern "C" fn op_submit(info: &OpInfo) -> u64 {
    guard(0, || {
        let wanted: &[u32] = match info.kind {
            OpKind::Kernel => &[kind::CONCURRENT_KERNEL, kind::KERNEL],
            OpKind::Copy => &[kind::MEMCPY],
            OpKind::PeerCopy => &[kind::MEMCPY2],
            OpKind::Set => &[kind::MEMSET],
            OpKind::Graph => &[kind::GRAPH_TRACE],
        };
        let Some(kind) = wanted.iter().find(|kind| selection::kind_is_on(**kind)) else { return 0 };
        let name = if info.name.is_null() {
            std::ptr::null()
        } else {
            // SAFETY: the driver's own string, NUL-terminated.
            text::intern(unsafe { CStr::from_ptr(info.name) })
        };
        buffer::reserve(&record::op(*kind, info, name), clock::now(), clock_of(info.context))
    })
}

extern "C" fn op_done(token: u64, device: u32, start: u64, end: u64) {
    guard((), || buffer::fill(token, device, start, end));
}

extern "C" fn sync(info: &SyncInfo) {
    guard((), || {
        // From 12.8 on there are records of queries too, unless the client has switched them off.
        let wanted = !info.is_query || (version::get().cuda >= (12, 8) && selection::all_sync());
        if wanted && selection::kind_is_on(kind::SYNCHRONIZATION) {
            buffer::write(&record::sync(info));
        }
    });
}

extern "C" fn event_record(info: &EventInfo) {
    guard((), || {
        if selection::kind_is_on(kind::CUDA_EVENT) {
            buffer::write(&record::event(info));
        }
    });
}

extern "C" fn overhead(info: &OverheadInfo) {
    guard((), || {
        let first = match info.kind {
            OverheadKind::Compiler => (11, 7),
            OverheadKind::LazyFunctionLoading => (12, 3),
            OverheadKind::CommandBufferFull => (12, 4),
        };
        if !selection::kind_is_on(kind::OVERHEAD) || version::get().cuda < first {
            return;
        }
        let data = if info.kind == OverheadKind::CommandBufferFull {
            full_queue([info.queue_length, info.channel, 1])
        } else {
            std::ptr::null()
        };
        buffer::write(&record::overhead(info, selection::ids(), data));
    });
}

/// The description of a full queue; lives as long as the process.
fn full_queue(data: [u32; 3]) -> *const [u32; 3] {
    static KNOWN: Mutex<Vec<&'static [u32; 3]>> = Mutex::new(Vec::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(same) = known.iter().find(|same| ***same == data) {
        return *same;
    }
    let leaked: &'static [u32; 3] = Box::leak(Box::new(data));
    known.push(leaked);
    leaked
}

extern "C" fn host_launch(info: &HostLaunchInfo) {
    guard((), || {
        let record = record::host_launch(info, selection::ids());
        if selection::kind_is_on(record.kind) {
            buffer::write(&record);
        }
    });
}

extern "C" fn memory(info: &MemoryInfo) {
    guard((), || {
        if selection::kind_is_on(kind::MEMORY2) {
            buffer::write(&record::memory(info, clock::now(), selection::process_id()));
        }
    });
}

extern "C" fn resource(info: &ResourceInfo) {
    guard((), || {
        match info.kind {
            ResourceKind::ContextCreated => {
                write_device(info.context_info.device);
                write_context(&info.context_info);
            }
            ResourceKind::StreamCreated => write_stream(&info.stream_info),
            ResourceKind::ModuleLoaded if selection::kind_is_on(kind::MODULE) => {
                buffer::write(&record::module(info.context_info.id, info.module_id));
            }
            _ => {}
        }
        let module = ModuleData { id: info.module_id, size: 0, binary: std::ptr::null() };
        let is_module = matches!(info.kind, ResourceKind::ModuleLoaded | ResourceKind::ModuleUnloadStarting);
        let descriptor = if is_module { (&raw const module).cast() } else { std::ptr::null() };
        let data = ResourceData { context: info.context, handle: info.stream, descriptor };
        callback::call(callback::RESOURCE, info.kind as u32, &data);
    });
}

/// Devices that have had their record since the kind was switched on.
static DEVICES: Mutex<Option<HashSet<u32>>> = Mutex::new(None);

fn write_device(device: u32) {
    let Ok(table) = driver::table() else { return };
    if !selection::kind_is_on(kind::DEVICE) {
        return;
    }
    let mut known = DEVICES.lock().unwrap_or_else(PoisonError::into_inner);
    if !known.get_or_insert_default().insert(device) {
        return;
    }
    drop(known);
    let mut info = DeviceInfo {
        name: std::ptr::null(),
        uuid: [0; 16],
        memory: 0,
        bandwidth_kb_s: 0,
        clock_khz: 0,
        copy_engines: 0,
        multiprocessors: 0,
        capability: [0; 2],
    };
    if (table.device_info)(device, &mut info) {
        buffer::write(&record::device(device, &info));
    }
}

fn write_context(info: &ContextInfo) {
    if selection::kind_is_on(kind::CONTEXT) {
        buffer::write(&record::context(info, selection::process_id()));
    }
}

fn write_stream(info: &StreamInfo) {
    if selection::kind_is_on(kind::STREAM) {
        buffer::write(&record::stream(info));
    }
}

/// Writes the records of what there is now, of a kind that is made only when something comes.
pub fn dump(dumped: u32, table: &DriverTable) {
    extern "C" fn context(_: *mut c_void, info: &ContextInfo) {
        guard((), || write_context(info));
    }
    extern "C" fn stream(_: *mut c_void, info: &StreamInfo) {
        guard((), || write_stream(info));
    }
    match dumped {
        kind::DEVICE => {
            *DEVICES.lock().unwrap_or_else(PoisonError::into_inner) = None;
            (0..(table.device_count)()).for_each(write_device);
        }
        kind::CONTEXT => (table.for_each_context)(context, std::ptr::null_mut()),
        kind::STREAM => (table.for_each_stream)(stream, std::ptr::null_mut()),
        _ => {}
    }
}
