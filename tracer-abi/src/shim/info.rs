//! What the other records refer to, and what goes wrong.

use super::record::record;

record! {
    /// A kernel's name. Its bytes follow, filled up to 8; the slot's length bounds them.
    pub struct NameRecord: Name, 16 bytes {
        /// Hash that kernels refer to.
        hash: u64,
        /// Bytes that follow, at most [`super::NAME_MAX_BYTES`].
        length: u32,
        /// 1: it was longer.
        truncated: u32,
    }
}

record! {
    /// A device (CUPTI kind 8). The bytes of its name follow, filled up to 8.
    pub struct DeviceRecord: Device, 56 bytes {
        /// UUID of the device, of its MIG instance where it is one.
        uuid: [u8; 16],
        /// Bytes of memory.
        memory_bytes: u64,
        /// CUPTI's number of it in this process.
        device: u32,
        /// Streaming multiprocessors.
        multiprocessors: u32,
        /// Compute capability, major.
        capability_major: u32,
        /// Compute capability, minor.
        capability_minor: u32,
        /// Copy engines.
        copy_engines: u32,
        /// 1: a MIG instance.
        is_mig: u32,
        /// Bytes of the name that follow, at most [`super::DEVICE_NAME_MAX_BYTES`].
        name_length: u32,
        /// 0.
        reserved: u32,
    }
}

record! {
    /// A context (CUPTI kind 9).
    pub struct ContextRecord: Context, 16 bytes {
        /// Context.
        context: u32,
        /// Its device.
        device: u32,
        /// Its default stream.
        null_stream: u32,
        /// 0.
        reserved: u32,
    }
}

record! {
    /// A stream (CUPTI kind 37).
    pub struct StreamRecord: Stream, 24 bytes {
        /// Context.
        context: u32,
        /// Stream.
        stream: u32,
        /// Priority (`i32`).
        priority: u32,
        /// `CUpti_ActivityStreamFlag`: 1 default, 2 non-blocking, 3 null.
        flag: u32,
        /// The call that made it.
        correlation: u32,
        /// 0.
        reserved: u32,
    }
}

record! {
    /// Collection began for a reader. What lies before it in the ring belongs to another.
    pub struct SessionRecord: Session, 16 bytes {
        /// The reader's token, 0: it began at load.
        token: u64,
        /// When, CLOCK_MONOTONIC of the process.
        time_ns: u64,
    }
}

/// A clock that is compared with CLOCK_MONOTONIC.
#[repr(u64)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhichClock {
    /// CLOCK_REALTIME.
    Realtime = 1,
    /// `cuptiGetTimestamp`.
    Cupti = 2,
}

record! {
    /// A bracketed reading of another clock.
    pub struct ClockRecord: Clock, 32 bytes {
        /// CLOCK_MONOTONIC of the process just before.
        before_ns: u64,
        /// The other clock.
        other_ns: u64,
        /// CLOCK_MONOTONIC of the process just after.
        after_ns: u64,
        /// [`WhichClock`] as its number.
        which: u64,
    }
}

/// What is wrong with a record of CUPTI.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InvalidReason {
    /// `start` and `end` are 0: CUPTI had no device buffer for the times.
    Untimed = 1,
    /// `end` is 0: flushed before it ended.
    Unfinished = 2,
    /// `start` is 0, `end` is not.
    NoStart = 3,
    /// `end` lies before `start`.
    EndBeforeStart = 4,
    /// The record is cut off by the end of its buffer.
    Truncated = 5,
}

impl InvalidReason {
    /// The reason for a raw number; `None` for one that this version does not know.
    #[must_use]
    pub const fn from_raw(raw: u32) -> Option<Self> {
        Some(match raw {
            1 => Self::Untimed,
            2 => Self::Unfinished,
            3 => Self::NoStart,
            4 => Self::EndBeforeStart,
            5 => Self::Truncated,
            _ => return None,
        })
    }
}

record! {
    /// A record of CUPTI that is not handed over since its times are no times.
    pub struct InvalidRecord: Invalid, 48 bytes {
        /// Its `start`.
        start_ns: u64,
        /// Its `end`.
        end_ns: u64,
        /// When the shim read it, CLOCK_MONOTONIC of the process.
        seen_ns: u64,
        /// Its CUPTI kind.
        kind: u32,
        /// [`InvalidReason`] as its number.
        reason: u32,
        /// Its correlation id, 0 where it has none.
        correlation: u32,
        /// 0.
        reserved: [u32; 3],
    }
}
