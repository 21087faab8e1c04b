//! The private channel between the simulated `libcuda.so.1` and the simulated `libcupti.so`.
//!
//! The real CUPTI fetches private tables from the driver with `cuGetExportTable`; so does the simulated one, with
//! [`EXPORT_TABLE_UUID`]. It finds a [`DriverTable`] there and puts its own [`Hooks`] into the driver. Until then the
//! driver calls nobody: a process that never loads CUPTI pays nothing, and a CUPTI that comes late misses what came
//! before it, as on real hardware.
#![no_std]

pub mod cbid;
mod collective;

use core::ffi::{c_char, c_void};
use core::sync::atomic::AtomicU32;

pub use collective::{COLLECTIVE_KERNEL, COLLECTIVE_MAGIC, Cell, CollectiveArgs, CollectivePart, SLOTS};

/// Asked of `cuGetExportTable` to get the [`DriverTable`]. Own number, known to no real driver.
pub const EXPORT_TABLE_UUID: [u8; 16] = *b"gtrace-sim-cuda\x01";

/// What CUPTI may ask of the driver.
#[repr(C)]
pub struct DriverTable {
    /// `size_of::<DriverTable>()`, to notice libraries of different builds.
    pub size: usize,
    /// Registers the hooks (null: none). They must stay valid for the life of the process.
    pub set_hooks: extern "C" fn(*const Hooks),
    /// Brings the devices' timelines up to now, so that all that is complete has been reported to [`Hooks::op_done`].
    pub advance: extern "C" fn(),
    /// The device's own clock, ns. It has an offset and a drift against any host clock.
    pub device_clock: extern "C" fn(device: u32) -> u64,
    /// Number of devices.
    pub device_count: extern "C" fn() -> u32,
    /// Fills one device's description; false if there is none of that number.
    pub device_info: extern "C" fn(device: u32, out: &mut DeviceInfo) -> bool,
    /// Calls `each` for every living context.
    pub for_each_context: extern "C" fn(each: extern "C" fn(*mut c_void, &ContextInfo), user: *mut c_void),
    /// Calls `each` for every living stream.
    pub for_each_stream: extern "C" fn(each: extern "C" fn(*mut c_void, &StreamInfo), user: *mut c_void),
    /// The context's number by handle, 0 if there is none (null: of the calling thread's current context).
    pub context_id: extern "C" fn(context: *mut c_void) -> u32,
    /// The stream's number by context and stream handle, `u32::MAX` if there is none.
    pub stream_id: extern "C" fn(context: *mut c_void, stream: *mut c_void, per_thread: bool) -> u32,
    /// Correlation number of the driver call that the calling thread is in, 0 outside of one.
    pub correlation_id: extern "C" fn() -> u32,
    /// For the simulated NCCL: from now on, whenever this word (in memory that other processes share) changes and is
    /// woken, kernels of collectives look for their peers again. The word lives as long as the process.
    pub watch_bell: extern "C" fn(*const AtomicU32),
}

/// What the driver tells CUPTI. Each is called without the driver's locks, except `op_done`.
#[repr(C)]
pub struct Hooks {
    /// CUPTI's current clock, ns.
    pub clock: extern "C" fn() -> u64,
    /// A driver function was entered.
    pub api_enter: extern "C" fn(&mut ApiSite),
    /// It returns.
    pub api_exit: extern "C" fn(&mut ApiSite, result: i32),
    /// Work was given to a device, by the calling thread. Returns a token, 0 if nobody records it.
    pub op_submit: extern "C" fn(&OpInfo) -> u64,
    /// The work with this token is over. Times of the device's own clock. Called under the driver's lock.
    pub op_done: extern "C" fn(token: u64, device: u32, start: u64, end: u64),
    /// The calling thread waited for a device, or made a stream wait for an event.
    pub sync: extern "C" fn(&SyncInfo),
    /// An event was put into a stream.
    pub event_record: extern "C" fn(&EventInfo),
    /// The driver kept the calling thread busy or waiting.
    pub overhead: extern "C" fn(&OverheadInfo),
    /// A host function ran between two operations of a stream, in the calling thread.
    pub host_launch: extern "C" fn(&HostLaunchInfo),
    /// Memory was allocated or freed.
    pub memory: extern "C" fn(&MemoryInfo),
    /// A context, stream or module came or goes, or `cuInit` ended.
    pub resource: extern "C" fn(&ResourceInfo),
}

/// One call of a driver function.
#[repr(C)]
pub struct ApiSite {
    /// CUPTI's number of the function.
    pub cbid: u32,
    /// Number of this call.
    pub correlation_id: u32,
    /// NUL-terminated name of the function.
    pub name: *const c_char,
    /// The parameters, one struct as CUPTI's callbacks present them.
    pub params: *const c_void,
    /// Name of the kernel, for launches; else null.
    pub symbol: *const c_char,
    /// Handle of the current context.
    pub context: *mut c_void,
    /// Its number.
    pub context_id: u32,
    /// For CUPTI: the clock at entry, 0 if it is not wanted.
    pub start: u64,
    /// For CUPTI: what a callback keeps between entry and exit.
    pub correlation_data: u64,
}

/// What kind of work an [`OpInfo`] is.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpKind {
    /// A kernel.
    Kernel,
    /// A copy within one context.
    Copy,
    /// A copy between two devices or contexts.
    PeerCopy,
    /// A memset.
    Set,
    /// A launch of a whole graph.
    Graph,
}

/// Work of a device.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct OpInfo {
    /// Kind.
    pub kind: OpKind,
    /// Device.
    pub device: u32,
    /// Context number.
    pub context: u32,
    /// Stream number.
    pub stream: u32,
    /// Call that gave it.
    pub correlation_id: u32,
    /// Executable graph that it belongs to, 0 for none.
    pub graph_id: u32,
    /// Node of that graph, 0 for none.
    pub graph_node_id: u64,
    /// Kernel: name.
    pub name: *const c_char,
    /// Kernel: grid.
    pub grid: [u32; 3],
    /// Kernel: block.
    pub block: [u32; 3],
    /// Kernel: dynamic shared memory, bytes.
    pub shared: u32,
    /// Kernel: stream's priority.
    pub priority: i32,
    /// Copy and set: bytes.
    pub bytes: u64,
    /// Set: the value.
    pub value: u32,
    /// Copy: CUPTI's copy kind (1 HtoD, 2 DtoH, 8 DtoD, 9 HtoH, 10 PtoP).
    pub copy_kind: u8,
    /// Copy: CUPTI's memory kind of the source (1 pageable, 2 pinned, 3 device, 5 managed).
    pub src_kind: u8,
    /// Copy and set: memory kind of the destination.
    pub dst_kind: u8,
    /// Whether the call was an asynchronous one.
    pub is_async: bool,
    /// Peer copy: source device and context.
    pub src: [u32; 2],
    /// Peer copy: destination device and context.
    pub dst: [u32; 2],
    /// Hardware channel.
    pub channel: u32,
    /// 1 compute, 2 copy.
    pub channel_type: u32,
}

/// CUPTI's numbers of synchronisations.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncKind {
    /// Host waits for an event.
    Event = 1,
    /// A stream waits for an event.
    StreamWaitEvent = 2,
    /// Host waits for a stream.
    Stream = 3,
    /// Host waits for a context.
    Context = 4,
}

/// One synchronisation.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SyncInfo {
    /// Kind.
    pub kind: SyncKind,
    /// Whether it was a query, which does not wait.
    pub is_query: bool,
    /// Context number.
    pub context: u32,
    /// Stream number, `u32::MAX` if it is about none.
    pub stream: u32,
    /// Event number, `u32::MAX` if it is about none.
    pub event: u32,
    /// Which of the event's recordings.
    pub event_sync_id: u64,
    /// Call.
    pub correlation_id: u32,
    /// Result of the call.
    pub result: i32,
    /// Begin, [`Hooks::clock`].
    pub start: u64,
    /// End, [`Hooks::clock`].
    pub end: u64,
}

/// One recording of an event.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct EventInfo {
    /// Device.
    pub device: u32,
    /// Context number.
    pub context: u32,
    /// Stream number.
    pub stream: u32,
    /// Event number.
    pub event: u32,
    /// Which of the event's recordings.
    pub event_sync_id: u64,
    /// Call.
    pub correlation_id: u32,
}

/// CUPTI's numbers of overheads.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverheadKind {
    /// Code was compiled.
    Compiler = 1,
    /// A kernel was loaded at its first use.
    LazyFunctionLoading = 5 << 16,
    /// A launch had to wait since its queue was full.
    CommandBufferFull = 6 << 16,
}

/// Time the driver took.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct OverheadInfo {
    /// Kind.
    pub kind: OverheadKind,
    /// Call in which it happened.
    pub correlation_id: u32,
    /// Begin, [`Hooks::clock`].
    pub start: u64,
    /// End, [`Hooks::clock`].
    pub end: u64,
    /// Full queue: its length.
    pub queue_length: u32,
    /// Full queue: its channel.
    pub channel: u32,
    /// Device.
    pub device: u32,
}

/// One run of a host function.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HostLaunchInfo {
    /// Device.
    pub device: u32,
    /// Context number.
    pub context: u32,
    /// Stream number.
    pub stream: u32,
    /// Call that enqueued it.
    pub correlation_id: u32,
    /// Executable graph that it belongs to, 0 for none.
    pub graph_id: u32,
    /// Node of that graph, 0 for none.
    pub graph_node_id: u64,
    /// Begin, [`Hooks::clock`].
    pub start: u64,
    /// End, [`Hooks::clock`].
    pub end: u64,
}

/// Memory that came or went.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MemoryInfo {
    /// 1 allocation, 2 release.
    pub operation: u32,
    /// CUPTI's memory kind.
    pub kind: u32,
    /// Call.
    pub correlation_id: u32,
    /// Address.
    pub address: u64,
    /// Bytes.
    pub bytes: u64,
    /// Device.
    pub device: u32,
    /// Context number.
    pub context: u32,
    /// Stream number, `u32::MAX` for none.
    pub stream: u32,
    /// Whether in stream order.
    pub is_async: bool,
}

/// CUPTI's numbers of resource callbacks.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResourceKind {
    /// A context was made.
    ContextCreated = 1,
    /// A context is about to go.
    ContextDestroyStarting = 2,
    /// A stream was made.
    StreamCreated = 3,
    /// A stream is about to go.
    StreamDestroyStarting = 4,
    /// `cuInit` is done.
    InitFinished = 5,
    /// A module was loaded.
    ModuleLoaded = 6,
    /// A module is about to go.
    ModuleUnloadStarting = 7,
}

/// Something came or goes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ResourceInfo {
    /// What.
    pub kind: ResourceKind,
    /// Handle of the context.
    pub context: *mut c_void,
    /// The context.
    pub context_info: ContextInfo,
    /// Handle of the stream, or null.
    pub stream: *mut c_void,
    /// The stream, where it is about one.
    pub stream_info: StreamInfo,
    /// Number of the module, where it is about one.
    pub module_id: u32,
    /// Call.
    pub correlation_id: u32,
}

/// A device.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DeviceInfo {
    /// NUL-terminated name.
    pub name: *const c_char,
    /// UUID.
    pub uuid: [u8; 16],
    /// Memory, bytes.
    pub memory: u64,
    /// Memory bandwidth, kB/s.
    pub bandwidth_kb_s: u64,
    /// Core clock, kHz.
    pub clock_khz: u32,
    /// Copy engines.
    pub copy_engines: u32,
    /// Multiprocessors.
    pub multiprocessors: u32,
    /// Compute capability.
    pub capability: [u32; 2],
}

/// A context.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ContextInfo {
    /// Number.
    pub id: u32,
    /// Device.
    pub device: u32,
    /// Number of its legacy default stream.
    pub null_stream: u32,
}

/// A stream.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct StreamInfo {
    /// Number.
    pub id: u32,
    /// Context number.
    pub context: u32,
    /// Priority.
    pub priority: i32,
    /// CUPTI's stream flag: 1 default, 2 non-blocking, 3 null stream.
    pub flag: u32,
    /// Call that made it.
    pub correlation_id: u32,
}
