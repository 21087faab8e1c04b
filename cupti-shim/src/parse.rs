//! Reads a buffer of records and writes them to the ring.

use std::ptr;
use std::slice;
use std::sync::atomic::Ordering::Relaxed;

use tracer_abi::shim::{
    ApiDomain, ApiRecord, ContextRecord, CopyRecord, DEVICE_NAME_MAX_BYTES, DeviceRecord, GraphRecord,
    InvalidReason, InvalidRecord, KernelRecord, MemsetRecord, OverheadRecord, StreamRecord, SyncRecord,
    copy_flags, overhead_flags,
};

use crate::bind::SUCCESS;
use crate::cbids;
use crate::clock;
use crate::collector::Collector;
use crate::layout::{
    OBJECT_THREAD, Version, api, context, device, graph, kernel, kind, memcpy, memset, overhead, peer,
    stream, sync,
};

/// Bytes of a name that are looked at for its end.
const NAME_LOOK_BYTES: usize = 16 << 10;
/// `CUPTI_ERROR_MAX_LIMIT_REACHED`: the end of a buffer.
const END_OF_BUFFER: u32 = 12;

/// A record within its buffer.
#[derive(Clone, Copy)]
struct Raw<'buffer> {
    bytes: &'buffer [u8],
}

macro_rules! getters {
    ($($name:ident: $type:ty,)*) => {$(
        /// The field at `offset`, 0 past the end of the buffer (`NEED` is checked before).
        fn $name(self, offset: usize) -> $type {
            self.bytes
                .get(offset..offset + size_of::<$type>())
                .and_then(|bytes| bytes.try_into().ok())
                .map_or(0, <$type>::from_ne_bytes)
        }
    )*};
}

impl Raw<'_> {
    getters! { u8: u8, u16: u16, u32: u32, u64: u64, }

    /// The string that the pointer at `offset` leads to, at most `bound` bytes of it.
    ///
    /// # Safety
    /// The record is one of CUPTI whose layout has a pointer to a string or NULL there, and CUPTI keeps that string while
    /// the buffer is handled.
    unsafe fn text(self, offset: usize, bound: usize) -> &'static [u8] {
        let start = ptr::with_exposed_provenance::<u8>(self.u64(offset) as usize);
        if start.is_null() {
            return &[];
        }
        // SAFETY: a string by the caller's promise; read up to its end or the bound.
        unsafe { slice::from_raw_parts(start, libc::strnlen(start.cast(), bound)) }
    }
}

/// Why a record's times are none.
fn fault(start: u64, end: u64) -> Option<InvalidReason> {
    match (start, end) {
        (0, 0) => Some(InvalidReason::Untimed),
        (_, 0) => Some(InvalidReason::Unfinished),
        (0, _) => Some(InvalidReason::NoStart),
        _ if end < start => Some(InvalidReason::EndBeforeStart),
        _ => None,
    }
}

impl Collector {
    /// Reads the records of a buffer. Only CUPTI knows where the next one begins: sizes differ by version, and kinds that
    /// nobody asked for may lie between.
    ///
    /// # Safety
    /// `buffer` is one that CUPTI handed back, with `valid_size` bytes of records in the layouts of its version.
    pub unsafe fn parse(&self, buffer: *mut u8, valid_size: usize) {
        let Some(next) = self.cupti.get_next_record else { return };
        // The shortest record is 8 bytes long: a CUPTI that never ends is left after so many.
        let most = valid_size / 8;
        let mut record = ptr::null_mut();
        for _ in 0..=most {
            // SAFETY: the buffer that CUPTI has just handed back, and the record that it gave last.
            let code = unsafe { next(buffer, valid_size, &raw mut record) };
            if code == END_OF_BUFFER {
                return;
            }
            let offset = (record as usize).wrapping_sub(buffer as usize);
            if code != SUCCESS || offset.saturating_add(4) > valid_size {
                break;
            }
            // SAFETY: from the record to the end of what CUPTI says is valid in our buffer.
            let bytes = unsafe { slice::from_raw_parts(record, valid_size - offset) };
            self.read(Raw { bytes });
        }
        if valid_size > 0 {
            self.header().broken_buffers.fetch_add(1, Relaxed);
        }
    }

    fn read(&self, raw: Raw<'_>) {
        let kind = raw.u32(0);
        let (need, write): (usize, fn(&Self, Raw<'_>)) = match kind {
            kind::CONCURRENT_KERNEL => (kernel::NEED, Self::kernel),
            kind::MEMCPY => (memcpy::NEED, Self::copy),
            kind::MEMCPY2 => (peer::NEED, Self::peer_copy),
            kind::MEMSET => (memset::NEED, Self::memset),
            kind::DRIVER => (api::NEED, |this, raw| this.call(raw, ApiDomain::Driver, cbids::DRIVER)),
            kind::RUNTIME => (api::NEED, |this, raw| this.call(raw, ApiDomain::Runtime, cbids::RUNTIME)),
            kind::SYNCHRONIZATION => (sync::NEED, Self::synchronization),
            kind::OVERHEAD => (overhead::NEED, Self::overhead),
            kind::GRAPH_TRACE => (graph::NEED, Self::graph),
            kind::DEVICE => (device::NEED, Self::device),
            kind::CONTEXT => (context::NEED, Self::context),
            kind::STREAM => (stream::NEED, Self::stream),
            _ => {
                self.header().unknown_kind.store(kind, Relaxed);
                self.header().unknown_kinds.fetch_add(1, Relaxed);
                return;
            }
        };
        if raw.bytes.len() < need {
            return self.invalid(kind, InvalidReason::Truncated, (0, 0), 0);
        }
        write(self, raw);
    }

    fn invalid(&self, kind: u32, reason: InvalidReason, (start_ns, end_ns): (u64, u64), correlation: u32) {
        let seen_ns = clock::monotonic_ns();
        let reason = reason as u32;
        self.ring.write(&InvalidRecord {
            start_ns,
            end_ns,
            seen_ns,
            kind,
            reason,
            correlation,
            reserved: [0; 3],
        });
    }

    /// The times of a record, if they are some; else it is noted as invalid.
    fn times(&self, raw: Raw<'_>, start: usize, end: usize, correlation: u32) -> Option<(u64, u64)> {
        let times = (raw.u64(start), raw.u64(end));
        match fault(times.0, times.1) {
            None => Some(times),
            Some(InvalidReason::Untimed | InvalidReason::Unfinished) if self.last_flush.load(Relaxed) => None,
            Some(reason) => {
                self.invalid(raw.u32(0), reason, times, correlation);
                None
            }
        }
    }

    fn kernel(&self, raw: Raw<'_>) {
        self.header().kernels.fetch_add(1, Relaxed);
        let correlation = raw.u32(kernel::CORRELATION);
        let Some((start_ns, end_ns)) = self.times(raw, kernel::START, kernel::END, correlation) else {
            return;
        };
        // SAFETY: the layout of this version has the name there (`bind` checked the version), and CUPTI keeps it.
        let name = unsafe { raw.text(kernel::NAME, NAME_LOOK_BYTES) };
        self.ring.write(&KernelRecord {
            start_ns,
            end_ns,
            name: self.names.intern(name, &self.ring),
            graph_node: raw.u64(kernel::GRAPH_NODE),
            correlation,
            device: raw.u32(kernel::DEVICE),
            context: raw.u32(kernel::CONTEXT),
            stream: raw.u32(kernel::STREAM),
            graph: raw.u32(kernel::GRAPH),
            grid: [kernel::GRID_X, kernel::GRID_Y, kernel::GRID_Z].map(|offset| raw.u32(offset)),
            block: [kernel::BLOCK_X, kernel::BLOCK_Y, kernel::BLOCK_Z].map(|offset| raw.u32(offset)),
            channel: raw.u32(kernel::CHANNEL),
        });
    }

    fn copy(&self, raw: Raw<'_>) {
        let correlation = raw.u32(memcpy::CORRELATION);
        let Some((start_ns, end_ns)) = self.times(raw, memcpy::START, memcpy::END, correlation) else {
            return;
        };
        let device = raw.u32(memcpy::DEVICE);
        self.ring.write(&CopyRecord {
            start_ns,
            end_ns,
            bytes: raw.u64(memcpy::BYTES),
            graph_node: raw.u64(memcpy::GRAPH_NODE),
            correlation,
            device,
            context: raw.u32(memcpy::CONTEXT),
            stream: raw.u32(memcpy::STREAM),
            graph: raw.u32(memcpy::GRAPH),
            source_device: device,
            target_device: device,
            copy_kind: raw.u8(memcpy::COPY_KIND),
            source_kind: raw.u8(memcpy::SOURCE_KIND),
            target_kind: raw.u8(memcpy::TARGET_KIND),
            flags: raw.u8(memcpy::FLAGS) & copy_flags::ASYNC,
            channel: raw.u32(memcpy::CHANNEL),
            reserved: 0,
        });
    }

    fn peer_copy(&self, raw: Raw<'_>) {
        let correlation = raw.u32(peer::CORRELATION);
        let Some((start_ns, end_ns)) = self.times(raw, peer::START, peer::END, correlation) else { return };
        self.ring.write(&CopyRecord {
            start_ns,
            end_ns,
            bytes: raw.u64(peer::BYTES),
            graph_node: raw.u64(peer::GRAPH_NODE),
            correlation,
            device: raw.u32(peer::DEVICE),
            context: raw.u32(peer::CONTEXT),
            stream: raw.u32(peer::STREAM),
            graph: raw.u32(peer::GRAPH),
            source_device: raw.u32(peer::SOURCE_DEVICE),
            target_device: raw.u32(peer::TARGET_DEVICE),
            copy_kind: raw.u8(peer::COPY_KIND),
            source_kind: raw.u8(peer::SOURCE_KIND),
            target_kind: raw.u8(peer::TARGET_KIND),
            flags: raw.u8(peer::FLAGS) & copy_flags::ASYNC | copy_flags::PEER,
            channel: raw.u32(peer::CHANNEL),
            reserved: 0,
        });
    }

    fn memset(&self, raw: Raw<'_>) {
        let correlation = raw.u32(memset::CORRELATION);
        let Some((start_ns, end_ns)) = self.times(raw, memset::START, memset::END, correlation) else {
            return;
        };
        self.ring.write(&MemsetRecord {
            start_ns,
            end_ns,
            bytes: raw.u64(memset::BYTES),
            graph_node: raw.u64(memset::GRAPH_NODE),
            correlation,
            device: raw.u32(memset::DEVICE),
            context: raw.u32(memset::CONTEXT),
            stream: raw.u32(memset::STREAM),
            graph: raw.u32(memset::GRAPH),
            value: raw.u32(memset::VALUE),
            flags: raw.u16(memset::FLAGS).into(),
            memory_kind: raw.u16(memset::MEMORY_KIND).into(),
        });
    }

    fn graph(&self, raw: Raw<'_>) {
        let correlation = raw.u32(graph::CORRELATION);
        let Some((start_ns, end_ns)) = self.times(raw, graph::START, graph::END, correlation) else { return };
        self.ring.write(&GraphRecord {
            start_ns,
            end_ns,
            correlation,
            device: raw.u32(graph::DEVICE),
            context: raw.u32(graph::CONTEXT),
            stream: raw.u32(graph::STREAM),
            graph: raw.u32(graph::GRAPH),
            reserved: 0,
        });
    }

    fn call(&self, raw: Raw<'_>, domain: ApiDomain, collected: &[u16]) {
        let cbid = raw.u32(api::CBID);
        if !cbids::is_collected(collected, cbid) {
            return;
        }
        let correlation = raw.u32(api::CORRELATION);
        let result = raw.u32(api::RESULT);
        if domain == ApiDomain::Driver && result == 0 && cbids::is_collected(cbids::DRIVER_LAUNCHES, cbid) {
            self.header().launches.fetch_add(1, Relaxed);
        }
        let Some((start_ns, end_ns)) = self.times(raw, api::START, api::END, correlation) else { return };
        self.ring.write(&ApiRecord {
            start_ns,
            end_ns,
            domain: domain as u32,
            cbid,
            thread: raw.u32(api::THREAD),
            correlation,
            result,
            reserved: 0,
        });
    }

    fn synchronization(&self, raw: Raw<'_>) {
        let correlation = raw.u32(sync::CORRELATION);
        let Some((start_ns, end_ns)) = self.times(raw, sync::START, sync::END, correlation) else { return };
        self.ring.write(&SyncRecord {
            start_ns,
            end_ns,
            kind: raw.u32(sync::KIND),
            correlation,
            context: raw.u32(sync::CONTEXT),
            stream: raw.u32(sync::STREAM),
            event: raw.u32(sync::EVENT),
            reserved: 0,
        });
    }

    fn overhead(&self, raw: Raw<'_>) {
        let correlated =
            self.version >= Version::OVERHEAD_CORRELATION && raw.bytes.len() >= overhead::CORRELATION + 4;
        let correlation = if correlated { raw.u32(overhead::CORRELATION) } else { 0 };
        let Some((start_ns, end_ns)) = self.times(raw, overhead::START, overhead::END, correlation) else {
            return;
        };
        let of_thread = raw.u32(overhead::OBJECT_KIND) == OBJECT_THREAD;
        self.ring.write(&OverheadRecord {
            start_ns,
            end_ns,
            kind: raw.u32(overhead::KIND),
            thread: if of_thread { raw.u32(overhead::THREAD) } else { 0 },
            correlation,
            flags: if of_thread { overhead_flags::THREAD } else { 0 }
                | if correlated { overhead_flags::CORRELATION } else { 0 },
            reserved: 0,
        });
    }

    fn device(&self, raw: Raw<'_>) {
        let is_mig = raw.u8(device::IS_MIG) != 0;
        let mut uuid = [0; 16];
        let at = if is_mig { device::MIG_UUID } else { device::UUID };
        if let Some(bytes) = raw.bytes.get(at..at + 16) {
            uuid.copy_from_slice(bytes);
        }
        // SAFETY: as for a kernel's name.
        let name = unsafe { raw.text(device::NAME, DEVICE_NAME_MAX_BYTES) };
        let record = DeviceRecord {
            uuid,
            memory_bytes: raw.u64(device::MEMORY_BYTES),
            device: raw.u32(device::ID),
            multiprocessors: raw.u32(device::MULTIPROCESSORS),
            capability_major: raw.u32(device::CAPABILITY_MAJOR),
            capability_minor: raw.u32(device::CAPABILITY_MINOR),
            copy_engines: raw.u32(device::COPY_ENGINES),
            is_mig: is_mig.into(),
            name_length: name.len() as u32,
            reserved: 0,
        };
        self.ring.write_with(&record, name);
    }

    fn context(&self, raw: Raw<'_>) {
        self.ring.write(&ContextRecord {
            context: raw.u32(context::ID),
            device: raw.u32(context::DEVICE),
            null_stream: raw.u16(context::NULL_STREAM).into(),
            reserved: 0,
        });
    }

    fn stream(&self, raw: Raw<'_>) {
        self.ring.write(&StreamRecord {
            context: raw.u32(stream::CONTEXT),
            stream: raw.u32(stream::ID),
            priority: raw.u32(stream::PRIORITY),
            flag: raw.u32(stream::FLAG),
            correlation: raw.u32(stream::CORRELATION),
            reserved: 0,
        });
    }
}
