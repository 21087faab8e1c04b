//! Work of the device. Times are on the clock that the header names, exactly as CUPTI gave them.

use super::record::record;

record! {
    /// A kernel (CUPTI kind 10).
    pub struct KernelRecord: Kernel, 80 bytes {
        /// Start on the device.
        start_ns: u64,
        /// End on the device.
        end_ns: u64,
        /// Hash of its name; a [`super::NameRecord`] with it came before.
        name: u64,
        /// Node of the graph, 0 outside of one.
        graph_node: u64,
        /// Joins with the API call.
        correlation: u32,
        /// CUPTI's number of the device in this process.
        device: u32,
        /// Context.
        context: u32,
        /// Stream.
        stream: u32,
        /// Executable graph, 0 outside of one.
        graph: u32,
        /// Grid.
        grid: [u32; 3],
        /// Block.
        block: [u32; 3],
        /// Hardware channel (0 where the version has none).
        channel: u32,
    }
}

record! {
    /// A copy (CUPTI kinds 1 and 22).
    pub struct CopyRecord: Copy, 72 bytes {
        /// Start on the device.
        start_ns: u64,
        /// End on the device.
        end_ns: u64,
        /// Bytes copied.
        bytes: u64,
        /// Node of the graph, 0 outside of one.
        graph_node: u64,
        /// Joins with the API call.
        correlation: u32,
        /// CUPTI's number of the device in this process.
        device: u32,
        /// Context.
        context: u32,
        /// Stream.
        stream: u32,
        /// Executable graph, 0 outside of one.
        graph: u32,
        /// Peer copies: device read from; else `device`.
        source_device: u32,
        /// Peer copies: device written to; else `device`.
        target_device: u32,
        /// `CUpti_ActivityMemcpyKind`.
        copy_kind: u8,
        /// `CUpti_ActivityMemoryKind` of the source.
        source_kind: u8,
        /// `CUpti_ActivityMemoryKind` of the target.
        target_kind: u8,
        /// See [`copy_flags`].
        flags: u8,
        /// Hardware channel.
        channel: u32,
        /// 0.
        reserved: u32,
    }
}

/// Flags of a copy.
pub mod copy_flags {
    /// The call was an asynchronous one (CUPTI's own bit).
    pub const ASYNC: u8 = 1;
    /// A copy between two devices, with `source_device` and `target_device`.
    pub const PEER: u8 = 2;
}

record! {
    /// A memset (CUPTI kind 2).
    pub struct MemsetRecord: Memset, 64 bytes {
        /// Start on the device.
        start_ns: u64,
        /// End on the device.
        end_ns: u64,
        /// Bytes set.
        bytes: u64,
        /// Node of the graph, 0 outside of one.
        graph_node: u64,
        /// Joins with the API call.
        correlation: u32,
        /// CUPTI's number of the device in this process.
        device: u32,
        /// Context.
        context: u32,
        /// Stream.
        stream: u32,
        /// Executable graph, 0 outside of one.
        graph: u32,
        /// The value.
        value: u32,
        /// Bit 0: asynchronous.
        flags: u32,
        /// `CUpti_ActivityMemoryKind`.
        memory_kind: u32,
    }
}

record! {
    /// A whole graph launch (CUPTI kind 51), where CUPTI traces graphs and not their nodes.
    pub struct GraphRecord: Graph, 40 bytes {
        /// Start of its first node.
        start_ns: u64,
        /// End of its last node.
        end_ns: u64,
        /// Joins with the API call.
        correlation: u32,
        /// CUPTI's number of the device in this process.
        device: u32,
        /// Context.
        context: u32,
        /// Stream.
        stream: u32,
        /// Executable graph.
        graph: u32,
        /// 0.
        reserved: u32,
    }
}
