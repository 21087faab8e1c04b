//! Every field of every record, in every version, lies where the headers of that version say: `data/layouts.csv` holds
//! what was measured from them.
#![allow(clippy::unwrap_used, reason = "a failure here is a failure of the test")]

use std::collections::HashMap;

use sim_abi::{
    ContextInfo, DeviceInfo, EventInfo, HostLaunchInfo, MemoryInfo, OpInfo, OpKind, OverheadInfo,
    OverheadKind, StreamInfo, SyncInfo, SyncKind,
};
use sim_cupti::record::{self, Record};
use sim_cupti::sizes::{KINDS, VERSIONS};

struct Row {
    version: (u32, u32),
    kind: u32,
    size: usize,
    field: String,
    offset: usize,
    bytes: usize,
}

fn rows() -> Vec<Row> {
    let parse = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        let (major, minor) = cells[0].split_once('.').unwrap();
        Row {
            version: (major.parse().unwrap(), minor.parse().unwrap()),
            kind: cells[1].parse().unwrap(),
            size: cells[2].parse().unwrap(),
            field: cells[3].to_owned(),
            offset: cells[4].parse().unwrap(),
            bytes: cells[5].parse().unwrap(),
        }
    };
    include_str!("../data/layouts.csv").lines().skip(1).map(parse).collect()
}

type Expected = (Record, HashMap<&'static str, u64>);

fn with_times(mut record: Record, start: u64, end: u64) -> Record {
    let (start_at, end_at, completed_at) = record::time_offsets(record.kind);
    for (at, value) in [(Some(start_at), start), (Some(end_at), end), (completed_at, end)] {
        if let Some(at) = at {
            record.bytes[at..at + 8].copy_from_slice(&value.to_ne_bytes());
        }
    }
    record
}

fn op(kind: OpKind) -> OpInfo {
    OpInfo {
        kind,
        device: 11,
        context: 12,
        stream: 13,
        correlation_id: 14,
        graph_id: 15,
        graph_node_id: 16,
        name: std::ptr::null(),
        grid: [17, 18, 19],
        block: [20, 21, 22],
        shared: 23,
        priority: -3,
        bytes: 24,
        value: 25,
        copy_kind: 1,
        src_kind: 2,
        dst_kind: 3,
        is_async: true,
        src: [26, 27],
        dst: [28, 29],
        channel: 30,
        channel_type: 31,
    }
}

fn device_work() -> Vec<Expected> {
    let ids = [("deviceId", 11), ("contextId", 12), ("streamId", 13), ("correlationId", 14)];
    let graph = [("graphId", 15), ("graphNodeId", 16), ("channelID", 30), ("channelType", 31)];
    let times = [("start", 1000), ("end", 2000)];
    let common = || ids.into_iter().chain(graph).chain(times);
    let copy = [("copyKind", 1), ("srcKind", 2), ("dstKind", 3), ("flags", 1), ("bytes", 24)];
    let kernel = [
        ("completed", 2000),
        ("registersPerThread", 32),
        ("gridX", 17),
        ("gridY", 18),
        ("gridZ", 19),
        ("blockX", 20),
        ("blockY", 21),
        ("blockZ", 22),
        ("dynamicSharedMemory", 23),
        ("sharedMemoryExecuted", 23),
        ("gridId", 14),
        ("name", 77),
        ("priority", u64::from((-3i32) as u32)),
    ];
    let peers = [("srcDeviceId", 26), ("srcContextId", 27), ("dstDeviceId", 28), ("dstContextId", 29)];
    let set = [("value", 25), ("bytes", 24), ("flags", 1), ("memoryKind", 3)];
    let graph_trace = [("endDeviceId", 11), ("endContextId", 12), ("graphId", 15)];
    let make = |kind: u32, info: OpKind, fields: HashMap<&'static str, u64>| {
        (with_times(record::op(kind, &op(info), 77 as *const _), 1000, 2000), fields)
    };
    vec![
        make(10, OpKind::Kernel, common().chain(kernel).collect()),
        make(1, OpKind::Copy, common().chain(copy).chain([("copyCount", 1)]).collect()),
        make(22, OpKind::PeerCopy, common().chain(copy).chain(peers).collect()),
        make(2, OpKind::Set, common().chain(set).collect()),
        make(51, OpKind::Graph, ids.into_iter().chain(times).chain(graph_trace).collect()),
    ]
}

fn host_side() -> Vec<Expected> {
    let sync = SyncInfo {
        kind: SyncKind::Stream,
        is_query: false,
        context: 1,
        stream: 2,
        event: 3,
        event_sync_id: 4,
        correlation_id: 5,
        result: 6,
        start: 7,
        end: 8,
    };
    let event = EventInfo { device: 1, context: 2, stream: 3, event: 4, event_sync_id: 5, correlation_id: 6 };
    let overhead = OverheadInfo {
        kind: OverheadKind::CommandBufferFull,
        correlation_id: 1,
        start: 2,
        end: 3,
        queue_length: 4,
        channel: 5,
        device: 6,
    };
    let mut host = HostLaunchInfo {
        device: 1,
        context: 2,
        stream: 3,
        correlation_id: 4,
        graph_id: 0,
        graph_node_id: 0,
        start: 5,
        end: 6,
    };
    let host_fields =
        [("deviceId", 1), ("contextId", 2), ("streamId", 3), ("correlationId", 4), ("start", 5), ("end", 6)];
    let process = [("processId", 8), ("threadId", 9)];
    let launch = record::host_launch(&host, [8, 9]);
    (host.graph_id, host.graph_node_id) = (10, 11);
    let node = record::host_launch(&host, [8, 9]);
    let api = [("cbid", 1), ("start", 2), ("end", 3), ("correlationId", 6), ("returnValue", 7)];
    vec![
        (record::api(1, 2, 3, [8, 9], 6, 7), api.into_iter().chain(process).collect()),
        (
            record::sync(&sync),
            HashMap::from([
                ("type", 3),
                ("contextId", 1),
                ("streamId", 2),
                ("cudaEventId", 3),
                ("cudaEventSyncId", 4),
                ("correlationId", 5),
                ("returnValue", 6),
                ("start", 7),
                ("end", 8),
            ]),
        ),
        (
            record::event(&event),
            HashMap::from([
                ("deviceId", 1),
                ("contextId", 2),
                ("streamId", 3),
                ("eventId", 4),
                ("cudaEventSyncId", 5),
                ("correlationId", 6),
            ]),
        ),
        (
            record::overhead(&overhead, [8, 9], 77 as *const _),
            HashMap::from([
                ("overheadKind", 6 << 16),
                ("objectKind", 2),
                ("objectId.pt.processId", 8),
                ("objectId.pt.threadId", 9),
                ("objectId.pt", 8 | (9 << 32)),
                ("objectId.dcs.deviceId", 8),
                ("objectId.dcs.contextId", 9),
                ("start", 2),
                ("end", 3),
                ("correlationId", 1),
                ("overheadData", 77),
            ]),
        ),
        (launch, host_fields.into_iter().chain(process).collect()),
        (
            node,
            host_fields.into_iter().chain(process).chain([("graphId", 10), ("graphNodeId", 11)]).collect(),
        ),
        (
            record::external_correlation(5, 6, 7),
            HashMap::from([("externalKind", 5), ("externalId", 6), ("correlationId", 7)]),
        ),
    ]
}

fn objects() -> Vec<Expected> {
    let device = DeviceInfo {
        name: 77 as *const _,
        uuid: [0; 16],
        memory: 1,
        bandwidth_kb_s: 2,
        clock_khz: 3,
        copy_engines: 4,
        multiprocessors: 6,
        capability: [9, 8],
    };
    let memory = MemoryInfo {
        operation: 1,
        kind: 2,
        correlation_id: 3,
        address: 4,
        bytes: 5,
        device: 6,
        context: 7,
        stream: 8,
        is_async: true,
    };
    let stream = StreamInfo { id: 1, context: 2, priority: 3, flag: 4, correlation_id: 5 };
    vec![
        (
            record::device(5, &device),
            HashMap::from([
                ("flags", 1),
                ("id", 5),
                ("globalMemorySize", 1),
                ("globalMemoryBandwidth", 2),
                ("constantMemorySize", 64 << 10),
                ("l2CacheSize", 50 << 20),
                ("numThreadsPerWarp", 32),
                ("coreClockRate", 3),
                ("numMemcpyEngines", 4),
                ("numMultiprocessors", 6),
                ("maxThreadsPerBlock", 1024),
                ("computeCapabilityMajor", 9),
                ("computeCapabilityMinor", 8),
                ("eccEnabled", 1),
                ("name", 77),
                ("isCudaVisible", 1),
                ("numTpcs", 3),
            ]),
        ),
        (
            record::context(&ContextInfo { id: 1, device: 2, null_stream: 7 }, 9),
            HashMap::from([
                ("contextId", 1),
                ("deviceId", 2),
                ("computeApiKind", 1),
                ("nullStreamId", 7),
                ("processId", 9),
            ]),
        ),
        (
            record::stream(&stream),
            HashMap::from([
                ("streamId", 1),
                ("contextId", 2),
                ("priority", 3),
                ("flag", 4),
                ("correlationId", 5),
            ]),
        ),
        (
            record::memory(&memory, 10, 11),
            HashMap::from([
                ("memoryOperationType", 1),
                ("memoryKind", 2),
                ("correlationId", 3),
                ("address", 4),
                ("bytes", 5),
                ("timestamp", 10),
                ("processId", 11),
                ("deviceId", 6),
                ("contextId", 7),
                ("streamId", 8),
                ("isAsync", 1),
            ]),
        ),
        (record::module(3, 4), HashMap::from([("contextId", 3), ("id", 4)])),
    ]
}

#[test]
fn sizes_are_those_of_the_headers() {
    let mut measured: HashMap<((u32, u32), u32), usize> = HashMap::new();
    for row in rows() {
        measured.insert((row.version, row.kind), row.size);
    }
    assert_eq!(VERSIONS.len(), 17);
    for (version, _, sizes) in VERSIONS {
        for (kind, size) in KINDS.iter().zip(sizes) {
            assert_eq!(
                measured.get(&(version, *kind)).copied().unwrap_or(0),
                size,
                "{version:?} kind {kind}"
            );
        }
    }
}

#[test]
fn fields_lie_where_the_headers_say() {
    let rows = rows();
    let mut checked = 0;
    for (record, fields) in device_work().into_iter().chain(host_side()).chain(objects()) {
        let mut seen: Vec<&str> = Vec::new();
        for row in rows.iter().filter(|row| row.kind == record.kind) {
            if row.bytes > 8 || row.field.contains(":bits") {
                continue;
            }
            let mut bytes = [0u8; 8];
            bytes[..row.bytes].copy_from_slice(&record.bytes[row.offset..row.offset + row.bytes]);
            let found = u64::from_le_bytes(bytes);
            let kind = u64::from(record.kind);
            let wanted =
                if row.field == "kind" { kind } else { fields.get(row.field.as_str()).copied().unwrap_or(0) };
            assert_eq!(
                found, wanted,
                "kind {} of {:?}: {} at {}",
                record.kind, row.version, row.field, row.offset
            );
            seen.extend(fields.keys().find(|field| **field == row.field));
            checked += 1;
        }
        for field in fields.keys() {
            assert!(seen.contains(field), "kind {}: no header has a field {field}", record.kind);
        }
    }
    assert!(checked > 3500, "{checked}");
}
