//! Counts, busy and idle time of every real recording, to the nanosecond, against values computed by other means.

use std::collections::BTreeMap;

use gtrace::event::{Interval, MonoNs};
use gtrace::store::schema::{Gap, GpuOp};
use serde_json::Value;

use super::folder::{make, traces};

fn of_device(ops: &[GpuOp], gaps: &[Gap], device: i32) -> BTreeMap<&'static str, i64> {
    let ops: Vec<&GpuOp> = ops.iter().filter(|op| op.device.0 == device).collect();
    let count = |kind: &str| ops.iter().filter(|op| op.kind.as_str() == kind).count() as i64;
    let window = Interval {
        start: ops.iter().map(|op| op.start_ns).min().unwrap(),
        end: ops.iter().map(|op| op.end_ns).max().unwrap(),
    };
    let idle: Vec<i64> = gaps
        .iter()
        .filter(|gap| gap.device.0 == device && gap.kind.as_str() == "idle")
        .map(|gap| (gap.end_ns - gap.start_ns).0)
        .collect();
    let idle_ns: i64 = idle.iter().sum();
    BTreeMap::from([
        ("kernel", count("kernel")),
        ("memcpy", count("memcpy")),
        ("memset", count("memset")),
        // The reference calls everything busy that is not idle: exposed copies and collectives, too.
        ("busy_ns", window.length().0 - idle_ns),
        ("idle_ns", idle_ns),
        ("gaps", idle.len() as i64),
        ("gaps_ge_5us", idle.iter().filter(|length| **length >= 5_000).count() as i64),
        ("longest_gap_ns", idle.iter().copied().max().unwrap_or(0)),
    ])
}

#[test]
fn every_recording_has_the_reference_numbers() {
    let Some(folder) = traces("every_recording_has_the_reference_numbers") else { return };
    let reference: BTreeMap<String, BTreeMap<String, BTreeMap<String, i64>>> =
        serde_json::from_slice(&std::fs::read(folder.join("reference.json")).unwrap()).unwrap();
    assert!(reference.len() >= 23, "{} recordings", reference.len());
    for (file, devices) in &reference {
        let made = make(&folder.join(file));
        assert_eq!(made.imported.refused, [], "{file}: nothing of it is refused");
        assert!(made.imported.cut.is_none(), "{file}");
        let ops = made.bundle.read::<GpuOp>().unwrap();
        let gaps = made.bundle.read::<Gap>().unwrap();
        let mut found: Vec<String> = ops.iter().map(|op| op.device.to_string()).collect();
        found.sort();
        found.dedup();
        assert_eq!(found, devices.keys().cloned().collect::<Vec<_>>(), "{file}");
        for (device, expected) in devices {
            let numbers = of_device(&ops, &gaps, device.parse().unwrap());
            for (name, value) in expected {
                assert_eq!(numbers[name.as_str()], *value, "{file}, GPU {device}: {name}");
            }
        }
    }
}

#[test]
fn times_are_those_of_the_file() {
    let Some(folder) = traces("times_are_those_of_the_file") else { return };
    let made = make(&folder.join("hta_nccl_args.json.gz"));
    assert_eq!(made.imported.meta.utc_offset_ns, 1_711_964_646_000_000_000);
    assert_eq!((made.imported.rank, made.imported.world_size), (Some(0), Some(2)));
    let ops = made.bundle.read::<GpuOp>().unwrap();
    let op = ops.iter().find(|op| op.correlation_id.0 == 57_541).unwrap();
    assert_eq!(op.start_ns, MonoNs(4_458_676_983_543_183));
    assert_eq!(op.end_ns, MonoNs(4_458_676_983_584_590));
    assert_eq!((op.grid_x, op.block_x, op.stream.0, op.context.0), (Some(512), Some(512), 7, 1));
    let collectives = made.bundle.read::<gtrace::store::schema::Collective>().unwrap();
    let reduce = collectives.iter().find(|row| row.count == Some(6_637_568)).unwrap();
    assert_eq!(
        (reduce.op.as_str(), reduce.ranks, reduce.rank, reduce.bytes, reduce.communicator.as_deref()),
        ("allreduce", Some(2), Some(0), Some(26_550_272), Some("0"))
    );
}

#[test]
fn a_report_in_json_adds_up() {
    let Some(folder) = traces("a_report_in_json_adds_up") else { return };
    let made = make(&folder.join("nsys_t4_uvm.sqlite.gz"));
    let report = gtrace::report::load::report(&made.bundle, &|_| {}).unwrap();
    let json: Value = serde_json::to_value(&report).unwrap();
    assert_eq!(json["devices"][0]["imbalance_ns"], 0);
    assert_eq!(json["trust"]["uncovered_gaps"], 0);
}
