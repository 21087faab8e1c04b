//! Numbers of fields and values: protos/perfetto/trace/**.proto of <https://github.com/google/perfetto>, version 59.

/// `Trace`.
pub mod trace {
    pub const PACKET: u32 = 1;
}

/// `TracePacket`.
pub mod packet {
    pub const CLOCK_SNAPSHOT: u32 = 6;
    pub const TIMESTAMP: u32 = 8;
    pub const TRUSTED_PACKET_SEQUENCE_ID: u32 = 10;
    pub const TRACK_EVENT: u32 = 11;
    pub const INTERNED_DATA: u32 = 12;
    pub const SEQUENCE_FLAGS: u32 = 13;
    pub const TRACE_PACKET_DEFAULTS: u32 = 59;
    pub const TRACK_DESCRIPTOR: u32 = 60;

    /// `SequenceFlags`.
    pub const INCREMENTAL_STATE_CLEARED: u64 = 1;
    pub const NEEDS_INCREMENTAL_STATE: u64 = 2;
}

/// `TracePacketDefaults`.
pub mod defaults {
    pub const TIMESTAMP_CLOCK_ID: u32 = 58;
}

/// `ClockSnapshot`, its `Clock`, and `BuiltinClock`.
pub mod clock {
    pub const CLOCKS: u32 = 1;
    pub const PRIMARY_TRACE_CLOCK: u32 = 2;

    pub const CLOCK_ID: u32 = 1;
    pub const TIMESTAMP: u32 = 2;

    pub const REALTIME: u64 = 1;
    pub const MONOTONIC: u64 = 3;
}

/// `TrackDescriptor`.
pub mod track {
    pub const UUID: u32 = 1;
    pub const NAME: u32 = 2;
    pub const PROCESS: u32 = 3;
    pub const THREAD: u32 = 4;
    pub const PARENT_UUID: u32 = 5;
    pub const COUNTER: u32 = 8;
    pub const CHILD_ORDERING: u32 = 11;
    pub const SIBLING_ORDER_RANK: u32 = 12;
    pub const DESCRIPTION: u32 = 14;
    pub const PROCESS_ORDERING: u32 = 19;
    pub const THREAD_ORDERING: u32 = 20;

    /// `ChildTracksOrdering`, `ProcessOrdering`, `ThreadOrdering`: by `sibling_order_rank`.
    pub const CHILDREN_BY_RANK: u64 = 3;
    pub const PROCESSES_BY_RANK: u64 = 1;
    pub const THREADS_BY_RANK: u64 = 1;
}

/// `ProcessDescriptor`.
pub mod process {
    pub const PID: u32 = 1;
    pub const PROCESS_NAME: u32 = 6;
}

/// `ThreadDescriptor`.
pub mod thread {
    pub const PID: u32 = 1;
    pub const TID: u32 = 2;
    pub const THREAD_NAME: u32 = 5;
}

/// `CounterDescriptor`.
pub mod counter {
    pub const UNIT: u32 = 3;
    pub const UNIT_NAME: u32 = 6;

    /// `Unit`.
    pub const COUNT: u64 = 2;
}

/// `TrackEvent`.
pub mod event {
    pub const CATEGORY_IIDS: u32 = 3;
    pub const DEBUG_ANNOTATIONS: u32 = 4;
    pub const TYPE: u32 = 9;
    pub const NAME_IID: u32 = 10;
    pub const TRACK_UUID: u32 = 11;
    pub const NAME: u32 = 23;
    pub const COUNTER_VALUE: u32 = 30;
    pub const FLOW_IDS: u32 = 47;
    pub const TERMINATING_FLOW_IDS: u32 = 48;

    /// `Type`.
    pub const SLICE_BEGIN: u64 = 1;
    pub const SLICE_END: u64 = 2;
    pub const INSTANT: u64 = 3;
    pub const COUNTER: u64 = 4;
}

/// `DebugAnnotation`.
pub mod annotation {
    pub const NAME_IID: u32 = 1;
    pub const INT_VALUE: u32 = 4;
    pub const STRING_VALUE: u32 = 6;
    pub const NAME: u32 = 10;
    pub const DICT_ENTRIES: u32 = 11;
    pub const ARRAY_VALUES: u32 = 12;
    pub const STRING_VALUE_IID: u32 = 17;
}

/// `InternedData`, and what all its entries begin with.
pub mod interned {
    pub const EVENT_CATEGORIES: u32 = 1;
    pub const EVENT_NAMES: u32 = 2;
    pub const DEBUG_ANNOTATION_NAMES: u32 = 3;
    pub const DEBUG_ANNOTATION_STRING_VALUES: u32 = 29;

    pub const IID: u32 = 1;
    /// `name` of the first three, `str` (bytes) of the last.
    pub const TEXT: u32 = 2;
}
