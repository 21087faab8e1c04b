//! From records to rows.

use tracer_abi::shim::{
    ApiDomain, ApiRecord, CopyRecord, GraphRecord, KernelRecord, MemsetRecord, OverheadRecord, SyncRecord,
    copy_flags, overhead_flags,
};

use super::api_names::api_name;
use super::words::{WORDS, copy_kind, memory_kind, overhead_kind, sync_kind};
use crate::event::{ContextId, CorrelationId, DeviceId, Interval, OpId, Pid, RowId, StreamId, Text, Tid};
use crate::store::schema::{CudaApi, CudaOverhead, CudaSync, GpuOp};

/// Work of the device with nothing that only one kind has.
pub(super) fn op(
    pid: Pid,
    kind: &Text,
    name: Text,
    time: Interval,
    correlation: u32,
    context: u32,
    stream: u32,
) -> GpuOp {
    GpuOp {
        op_id: OpId(0),
        pid,
        device: DeviceId(0),
        context: ContextId(context.into()),
        stream: StreamId(stream.into()),
        kind: kind.clone(),
        name,
        start_ns: time.start,
        end_ns: time.end,
        correlation_id: CorrelationId(correlation.into()),
        graph_id: None,
        graph_node_id: None,
        bytes: None,
        copy_kind: None,
        src_kind: None,
        dst_kind: None,
        is_async: None,
        grid_x: None,
        grid_y: None,
        grid_z: None,
        block_x: None,
        block_y: None,
        block_z: None,
    }
}

/// CUPTI's 0 for "not in a graph".
fn graph(id: u32) -> Option<i64> {
    (id != 0).then(|| id.into())
}

fn node(id: u64) -> Option<i64> {
    (id != 0).then_some(id as i64)
}

pub(super) fn kernel(pid: Pid, record: &KernelRecord, name: Text, time: Interval) -> GpuOp {
    let [grid_x, grid_y, grid_z] = record.grid.map(|size| Some(size as i32));
    let [block_x, block_y, block_z] = record.block.map(|size| Some(size as i32));
    GpuOp {
        graph_id: graph(record.graph),
        graph_node_id: node(record.graph_node),
        grid_x,
        grid_y,
        grid_z,
        block_x,
        block_y,
        block_z,
        ..op(pid, &WORDS.kernel, name, time, record.correlation, record.context, record.stream)
    }
}

pub(super) fn copy(pid: Pid, record: &CopyRecord, time: Interval) -> GpuOp {
    let kind = copy_kind(record.copy_kind);
    GpuOp {
        graph_id: graph(record.graph),
        graph_node_id: node(record.graph_node),
        bytes: Some(record.bytes as i64),
        copy_kind: Some(kind.clone()),
        src_kind: Some(memory_kind(record.source_kind)),
        dst_kind: Some(memory_kind(record.target_kind)),
        is_async: Some(record.flags & copy_flags::ASYNC != 0),
        ..op(pid, &WORDS.memcpy, kind, time, record.correlation, record.context, record.stream)
    }
}

pub(super) fn memset(pid: Pid, record: &MemsetRecord, time: Interval) -> GpuOp {
    GpuOp {
        graph_id: graph(record.graph),
        graph_node_id: node(record.graph_node),
        bytes: Some(record.bytes as i64),
        dst_kind: Some(memory_kind(record.memory_kind as u8)),
        is_async: Some(record.flags & 1 != 0),
        ..op(
            pid,
            &WORDS.memset,
            WORDS.memset.clone(),
            time,
            record.correlation,
            record.context,
            record.stream,
        )
    }
}

pub(super) fn whole_graph(pid: Pid, record: &GraphRecord, time: Interval) -> GpuOp {
    let name = Text::from(format!("graph {}", record.graph));
    GpuOp {
        graph_id: graph(record.graph),
        ..op(pid, &WORDS.graph, name, time, record.correlation, record.context, record.stream)
    }
}

pub(super) fn api(
    id: i64,
    pid: Pid,
    tid: Tid,
    domain: ApiDomain,
    record: &ApiRecord,
    time: Interval,
) -> CudaApi {
    let domain_name = match domain {
        ApiDomain::Driver => &WORDS.driver,
        ApiDomain::Runtime => &WORDS.runtime,
    };
    CudaApi {
        id: RowId(id),
        pid,
        tid,
        domain: domain_name.clone(),
        name: api_name(domain, record.cbid),
        start_ns: time.start,
        end_ns: time.end,
        correlation_id: CorrelationId(record.correlation.into()),
        result: record.result as i32,
    }
}

pub(super) fn sync(id: i64, pid: Pid, record: &SyncRecord, time: Interval) -> CudaSync {
    CudaSync {
        id: RowId(id),
        pid,
        kind: sync_kind(record.kind),
        context: ContextId(record.context.into()),
        stream: (record.stream != u32::MAX).then(|| StreamId(record.stream.into())),
        event_id: (record.event != u32::MAX).then(|| record.event.into()),
        start_ns: time.start,
        end_ns: time.end,
        correlation_id: CorrelationId(record.correlation.into()),
    }
}

pub(super) fn overhead(
    id: i64,
    pid: Pid,
    tid: Option<Tid>,
    record: &OverheadRecord,
    time: Interval,
) -> CudaOverhead {
    let correlated = record.flags & overhead_flags::CORRELATION != 0 && record.correlation != 0;
    CudaOverhead {
        id: RowId(id),
        pid,
        tid,
        kind: overhead_kind(record.kind),
        start_ns: time.start,
        end_ns: time.end,
        correlation_id: correlated.then(|| CorrelationId(record.correlation.into())),
    }
}
