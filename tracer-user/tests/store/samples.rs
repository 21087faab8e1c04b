//! Rows to write.

use gtrace::event::{ContextId, CorrelationId, DeviceId, DurationNs, OpId, StreamId};
use gtrace::event::{MonoNs, Pid, RowId, Tid};
use gtrace::store::Meta;
use gtrace::store::schema::{GpuOp, Syscall};

pub fn meta() -> Meta {
    Meta { mode: "run".into(), ended: "running".into(), started_ns: 1, ..Meta::default() }
}

pub fn op(id: i64, start: i64, end: i64) -> GpuOp {
    GpuOp {
        op_id: OpId(id),
        pid: Pid(7),
        device: DeviceId(0),
        context: ContextId(1),
        stream: StreamId(7),
        kind: "kernel".into(),
        name: "spin_ns".into(),
        start_ns: MonoNs(start),
        end_ns: MonoNs(end),
        correlation_id: CorrelationId(id),
        graph_id: None,
        graph_node_id: None,
        bytes: None,
        copy_kind: None,
        src_kind: None,
        dst_kind: None,
        is_async: None,
        grid_x: Some(1),
        grid_y: Some(1),
        grid_z: Some(1),
        block_x: Some(128),
        block_y: Some(1),
        block_z: Some(1),
    }
}

pub fn syscall(id: i64, start: i64) -> Syscall {
    Syscall {
        id: RowId(id),
        pid: Pid(7),
        tid: Tid(8),
        name: "pread64".into(),
        start_ns: MonoNs(start),
        end_ns: Some(MonoNs(start + 10)),
        result: Some(4096),
        blocked_ns: DurationNs(5),
        fd: Some(3),
        object_kind: Some("file".into()),
        object: Some("/data/shard-03.tar".into()),
        device: Some("vda1".into()),
        peer: None,
        offset: Some(id * 4096),
        bytes: Some(4096),
    }
}
