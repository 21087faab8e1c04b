//! Block requests: queue or device, whose requests, and through kernel threads.

use super::scene::{MAIN, Scene, Woken as _};
use crate::event::{Pid, RequestId, Tid};

/// The main thread waits in `call` on `/data/a` within `[1100, 2900)` for request 7.
fn waiting(call: &str) -> Scene {
    let mut scene = Scene::with_gap(3000);
    scene.syscall(MAIN, call, 1100, 2900, ("file", "/data/a"));
    let row = scene.off(MAIN, 1100, 2900, 2900).by_kind("block", "vda").inside(call, 1100);
    row.request_id = Some(RequestId(7));
    scene
}

fn between(scene: &Scene) -> Vec<String> {
    let told = scene.told();
    assert_eq!(told[0], "1000-1100 host.cpu.user /usr/bin/python3");
    assert_eq!(told[told.len() - 1], "2995-3000 gpu.submit_latency kernel_2");
    told[1..told.len() - 3].to_vec()
}

#[test]
fn a_wait_behind_its_own_requests_is_the_device() {
    let mut scene = waiting("pread64");
    for (number, times) in [(5, [1100, 1105, 1700]), (6, [1101, 1700, 2300]), (7, [1102, 2300, 2890])] {
        scene.request(number, MAIN, times, "/data/a");
    }
    assert_eq!(between(&scene), ["1100-2900 storage.read.device /data/a"]);
}

#[test]
fn a_read_whose_request_was_not_seen_to_end_is_inferred() {
    let told = |state: &str, call: &str| {
        let mut scene = Scene::with_gap(3000);
        scene.syscall(MAIN, call, 1100, 2900, ("file", "/data/a"));
        scene.off(MAIN, 1100, 2900, 2900).inside(call, 1100).state = state.into();
        between(&scene)
    };
    assert_eq!(told("uninterruptible", "pread64"), ["1100-2900 storage.read.device /data/a (inferred)"]);
    // What a signal could end, or is no read, may be anything.
    assert_eq!(told("interruptible", "pread64"), ["1100-2900 unknown.no_waker pread64"]);
    assert_eq!(told("uninterruptible", "ioctl"), ["1100-2900 unknown.no_waker ioctl"]);
}

#[test]
fn a_wait_behind_a_neighbours_requests_is_the_queue() {
    let mut scene = waiting("pread64");
    scene.request(6, (500, 500), [900, 1000, 2300], "/other");
    scene.request(7, MAIN, [1100, 2300, 2890], "/data/a");
    assert_eq!(
        between(&scene),
        [
            "1100-2300 storage.read.queue /data/a behind 500/submitter",
            "2300-2900 storage.read.device /data/a"
        ]
    );
    let evidence = &scene.segments()[1].evidence;
    assert!(evidence.iter().filter(|row| row.table.as_str() == "block_io").count() == 2, "{evidence:?}");
}

#[test]
fn a_neighbour_who_is_served_at_the_same_time_is_innocent() {
    let mut scene = waiting("pread64");
    scene.request(6, (500, 500), [900, 1000, 5000], "/other");
    scene.request(7, MAIN, [1100, 1102, 2890], "/data/a");
    assert_eq!(between(&scene), ["1100-2900 storage.read.device /data/a"]);
}

#[test]
fn durable_writes_are_fsync_and_metadata_is_metadata() {
    for (call, cause) in [("fsync", "storage.fsync"), ("openat", "storage.metadata"), ("execve", "host.exec")]
    {
        let mut scene = waiting(call);
        scene.request(7, MAIN, [1100, 1102, 2890], "").op = "write".into();
        assert_eq!(between(&scene), [format!("1100-2900 {cause} /data/a")]);
    }
    let mut scene = waiting("write");
    scene.request(7, MAIN, [1100, 1102, 2890], "").op = "write".into();
    assert_eq!(between(&scene), ["1100-2900 storage.write.device /data/a"]);
}

#[test]
fn a_page_fault_is_one() {
    let mut scene = Scene::with_gap(3000);
    let row = scene.off(MAIN, 1100, 2900, 2900).by_kind("block", "vda");
    row.request_id = Some(RequestId(7));
    scene.request(7, MAIN, [1100, 1102, 2890], "");
    assert_eq!(between(&scene), ["1100-2900 memory.major_fault vda"]);
}

#[test]
fn a_network_file_system_is_remote() {
    let mut scene = waiting("pread64");
    scene.syscalls.last_mut().expect("one call").device = Some("nfs4".into());
    scene.off_cpu.last_mut().expect("one row").by((90, 90), "kworker/1:0");
    scene.process(90, 2, "kworker/1:0").kernel = true;
    assert_eq!(between(&scene), ["1100-2900 storage.remote /data/a"]);
}

#[test]
fn a_request_that_is_not_recorded_is_named_by_the_call() {
    let scene = waiting("pread64");
    assert_eq!(between(&scene), ["1100-2900 storage.read.device /data/a"]);
}

#[test]
fn kernel_threads_are_hops_and_work_for_who_waits() {
    let journal = (90, 90);
    let mut scene = waiting("fsync");
    scene.process(90, 2, "jbd2/vda-8").kernel = true;
    let row = scene.off_cpu.last_mut().expect("one row");
    row.request_id = None;
    row.by(journal, "jbd2/vda-8");
    // Asleep until it was told to commit, then it waits for the disk.
    scene.off(journal, 100, 1090, 1150).by(MAIN, "python3");
    scene.off(journal, 1200, 2800, 2820).by_kind("block", "vda").request_id = Some(RequestId(7));
    scene.request(7, journal, [1190, 1195, 2790], "").op = "flush".into();
    assert_eq!(
        between(&scene),
        [
            "1100-1150 host.wake_latency CPU 0",
            "1150-1200 storage.fsync /data/a",
            "1200-2800 storage.fsync /data/a",
            "2800-2820 host.wake_latency CPU 0",
            "2820-2900 storage.fsync /data/a",
        ]
    );
    let segments = scene.segments();
    let path: Vec<_> = segments[3].path.iter().map(|hop| hop.thread.as_str()).collect();
    assert_eq!(path, ["python3", "jbd2/vda-8", "vda"]);
    assert_eq!(segments[3].stage.as_str(), "checkpoint");
}

#[test]
fn before_the_request_was_made_the_time_is_its_makers() {
    let mut scene = waiting("pread64");
    scene.thread((100, 101), "helper");
    let submitter = (100, 101);
    scene.request(7, submitter, [2000, 2002, 2890], "/data/a");
    assert_eq!(
        between(&scene),
        ["1100-2000 host.cpu.user /usr/bin/python3 (inferred)", "2000-2900 storage.read.device /data/a"]
    );
    assert_eq!((scene.segments()[1].pid, scene.segments()[1].tid), (Some(Pid(100)), Some(Tid(101))));
}
