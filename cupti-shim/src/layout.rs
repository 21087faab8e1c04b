//! Where CUPTI's records have their fields.
//!
//! All records that are read here only ever grew at their end from CUDA 11.7 to 13.5, so a field has one offset; one
//! that came later than 11.7 is read from the version on that has it. `tests/layouts.rs` checks every number against
//! those of 17 versions.

/// Kinds of records (`CUpti_ActivityKind`), the same in all versions.
#[allow(missing_docs, reason = "the names are CUPTI's")]
pub mod kind {
    pub const MEMCPY: u32 = 1;
    pub const MEMSET: u32 = 2;
    pub const DRIVER: u32 = 4;
    pub const RUNTIME: u32 = 5;
    pub const DEVICE: u32 = 8;
    pub const CONTEXT: u32 = 9;
    pub const CONCURRENT_KERNEL: u32 = 10;
    pub const OVERHEAD: u32 = 17;
    pub const MEMCPY2: u32 = 22;
    pub const STREAM: u32 = 37;
    pub const SYNCHRONIZATION: u32 = 38;
    pub const GRAPH_TRACE: u32 = 51;
}

/// A version as `cuptiGetVersion` tells it: 17 is CUDA 11.7, 18 is 11.8 to 12.1, 20 is 12.2, …, 28 is 12.9 update 1,
/// and from 13.0 on xxyyzz.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u32);

impl Version {
    /// The oldest that is read: CUDA 11.7.
    pub const OLDEST: Self = Self(17);
    /// CUDA 12.2: the STATE domain of call-backs.
    pub const STATE_DOMAIN: Self = Self(20);
    /// CUDA 12.3: overhead records carry a correlation id.
    pub const OVERHEAD_CORRELATION: Self = Self(21);
    /// CUDA 12.5: API calls are selected one by one.
    pub const SELECTED_CALLS: Self = Self(23);
    /// CUDA 12.6: a process may replay graphs that it made before CUPTI was there.
    pub const LATE_GRAPHS: Self = Self(24);
    /// CUDA 12.8: synchronisation records of queries can be left out.
    pub const ALL_SYNC_RECORDS: Self = Self(26);
    /// CUDA 12.9: CUPTI bears a NULL buffer.
    pub const NULL_BUFFER: Self = Self(27);
    /// CUDA 13.2: CUPTI tells the sizes of its records.
    pub const STRUCT_SIZE: Self = Self(130_200);
    /// CUDA 13.3: several subscribers, with names.
    pub const NAMED_SUBSCRIBERS: Self = Self(130_300);
    /// The first that may differ in any way.
    pub const UNKNOWN: Self = Self(140_000);
}

/// Byte offsets of fields, and `NEED`: how much of a record must lie within its buffer.
macro_rules! fields {
    ($(#[doc = $doc:literal])* $module:ident, need $need:literal: $($field:ident = $offset:literal,)*) => {
        $(#[doc = $doc])*
        #[allow(missing_docs, reason = "the names are those of CUPTI's fields")]
        pub mod $module {
            /// Bytes that are read.
            pub const NEED: usize = $need;
            $( pub const $field: usize = $offset; )*
        }
    };
}

fields! {
    /// `CUpti_ActivityKernel7` and later.
    kernel, need 176:
    START = 16, END = 24, DEVICE = 40, CONTEXT = 44, STREAM = 48, GRID_X = 52, GRID_Y = 56, GRID_Z = 60,
    BLOCK_X = 64, BLOCK_Y = 68, BLOCK_Z = 72, CORRELATION = 92, NAME = 104, GRAPH_NODE = 144, GRAPH = 156,
    CHANNEL = 168,
}
fields! {
    /// `CUpti_ActivityMemcpy5` and later.
    memcpy, need 84:
    COPY_KIND = 4, SOURCE_KIND = 5, TARGET_KIND = 6, FLAGS = 7, BYTES = 8, START = 16, END = 24, DEVICE = 32,
    CONTEXT = 36, STREAM = 40, CORRELATION = 44, GRAPH_NODE = 64, GRAPH = 72, CHANNEL = 76,
}
fields! {
    /// `CUpti_ActivityMemcpyPtoP4`.
    peer, need 92:
    COPY_KIND = 4, SOURCE_KIND = 5, TARGET_KIND = 6, FLAGS = 7, BYTES = 8, START = 16, END = 24, DEVICE = 32,
    CONTEXT = 36, STREAM = 40, SOURCE_DEVICE = 44, TARGET_DEVICE = 52, CORRELATION = 60, GRAPH_NODE = 72,
    GRAPH = 80, CHANNEL = 84,
}
fields! {
    /// `CUpti_ActivityMemset4` and later.
    memset, need 84:
    VALUE = 4, BYTES = 8, START = 16, END = 24, DEVICE = 32, CONTEXT = 36, STREAM = 40, CORRELATION = 44,
    FLAGS = 48, MEMORY_KIND = 50, GRAPH_NODE = 64, GRAPH = 72,
}
fields! {
    /// `CUpti_ActivityAPI`.
    api, need 40:
    CBID = 4, START = 8, END = 16, THREAD = 28, CORRELATION = 32, RESULT = 36,
}
fields! {
    /// `CUpti_ActivitySynchronization` and later.
    sync, need 40:
    KIND = 4, START = 8, END = 16, CORRELATION = 24, CONTEXT = 28, STREAM = 32, EVENT = 36,
}
fields! {
    /// `CUpti_ActivityOverhead` and later. The correlation id is there from [`Version::OVERHEAD_CORRELATION`] on.
    overhead, need 40:
    KIND = 4, OBJECT_KIND = 8, THREAD = 16, START = 24, END = 32, CORRELATION = 40,
}
fields! {
    /// `CUpti_ActivityGraphTrace` and later.
    graph, need 40:
    CORRELATION = 4, START = 8, END = 16, DEVICE = 24, GRAPH = 28, CONTEXT = 32, STREAM = 36,
}
fields! {
    /// `CUpti_ActivityDevice4` and later.
    device, need 176:
    MEMORY_BYTES = 16, COPY_ENGINES = 40, MULTIPROCESSORS = 44, CAPABILITY_MAJOR = 104, CAPABILITY_MINOR = 108,
    ID = 112, UUID = 120, NAME = 136, IS_MIG = 145, MIG_UUID = 160,
}
fields! {
    /// `CUpti_ActivityContext` and later.
    context, need 16:
    ID = 4, DEVICE = 8, NULL_STREAM = 14,
}
fields! {
    /// `CUpti_ActivityStream`.
    stream, need 24:
    CONTEXT = 4, ID = 8, PRIORITY = 12, FLAG = 16, CORRELATION = 20,
}

/// The kinds whose sizes are compared with what CUPTI says of itself, with what is needed of them.
pub const SIZES: [(u32, usize); 11] = [
    (kind::CONCURRENT_KERNEL, kernel::NEED),
    (kind::MEMCPY, memcpy::NEED),
    (kind::MEMCPY2, peer::NEED),
    (kind::MEMSET, memset::NEED),
    (kind::DRIVER, api::NEED),
    (kind::RUNTIME, api::NEED),
    (kind::SYNCHRONIZATION, sync::NEED),
    (kind::OVERHEAD, overhead::NEED + 8),
    (kind::DEVICE, device::NEED),
    (kind::CONTEXT, context::NEED),
    (kind::STREAM, stream::NEED),
];

/// `CUpti_ActivityObjectKind` of a thread.
pub const OBJECT_THREAD: u32 = 2;
