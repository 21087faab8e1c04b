//! Copies and memsets.

use std::sync::Arc;

use sim_abi::{OpInfo, OpKind};

use crate::config;
use crate::context;
use crate::device::channel::{CopyEngine, Work};
use crate::device::data::{DataJob, Place};
use crate::error::{self, Result};
use crate::memory::{self, Allocation, Kind};
use crate::stream::Stream;
use crate::submit;

/// Pageable bytes that an asynchronous copy takes over at the call, before it returns without waiting.
const STAGED: usize = 64 << 10;

/// One end of a copy.
#[derive(Clone, Copy)]
pub enum End {
    /// An address of the host.
    Host(*mut u8),
    /// An address of a device.
    Device(u64),
    /// Whatever the address turns out to be.
    Any(u64),
}

struct Resolved {
    allocation: Option<Allocation>,
    place: Place,
}

impl Resolved {
    fn new(end: End, len: usize) -> Result<Self> {
        match end {
            End::Device(address) => {
                let (allocation, place) = memory::device_range(address, len)?;
                Ok(Self { allocation: Some(allocation), place })
            }
            End::Host(address) => Self::host(address, len),
            End::Any(address) => match memory::find(address) {
                Some(allocation) if allocation.kind == Kind::Device => Self::new(End::Device(address), len),
                _ => Self::host(address as *mut u8, len),
            },
        }
    }

    fn host(address: *mut u8, len: usize) -> Result<Self> {
        let (allocation, place) = memory::host_range(address, len)?;
        Ok(Self { allocation, place })
    }

    fn kind(&self) -> Option<Kind> {
        self.allocation.as_ref().map(|a| a.kind)
    }

    /// On a device, that is: a copy from or to it is one of the device's memory.
    fn device(&self) -> Option<u32> {
        self.allocation.as_ref().filter(|a| matches!(a.kind, Kind::Device | Kind::Managed)).map(|a| a.device)
    }

    fn owner(&self, stream: &Stream) -> [u32; 2] {
        self.allocation.as_ref().map_or([stream.device, stream.context_id], |a| [a.device, a.context])
    }
}

/// Copies in the order of a stream. A call that is not asynchronous returns when the copy is over; one that is, returns
/// at once, unless pageable memory takes part.
pub fn copy(stream: &Arc<Stream>, dst: End, src: End, len: usize, is_async: bool) -> Result {
    if len == 0 {
        return Ok(());
    }
    let src = Resolved::new(src, len)?;
    let dst = Resolved::new(dst, len)?;
    let config = config::get();
    let pageable = src.kind().is_none() || dst.kind().is_none();
    let host_link = if pageable { config.pageable_bandwidth } else { config.pinned_bandwidth };
    let (copy_kind, engine, bandwidth) = match (src.device(), dst.device()) {
        (None, None) => (9, CopyEngine::Local, host_link),
        (None, Some(_)) => (1, CopyEngine::ToDevice, host_link),
        (Some(_), None) => (2, CopyEngine::ToHost, host_link),
        (Some(from), Some(to)) if from != to => (10, CopyEngine::Peer, config.peer_bandwidth),
        (Some(_), Some(_)) => (8, CopyEngine::Local, config.device_bandwidth),
    };
    let kind = if copy_kind == 10 { OpKind::PeerCopy } else { OpKind::Copy };
    let info = OpInfo {
        bytes: len as u64,
        copy_kind,
        src_kind: Kind::cupti(src.kind()),
        dst_kind: Kind::cupti(dst.kind()),
        is_async,
        src: src.owner(stream),
        dst: dst.owner(stream),
        channel: engine as u32 + 1,
        channel_type: 2,
        ..submit::describe(kind, stream)
    };
    let staged = src.kind().is_none() && len <= STAGED;
    let data = if staged {
        // SAFETY: the caller gives `len` readable bytes at the source.
        let bytes = unsafe { std::slice::from_raw_parts(src.place.address, len) };
        DataJob::Staged { bytes: Arc::from(bytes), dst: dst.place.clone() }
    } else {
        DataJob::Copy { src: src.place.clone(), dst: dst.place.clone(), len }
    };
    let duration = config.copy_ns + transfer_ns(len, bandwidth);
    let mark = submit::submit(stream, Work::Copy { engine, duration, data: Some(data) }, Some(info));
    if stream.capture().is_some() {
        return if is_async { Ok(()) } else { Err(error::CAPTURE_UNSUPPORTED) };
    }
    let to_pageable = dst.kind().is_none();
    let device_only = copy_kind == 8 || copy_kind == 10;
    let waits =
        if is_async { to_pageable || (src.kind().is_none() && !staged) } else { !staged && !device_only };
    if waits || (!is_async && to_pageable) {
        submit::wait(&[mark], &*context::current()?);
    }
    Ok(())
}

/// Fills device memory with `count` values of `width` bytes, in the order of a stream.
pub fn set(
    stream: &Arc<Stream>,
    address: u64,
    value: u32,
    width: usize,
    count: usize,
    is_async: bool,
) -> Result {
    if count == 0 {
        return Ok(());
    }
    let len = count.checked_mul(width).ok_or(error::INVALID_VALUE)?;
    if !address.is_multiple_of(width as u64) {
        return Err(error::INVALID_VALUE);
    }
    let (allocation, dst) = memory::device_range(address, len)?;
    let info = OpInfo {
        bytes: len as u64,
        value,
        dst_kind: Kind::cupti(Some(allocation.kind)),
        is_async,
        ..submit::describe(OpKind::Set, stream)
    };
    let duration = config::get().copy_ns + transfer_ns(len, config::get().device_bandwidth);
    let data = Some(DataJob::Fill { dst, value, width, count });
    submit::submit(stream, Work::Kernel { duration, data }, Some(info));
    Ok(())
}

fn transfer_ns(len: usize, bandwidth: u64) -> u64 {
    (u128::from(len as u64) * 1_000_000_000 / u128::from(bandwidth)) as u64
}
