//! Every record of every CUDA version from 11.7 to 13.5 is read right: each field gets a value of its own by the
//! fixture's offsets, all else is filled with nonsense, and the ring must hold exactly those values.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::too_many_lines, reason = "a record has as many fields as it has")]

mod common;

use common::{VERSIONS, collector, layouts, parse, record};
use tracer_abi::shim::{
    ApiRecord, ContextRecord, CopyRecord, DeviceRecord, GraphRecord, InvalidReason, InvalidRecord,
    KernelRecord, MemsetRecord, NameRecord, Next, OverheadRecord, RecordKind, StreamRecord, SyncRecord,
    copy_flags, overhead_flags,
};

fn each_version(mut check: impl FnMut(&str, u32, &dyn Fn(&str, &[(&str, u64)]) -> Vec<u8>)) {
    let layouts = layouts();
    for (cuda, version) in VERSIONS {
        let make = |name: &str, values: &[(&str, u64)]| record(&layouts[&(cuda.into(), name.into())], values);
        check(cuda, version, &make);
    }
}

#[test]
fn kernels() {
    each_version(|cuda, version, make| {
        let name = c"_Z7spin_nsy";
        let (collector, mut ring) = collector(version, 64 << 10);
        let bytes = make(
            "Kernel",
            &[
                ("kind", 10),
                ("start", 1_000),
                ("end", 2_000),
                ("deviceId", 3),
                ("contextId", 4),
                ("streamId", 5),
                ("gridX", 6),
                ("gridY", 7),
                ("gridZ", 8),
                ("blockX", 9),
                ("blockY", 10),
                ("blockZ", 11),
                ("correlationId", 12),
                ("name", name.as_ptr().expose_provenance() as u64),
                ("graphNodeId", 13),
                ("graphId", 14),
                ("channelID", 15),
            ],
        );
        parse(&collector, &[bytes], 0);
        assert_eq!(ring.take(), Ok(Next::Record(RecordKind::Name)), "{cuda}");
        let hash = ring.record::<NameRecord>().unwrap().hash;
        assert_eq!(ring.tail::<NameRecord>(11), name.to_bytes());
        assert_eq!(ring.take(), Ok(Next::Record(RecordKind::Kernel)), "{cuda}");
        let expected = KernelRecord {
            start_ns: 1_000,
            end_ns: 2_000,
            name: hash,
            graph_node: 13,
            correlation: 12,
            device: 3,
            context: 4,
            stream: 5,
            graph: 14,
            grid: [6, 7, 8],
            block: [9, 10, 11],
            channel: 15,
        };
        assert_eq!(ring.record(), Some(expected), "{cuda}");
        assert_eq!(ring.take(), Ok(Next::Empty));
    });
}

#[test]
fn copies_and_memsets() {
    each_version(|cuda, version, make| {
        let (collector, mut ring) = collector(version, 64 << 10);
        let common = [
            ("copyKind", 1),
            ("srcKind", 2),
            ("dstKind", 3),
            ("flags", 1),
            ("bytes", 4_096),
            ("start", 1_000),
            ("end", 2_000),
            ("deviceId", 5),
            ("contextId", 6),
            ("streamId", 7),
            ("correlationId", 8),
            ("graphNodeId", 9),
            ("graphId", 10),
            ("channelID", 11),
            ("srcDeviceId", 12),
            ("dstDeviceId", 13),
            ("value", 14),
            ("memoryKind", 15),
        ];
        let of_kind = |kind| [&[("kind", kind)], common.as_slice()].concat();
        let records =
            [make("Memcpy", &of_kind(1)), make("MemcpyPtoP", &of_kind(22)), make("Memset", &of_kind(2))];
        parse(&collector, &records, 0);
        let copy = CopyRecord {
            start_ns: 1_000,
            end_ns: 2_000,
            bytes: 4_096,
            graph_node: 9,
            correlation: 8,
            device: 5,
            context: 6,
            stream: 7,
            graph: 10,
            source_device: 5,
            target_device: 5,
            copy_kind: 1,
            source_kind: 2,
            target_kind: 3,
            flags: copy_flags::ASYNC,
            channel: 11,
            reserved: 0,
        };
        assert_eq!(ring.take(), Ok(Next::Record(RecordKind::Copy)), "{cuda}");
        assert_eq!(ring.record(), Some(copy), "{cuda}");
        assert_eq!(ring.take(), Ok(Next::Record(RecordKind::Copy)), "{cuda}");
        let peer = CopyRecord {
            source_device: 12,
            target_device: 13,
            flags: copy_flags::ASYNC | copy_flags::PEER,
            ..copy
        };
        assert_eq!(ring.record(), Some(peer), "{cuda}");
        assert_eq!(ring.take(), Ok(Next::Record(RecordKind::Memset)), "{cuda}");
        let memset = MemsetRecord {
            start_ns: 1_000,
            end_ns: 2_000,
            bytes: 4_096,
            graph_node: 9,
            correlation: 8,
            device: 5,
            context: 6,
            stream: 7,
            graph: 10,
            value: 14,
            flags: 1,
            memory_kind: 15,
        };
        assert_eq!(ring.record(), Some(memset), "{cuda}");
    });
}

#[test]
fn what_the_host_did() {
    each_version(|cuda, version, make| {
        let (collector, mut ring) = collector(version, 64 << 10);
        let call = |kind, cbid| {
            let values = [
                ("kind", kind),
                ("cbid", cbid),
                ("start", 1_000),
                ("end", 2_000),
                ("threadId", 3),
                ("correlationId", 4),
                ("returnValue", 5),
            ];
            make("API", &values)
        };
        let sync = [
            ("kind", 38),
            ("type", 3),
            ("start", 1_000),
            ("end", 2_000),
            ("correlationId", 4),
            ("contextId", 5),
            ("streamId", 6),
            ("cudaEventId", 7),
        ];
        let overhead = [
            ("kind", 17),
            ("overheadKind", 6 << 16),
            ("objectKind", 2),
            ("objectId.pt.threadId", 3),
            ("start", 1_000),
            ("end", 2_000),
            ("correlationId", 4),
        ];
        let graph = [
            ("kind", 51),
            ("correlationId", 4),
            ("start", 1_000),
            ("end", 2_000),
            ("deviceId", 5),
            ("graphId", 6),
            ("contextId", 7),
            ("streamId", 8),
        ];
        // 120 and 125 are queries, which are left out.
        let records = [
            call(4, 307),
            call(4, 120),
            call(4, 125),
            call(5, 211),
            make("Synchronization", &sync),
            make("Overhead", &overhead),
            make("GraphTrace", &graph),
        ];
        parse(&collector, &records, 0);
        let expected = ApiRecord {
            start_ns: 1_000,
            end_ns: 2_000,
            domain: 1,
            cbid: 307,
            thread: 3,
            correlation: 4,
            result: 5,
            reserved: 0,
        };
        assert_eq!(ring.take(), Ok(Next::Record(RecordKind::Api)), "{cuda}");
        assert_eq!(ring.record(), Some(expected), "{cuda}");
        assert_eq!(ring.take(), Ok(Next::Record(RecordKind::Api)), "{cuda}");
        assert_eq!(ring.record(), Some(ApiRecord { domain: 2, cbid: 211, ..expected }), "{cuda}");
        assert_eq!(ring.take(), Ok(Next::Record(RecordKind::Sync)), "{cuda}");
        let expected = SyncRecord {
            start_ns: 1_000,
            end_ns: 2_000,
            kind: 3,
            correlation: 4,
            context: 5,
            stream: 6,
            event: 7,
            reserved: 0,
        };
        assert_eq!(ring.record(), Some(expected), "{cuda}");
        assert_eq!(ring.take(), Ok(Next::Record(RecordKind::Overhead)), "{cuda}");
        let (correlation, correlated) = if version >= 21 { (4, overhead_flags::CORRELATION) } else { (0, 0) };
        let expected = OverheadRecord {
            start_ns: 1_000,
            end_ns: 2_000,
            kind: 6 << 16,
            thread: 3,
            correlation,
            flags: overhead_flags::THREAD | correlated,
            reserved: 0,
        };
        assert_eq!(ring.record(), Some(expected), "{cuda}");
        assert_eq!(ring.take(), Ok(Next::Record(RecordKind::Graph)), "{cuda}");
        let expected = GraphRecord {
            start_ns: 1_000,
            end_ns: 2_000,
            correlation: 4,
            device: 5,
            context: 7,
            stream: 8,
            graph: 6,
            reserved: 0,
        };
        assert_eq!(ring.record(), Some(expected), "{cuda}");
        assert_eq!(ring.take(), Ok(Next::Empty), "{cuda}");
    });
}

#[test]
fn devices_contexts_streams() {
    each_version(|cuda, version, make| {
        let (collector, mut ring) = collector(version, 64 << 10);
        let name = c"A GPU";
        let values = [
            ("kind", 8),
            ("globalMemorySize", 1 << 36),
            ("numMemcpyEngines", 3),
            ("numMultiprocessors", 132),
            ("computeCapabilityMajor", 9),
            ("computeCapabilityMinor", 1),
            ("id", 2),
            ("name", name.as_ptr().expose_provenance() as u64),
            ("isMigEnabled", 0),
        ];
        let mut device = make("Device", &values);
        let layout = &layouts()[&(cuda.to_owned(), "Device".to_owned())];
        let at = |field: &str| layout.fields[field].0;
        device[at("uuid")..at("uuid") + 16].fill(0xAB);
        device[at("migUuid")..at("migUuid") + 16].fill(0xCD);
        let mut instance = device.clone();
        instance[at("isMigEnabled")] = 1;
        let context = make("Context", &[("kind", 9), ("contextId", 1), ("deviceId", 2), ("nullStreamId", 7)]);
        let stream = [
            ("kind", 37),
            ("contextId", 1),
            ("streamId", 13),
            ("priority", 5),
            ("flag", 2),
            ("correlationId", 9),
        ];
        parse(&collector, &[device, instance, context, make("Stream", &stream)], 0);

        let expected = DeviceRecord {
            uuid: [0xAB; 16],
            memory_bytes: 1 << 36,
            device: 2,
            multiprocessors: 132,
            capability_major: 9,
            capability_minor: 1,
            copy_engines: 3,
            is_mig: 0,
            name_length: 5,
            reserved: 0,
        };
        assert_eq!(ring.take(), Ok(Next::Record(RecordKind::Device)), "{cuda}");
        assert_eq!(ring.record(), Some(expected), "{cuda}");
        assert_eq!(ring.tail::<DeviceRecord>(5), name.to_bytes(), "{cuda}");
        assert_eq!(ring.take(), Ok(Next::Record(RecordKind::Device)), "{cuda}");
        assert_eq!(ring.record(), Some(DeviceRecord { uuid: [0xCD; 16], is_mig: 1, ..expected }), "{cuda}");
        assert_eq!(ring.take(), Ok(Next::Record(RecordKind::Context)), "{cuda}");
        assert_eq!(
            ring.record(),
            Some(ContextRecord { context: 1, device: 2, null_stream: 7, reserved: 0 }),
            "{cuda}"
        );
        assert_eq!(ring.take(), Ok(Next::Record(RecordKind::Stream)), "{cuda}");
        let expected =
            StreamRecord { context: 1, stream: 13, priority: 5, flag: 2, correlation: 9, reserved: 0 };
        assert_eq!(ring.record(), Some(expected), "{cuda}");
    });
}

#[test]
fn times_that_are_none_are_noted_and_not_handed_over() {
    each_version(|cuda, version, make| {
        let (collector, mut ring) = collector(version, 64 << 10);
        let kernel = |start, end| {
            make("Kernel", &[("kind", 10), ("start", start), ("end", end), ("correlationId", 7), ("name", 0)])
        };
        parse(&collector, &[kernel(0, 0), kernel(5, 0), kernel(0, 5), kernel(5, 4), kernel(5, 5)], 0);
        for reason in [
            InvalidReason::Untimed,
            InvalidReason::Unfinished,
            InvalidReason::NoStart,
            InvalidReason::EndBeforeStart,
        ] {
            assert_eq!(ring.take(), Ok(Next::Record(RecordKind::Invalid)), "{cuda}");
            let record: InvalidRecord = ring.record().unwrap();
            assert_eq!((record.kind, record.reason, record.correlation), (10, reason as u32, 7), "{cuda}");
        }
        assert_eq!(
            ring.take(),
            Ok(Next::Record(RecordKind::Name)),
            "a kernel without a name has an empty one"
        );
        assert_eq!(ring.take(), Ok(Next::Record(RecordKind::Kernel)), "of no length, but valid");
        assert_eq!(ring.take(), Ok(Next::Empty), "{cuda}");
    });
}

#[test]
fn unknown_kinds_are_counted_and_stepped_over_and_a_cut_record_is_noted() {
    each_version(|cuda, version, make| {
        let (collector, mut ring) = collector(version, 64 << 10);
        let mut unknown = vec![0xEE; 72];
        unknown[..4].copy_from_slice(&7_777_u32.to_ne_bytes());
        let copy = make("Memcpy", &[("kind", 1), ("start", 1), ("end", 2)]);
        parse(&collector, &[unknown, copy.clone(), copy.clone()], copy.len() - 20);
        assert_eq!(ring.take(), Ok(Next::Record(RecordKind::Copy)), "{cuda}");
        assert_eq!(ring.take(), Ok(Next::Record(RecordKind::Invalid)), "{cuda}");
        let record: InvalidRecord = ring.record().unwrap();
        assert_eq!((record.kind, record.reason), (1, InvalidReason::Truncated as u32), "{cuda}");
        assert_eq!(ring.take(), Ok(Next::Empty), "{cuda}");
        assert_eq!(collector.header().unknown_kinds.load(std::sync::atomic::Ordering::Relaxed), 1, "{cuda}");
    });
}
