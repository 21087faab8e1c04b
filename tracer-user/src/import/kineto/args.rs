//! What stands in `args` of the events of a GPU.

use super::cursor::{Cursor, Raw};

/// The members of `args` that are of use; all else is stepped over.
#[derive(Clone, Copy, Debug)]
pub struct Args<'a> {
    /// The GPU.
    pub device: Option<i64>,
    /// CUDA context. ROCm has none.
    pub context: Option<i64>,
    /// CUDA stream.
    pub stream: Option<i64>,
    /// Joins a call with its ops.
    pub correlation: Option<i64>,
    /// Bytes copied or set.
    pub bytes: Option<i64>,
    /// Graph.
    pub graph: Option<i64>,
    /// Node of the graph.
    pub graph_node: Option<i64>,
    /// Grid of a kernel.
    pub grid: Raw<'a>,
    /// Block of a kernel.
    pub block: Raw<'a>,
    /// `Stream Sync`, `Event Sync` …
    pub sync_kind: Raw<'a>,
    /// The event of a synchronisation.
    pub event: Option<i64>,
    /// `allreduce` …
    pub collective: Raw<'a>,
    /// Name of the process group.
    pub group: Raw<'a>,
    /// How many ranks it has.
    pub group_size: Option<i64>,
    /// Elements sent.
    pub elements: Option<i64>,
    /// Their type.
    pub data_type: Raw<'a>,
    /// The name of a process or thread, in events about them.
    pub name: Raw<'a>,
}

impl<'a> Args<'a> {
    /// Reads the object `raw`. What cannot be read any more is left out.
    #[must_use]
    pub fn read(raw: Raw<'a>) -> Self {
        let mut args = Self {
            device: None,
            context: None,
            stream: None,
            correlation: None,
            bytes: None,
            graph: None,
            graph_node: None,
            grid: Raw::Absent,
            block: Raw::Absent,
            sync_kind: Raw::Absent,
            event: None,
            collective: Raw::Absent,
            group: Raw::Absent,
            group_size: None,
            elements: None,
            data_type: Raw::Absent,
            name: Raw::Absent,
        };
        let Raw::Nested(bytes) = raw else { return args };
        let _ = Cursor::new(bytes).members(|key, value| match key {
            b"device" => args.device = value.integer(),
            b"context" => args.context = value.integer(),
            b"stream" => args.stream = value.integer(),
            b"correlation" => args.correlation = value.integer(),
            b"bytes" => args.bytes = value.integer(),
            b"graph id" => args.graph = value.integer(),
            b"graph node id" => args.graph_node = value.integer(),
            b"grid" => args.grid = value,
            b"block" => args.block = value,
            b"cuda_sync_kind" => args.sync_kind = value,
            b"wait_on_cuda_event_id" => args.event = value.integer(),
            b"Collective name" => args.collective = value,
            b"Process Group Name" => args.group = value,
            b"Group size" => args.group_size = value.integer(),
            b"In msg nelems" => args.elements = value.integer(),
            b"dtype" => args.data_type = value,
            b"name" => args.name = value,
            _ => {}
        });
        args
    }
}
