//! The eight real cases of docs/cases.md that were misdiagnosed: the popular answer has no time at all.

use super::scene::{MAIN, Scene, Woken as _};
use crate::event::DurationNs;
use crate::store::schema::GapSegment;

const WORKER: (i32, i32) = (200, 200);

/// Gap time by cause, in µs.
fn time_of(segments: &[GapSegment], cause: &str) -> i64 {
    let alike = |segment: &&GapSegment| {
        segment.cause.as_str() == cause || segment.cause.starts_with(&format!("{cause}."))
    };
    segments.iter().filter(alike).map(|segment| (segment.end_ns.0 - segment.start_ns.0) / 1000).sum()
}

/// The main thread waits in a futex within `[1100, 2900)` for a worker process.
fn waits_for_a_worker() -> Scene {
    let mut scene = Scene::with_gap(3000);
    scene.process(200, 100, "worker");
    scene.thread(WORKER, "worker");
    scene.syscall(MAIN, "futex", 1100, 2900, ("futex", "0x1000"));
    scene.off(MAIN, 1100, 2900, 2900).by(WORKER, "worker").inside("futex", 1100);
    scene
}

#[test]
fn workers_that_share_a_cpu_are_not_reading() {
    // Case 8, reported as a slow Lustre: the worker is inside a read of a file on Lustre, but all that it lacks is a CPU,
    // while others that its mask forbids idle.
    let mut scene = waits_for_a_worker();
    scene.syscall(WORKER, "pread64", 1000, 2800, ("file", "/lustre/shard.tar")).device =
        Some("lustre".into());
    for (off, on) in [(1150, 1900), (1950, 2750)] {
        let row = scene.off(WORKER, off, off, on).behind((201, 201), "worker", on - off);
        row.state = "preempted".into();
        row.allowed_cpus = Some(1);
        row.forbidden_idle_ns = Some(DurationNs((on - off) * 1000));
    }
    let segments = scene.segments();
    assert_eq!(time_of(&segments, "storage"), 0);
    assert_eq!(time_of(&segments, "host.runq.affinity"), 1550);
}

#[test]
fn a_mapped_file_in_memory_is_computing() {
    // Case 16, reported as slow mapped reads: converting the data takes the CPU; no fault waits for a disk, though one
    // does work for somebody else.
    let mut scene = Scene::with_gap(3000);
    scene.process(300, 1, "other");
    scene.request(1, (300, 300), [900, 910, 2950], "/data/other.arrow");
    scene.syscall(MAIN, "mmap", 1010, 1020, ("file", "/data/train.arrow"));
    let segments = scene.segments();
    assert_eq!(time_of(&segments, "storage") + time_of(&segments, "memory"), 0);
    assert_eq!(time_of(&segments, "host.cpu.user"), 1975);
}

#[test]
fn a_limit_on_connections_is_no_computing() {
    // Case 20, reported as a costly reward function: requests wait within the client for one of its few connections, and that
    // one for the peer.
    let mut scene = Scene::with_gap(3000);
    let io = (100, 101);
    scene.thread(io, "io");
    scene.syscall(MAIN, "futex", 1100, 2900, ("futex", "0x1000"));
    scene.off(MAIN, 1100, 2900, 2900).by(io, "io").inside("futex", 1100);
    scene.syscall(io, "recvfrom", 1000, 2880, ("tcp", "10.0.0.1:40000 -> 10.0.0.2:8000"));
    scene
        .off(io, 1000, 2880, 2880)
        .by_kind("net", "10.0.0.1:40000 -> 10.0.0.2:8000")
        .inside("recvfrom", 1000);
    // The reward function computes meanwhile, for other requests.
    scene.thread((100, 102), "reward");
    let segments = scene.segments();
    assert_eq!(time_of(&segments, "net.recv"), 1780);
    assert!(time_of(&segments, "host.cpu.user") < 250, "its own time before and after the wait");
    assert!(segments.iter().all(|segment| segment.tid.is_none_or(|tid| tid.0 != 102)));
}

#[test]
fn a_cpu_taken_by_others_is_no_quota() {
    // Case 26: another pod's transcoder has the CPU. The group has a quota, which held nobody back meanwhile.
    let mut scene = Scene::with_gap(3000);
    scene.throttled.insert("/pod".into(), 5_000_000);
    scene.processes[0].cgroup = Some("/pod".into());
    scene.off(MAIN, 1100, 1100, 2900).behind((300, 300), "ffmpeg", 1800).state = "preempted".into();
    let segments = scene.segments();
    assert_eq!(time_of(&segments, "host.runq.throttled"), 0);
    assert_eq!(time_of(&segments, "host.runq.preempted"), 1800);
}

#[test]
fn a_long_synchronisation_is_worth_what_the_device_idles() {
    // Cases 45 and 46: a call of 5 ms of which the device worked for all but the end.
    let mut scene = Scene::new();
    scene.launch(0, 5, 1);
    scene.kernel(10, 5000, 1);
    scene.call("cuStreamSynchronize", 6, 5020, 2);
    scene.launch(5030, 5040, 3);
    scene.kernel(5050, 6000, 3);
    let segments = scene.segments();
    assert_eq!(time_of(&segments, "cuda.sync"), 20);
    // All of the waiting together is what could be won, not the call's 5 ms.
    let all: i64 = segments.iter().map(|segment| (segment.end_ns.0 - segment.start_ns.0) / 1000).sum();
    assert_eq!(all, 50);
    // And where the next work was queued already, nothing at all.
    scene.api[2].start_ns = super::scene::us(7);
    scene.api[2].end_ns = super::scene::us(8);
    scene.gpu_ops[1].start_ns = super::scene::us(5000);
    assert_eq!(scene.segments(), []);
}

#[test]
fn whoever_waits_behind_compaction_waits_for_memory() {
    // Case 58, reported as a hang in the driver: who holds what this thread waits for has memory compacted meanwhile.
    let mut scene = waits_for_a_worker();
    scene.syscall(WORKER, "ioctl", 1000, 2890, ("char_device", "/dev/nvidiactl"));
    scene.stall(WORKER, "compaction", 1100, 2850);
    let segments = scene.segments();
    assert_eq!(time_of(&segments, "memory.compaction"), 1750);
    assert_eq!(time_of(&segments, "cuda") + time_of(&segments, "host.lock"), 10, "its own launch only");
}

#[test]
fn a_poll_of_the_driver_by_another_process_is_its_lock() {
    // Case 72, reported as slow launches: the launch call waits for a lock of the driver that a monitoring tool holds.
    let mut scene = Scene::with_gap(3000);
    scene.api[1].start_ns = super::scene::us(1100);
    scene.process(700, 1, "nvidia-smi").outside = true;
    scene.syscall(MAIN, "ioctl", 1150, 2950, ("char_device", "/dev/nvidia0"));
    scene.off(MAIN, 1200, 2900, 2900).by((700, 700), "nvidia-smi").inside("ioctl", 1150);
    let segments = scene.segments();
    assert_eq!(time_of(&segments, "cuda.lock"), 1700);
    let lock = segments.iter().find(|segment| segment.cause.as_str() == "cuda.lock").expect("the lock");
    assert_eq!(lock.object.as_deref(), Some("700/nvidia-smi"));
    assert_eq!(time_of(&segments, "cuda.launch"), 195, "before and after it");
}
