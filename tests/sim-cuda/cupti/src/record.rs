//! The records, by the offsets of the newest struct of each kind. Every older struct is its beginning, so a record of an
//! older version is cut off at that version's size.

use sim_abi::{
    ContextInfo, DeviceInfo, EventInfo, HostLaunchInfo, MemoryInfo, OpInfo, OpKind, OverheadInfo, StreamInfo,
    SyncInfo,
};

use crate::kind;

/// Bytes of the largest record.
pub const MAX: usize = 256;

/// A record.
pub struct Record {
    /// Kind.
    pub kind: u32,
    /// Bytes; those beyond the version's size are cut off.
    pub bytes: [u8; MAX],
}

impl Record {
    /// An empty record of a kind.
    #[must_use]
    pub fn new(kind: u32) -> Self {
        let mut bytes = [0; MAX];
        bytes[..4].copy_from_slice(&kind.to_le_bytes());
        Self { kind, bytes }
    }

    fn u8(mut self, at: usize, value: u8) -> Self {
        self.bytes[at] = value;
        self
    }

    fn u16(mut self, at: usize, value: u16) -> Self {
        self.bytes[at..at + 2].copy_from_slice(&value.to_ne_bytes());
        self
    }

    fn u32(mut self, at: usize, value: u32) -> Self {
        self.bytes[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        self
    }

    fn u64(mut self, at: usize, value: u64) -> Self {
        self.bytes[at..at + 8].copy_from_slice(&value.to_ne_bytes());
        self
    }

    fn pointer<T>(self, at: usize, value: *const T) -> Self {
        self.u64(at, value as u64)
    }
}

/// Where start, end (and for kernels completion) lie in a device record.
#[must_use]
pub fn time_offsets(kind: u32) -> (usize, usize, Option<usize>) {
    match kind {
        kind::CONCURRENT_KERNEL | kind::KERNEL => (16, 24, Some(32)),
        kind::GRAPH_TRACE => (8, 16, None),
        _ => (16, 24, None),
    }
}

/// A piece of device work, without its times yet.
#[must_use]
pub fn op(kind: u32, info: &OpInfo, name: *const std::ffi::c_char) -> Record {
    let record = Record::new(kind);
    match info.kind {
        OpKind::Kernel => record
            .u8(4, 0)
            .u16(6, 32)
            .u32(40, info.device)
            .u32(44, info.context)
            .u32(48, info.stream)
            .u32(52, info.grid[0])
            .u32(56, info.grid[1])
            .u32(60, info.grid[2])
            .u32(64, info.block[0])
            .u32(68, info.block[1])
            .u32(72, info.block[2])
            .u32(80, info.shared)
            .u32(92, info.correlation_id)
            .u64(96, u64::from(info.correlation_id))
            .pointer(104, name)
            .u32(140, info.shared)
            .u64(144, info.graph_node_id)
            .u32(156, info.graph_id)
            .u32(168, info.channel)
            .u32(172, info.channel_type)
            .u32(216, info.priority as u32),
        OpKind::Copy => copy_head(record, info)
            .u32(44, info.correlation_id)
            .u64(64, info.graph_node_id)
            .u32(72, info.graph_id)
            .u32(76, info.channel)
            .u32(80, info.channel_type)
            .u64(88, 1),
        OpKind::PeerCopy => copy_head(record, info)
            .u32(44, info.src[0])
            .u32(48, info.src[1])
            .u32(52, info.dst[0])
            .u32(56, info.dst[1])
            .u32(60, info.correlation_id)
            .u64(72, info.graph_node_id)
            .u32(80, info.graph_id)
            .u32(84, info.channel)
            .u32(88, info.channel_type),
        OpKind::Set => record
            .u32(4, info.value)
            .u64(8, info.bytes)
            .u32(32, info.device)
            .u32(36, info.context)
            .u32(40, info.stream)
            .u32(44, info.correlation_id)
            .u16(48, u16::from(info.is_async))
            .u16(50, u16::from(info.dst_kind))
            .u64(64, info.graph_node_id)
            .u32(72, info.graph_id)
            .u32(76, info.channel)
            .u32(80, info.channel_type),
        OpKind::Graph => record
            .u32(4, info.correlation_id)
            .u32(24, info.device)
            .u32(28, info.graph_id)
            .u32(32, info.context)
            .u32(36, info.stream)
            .u32(48, info.device)
            .u32(52, info.context),
    }
}

fn copy_head(record: Record, info: &OpInfo) -> Record {
    record
        .u8(4, info.copy_kind)
        .u8(5, info.src_kind)
        .u8(6, info.dst_kind)
        .u8(7, u8::from(info.is_async))
        .u64(8, info.bytes)
        .u32(32, info.device)
        .u32(36, info.context)
        .u32(40, info.stream)
}

/// A call of a driver function.
#[must_use]
pub fn api(cbid: u32, start: u64, end: u64, ids: [u32; 2], correlation_id: u32, result: u32) -> Record {
    Record::new(kind::DRIVER)
        .u32(4, cbid)
        .u64(8, start)
        .u64(16, end)
        .u32(24, ids[0])
        .u32(28, ids[1])
        .u32(32, correlation_id)
        .u32(36, result)
}

/// A synchronisation.
#[must_use]
pub fn sync(info: &SyncInfo) -> Record {
    Record::new(kind::SYNCHRONIZATION)
        .u32(4, info.kind as u32)
        .u64(8, info.start)
        .u64(16, info.end)
        .u32(24, info.correlation_id)
        .u32(28, info.context)
        .u32(32, info.stream)
        .u32(36, info.event)
        .u64(40, info.event_sync_id)
        .u32(48, info.result as u32)
}

/// A recording of an event.
#[must_use]
pub fn event(info: &EventInfo) -> Record {
    Record::new(kind::CUDA_EVENT)
        .u32(4, info.correlation_id)
        .u32(8, info.context)
        .u32(12, info.stream)
        .u32(16, info.event)
        .u32(24, info.device)
        .u64(48, info.event_sync_id)
}

/// Time that the driver took, in a thread of this process and system number.
#[must_use]
pub fn overhead(info: &OverheadInfo, ids: [u32; 2], data: *const [u32; 3]) -> Record {
    const THREAD: u32 = 2;
    Record::new(kind::OVERHEAD)
        .u32(4, info.kind as u32)
        .u32(8, THREAD)
        .u32(12, ids[0])
        .u32(16, ids[1])
        .u64(24, info.start)
        .u64(32, info.end)
        .u32(40, info.correlation_id)
        .pointer(48, data)
}

/// A run of a host function.
#[must_use]
pub fn host_launch(info: &HostLaunchInfo, ids: [u32; 2]) -> Record {
    if info.graph_id == 0 {
        return Record::new(kind::HOST_LAUNCH)
            .u32(4, info.stream)
            .u32(8, info.context)
            .u32(12, info.device)
            .u32(16, info.correlation_id)
            .u32(20, ids[0])
            .u32(24, ids[1])
            .u64(32, info.start)
            .u64(40, info.end);
    }
    Record::new(kind::GRAPH_HOST_NODE)
        .u32(4, info.stream)
        .u32(8, info.context)
        .u32(12, info.device)
        .u32(16, info.correlation_id)
        .u32(20, info.graph_id)
        .u64(24, info.graph_node_id)
        .u32(32, ids[0])
        .u32(36, ids[1])
        .u64(40, info.start)
        .u64(48, info.end)
}

/// An allocation or a release.
#[must_use]
pub fn memory(info: &MemoryInfo, timestamp: u64, process: u32) -> Record {
    Record::new(kind::MEMORY2)
        .u32(4, info.operation)
        .u32(8, info.kind)
        .u32(12, info.correlation_id)
        .u64(16, info.address)
        .u64(24, info.bytes)
        .u64(32, timestamp)
        .u32(48, process)
        .u32(52, info.device)
        .u32(56, info.context)
        .u32(60, info.stream)
        .u32(72, u32::from(info.is_async))
}

/// An own number of the client's, for a call.
#[must_use]
pub fn external_correlation(external_kind: u32, external_id: u64, correlation_id: u32) -> Record {
    Record::new(kind::EXTERNAL_CORRELATION).u32(4, external_kind).u64(8, external_id).u32(16, correlation_id)
}

/// A context.
#[must_use]
pub fn context(info: &ContextInfo, process: u32) -> Record {
    const CUDA: u16 = 1;
    Record::new(kind::CONTEXT)
        .u32(4, info.id)
        .u32(8, info.device)
        .u16(12, CUDA)
        .u16(14, info.null_stream as u16)
        .u32(32, process)
}

/// A stream.
#[must_use]
pub fn stream(info: &StreamInfo) -> Record {
    Record::new(kind::STREAM)
        .u32(4, info.context)
        .u32(8, info.id)
        .u32(12, info.priority as u32)
        .u32(16, info.flag)
        .u32(20, info.correlation_id)
}

/// A device.
#[must_use]
pub fn device(id: u32, info: &DeviceInfo) -> Record {
    let mut record = Record::new(kind::DEVICE)
        .u32(4, 1)
        .u64(8, info.bandwidth_kb_s)
        .u64(16, info.memory)
        .u32(24, 64 << 10)
        .u32(28, 50 << 20)
        .u32(32, 32)
        .u32(36, info.clock_khz)
        .u32(40, info.copy_engines)
        .u32(44, info.multiprocessors)
        .u32(76, 1024)
        .u32(104, info.capability[0])
        .u32(108, info.capability[1])
        .u32(112, id)
        .u32(116, 1)
        .pointer(136, info.name)
        .u8(144, 1)
        .u32(184, info.multiprocessors / 2);
    record.bytes[120..136].copy_from_slice(&info.uuid);
    record
}

/// A module.
#[must_use]
pub fn module(context: u32, id: u32) -> Record {
    Record::new(kind::MODULE).u32(4, context).u32(8, id)
}

/// A record of a kind that no version knows.
#[must_use]
pub fn unknown() -> Record {
    Record::new(kind::UNKNOWN).u64(8, u64::MAX).u64(16, u64::MAX)
}
