//! What the host did, as CUPTI saw it.

use super::record::record;

/// Which API a call belongs to.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ApiDomain {
    /// libcuda.
    Driver = 1,
    /// libcudart.
    Runtime = 2,
}

impl ApiDomain {
    /// The domain for a raw number; `None` for one that this version does not know.
    #[must_use]
    pub const fn from_raw(raw: u32) -> Option<Self> {
        match raw {
            1 => Some(Self::Driver),
            2 => Some(Self::Runtime),
            _ => None,
        }
    }
}

record! {
    /// A call of the driver or runtime API (CUPTI kinds 4 and 5).
    pub struct ApiRecord: Api, 40 bytes {
        /// Entry.
        start_ns: u64,
        /// Return.
        end_ns: u64,
        /// [`ApiDomain`] as its number.
        domain: u32,
        /// CUPTI's number of the function within the domain.
        cbid: u32,
        /// Thread id in the process's own pid namespace.
        thread: u32,
        /// Joins with the GPU work.
        correlation: u32,
        /// `CUresult` or `cudaError_t`.
        result: u32,
        /// 0.
        reserved: u32,
    }
}

record! {
    /// A synchronisation (CUPTI kind 38).
    pub struct SyncRecord: Sync, 40 bytes {
        /// Start.
        start_ns: u64,
        /// End.
        end_ns: u64,
        /// `CUpti_ActivitySynchronizationType`.
        kind: u32,
        /// Joins with the API call.
        correlation: u32,
        /// Context.
        context: u32,
        /// Stream, `u32::MAX`: none.
        stream: u32,
        /// Event, `u32::MAX`: none.
        event: u32,
        /// 0.
        reserved: u32,
    }
}

record! {
    /// CUPTI's own cost, or the driver's (CUPTI kind 17).
    pub struct OverheadRecord: Overhead, 40 bytes {
        /// Start.
        start_ns: u64,
        /// End.
        end_ns: u64,
        /// `CUpti_ActivityOverheadKind`.
        kind: u32,
        /// Thread id in the process's own pid namespace, if [`overhead_flags::THREAD`].
        thread: u32,
        /// The call during which it happened, if [`overhead_flags::CORRELATION`].
        correlation: u32,
        /// See [`overhead_flags`].
        flags: u32,
        /// 0.
        reserved: u64,
    }
}

/// Which optional fields of an overhead record hold something.
pub mod overhead_flags {
    /// `thread` does.
    pub const THREAD: u32 = 1;
    /// `correlation` does (CUDA 12.3 and newer).
    pub const CORRELATION: u32 = 2;
}
