//! Roles come from behaviour, stages from roles.

use super::scene::{MAIN, Scene, Woken as _};
use crate::attribute::role::{Role, find_roles};
use crate::event::{Pid, Tid};

fn role(scene: &Scene, (pid, tid): (i32, i32)) -> Option<Role> {
    let timeline = scene.timeline();
    let roles = find_roles(&timeline);
    timeline.find_thread(Pid(pid), Tid(tid)).and_then(|thread| roles.get(thread))
}

#[test]
fn a_data_loader_is_known_by_whom_it_wakes() {
    let mut scene = Scene::with_gap(3000);
    // Names that say nothing: `spawn` and other frameworks have such.
    scene.thread((100, 101), "python3");
    scene.thread((100, 102), "python3");
    for (pid, parent) in [(200, 100), (201, 200), (300, 1)] {
        scene.process(pid, parent, "python3");
        scene.thread((pid, pid), "python3");
    }
    scene.off(MAIN, 1100, 2900, 2900).by((100, 101), "python3").inside("futex", 1100);
    scene.off((100, 101), 1100, 2000, 2000).by((201, 201), "python3").inside("read", 1000);
    scene.off((100, 101), 2100, 2200, 2200).by((300, 300), "python3").inside("read", 2100);
    assert_eq!(role(&scene, MAIN), Some(Role::Main));
    assert_eq!(role(&scene, (100, 101)), Some(Role::PinMemory));
    assert_eq!(role(&scene, (201, 201)), Some(Role::DataLoaderWorker));
    // The fork server between them wakes nobody; a stranger that wakes somebody is no worker; an idle thread is nothing.
    assert_eq!(role(&scene, (200, 200)), None);
    assert_eq!(role(&scene, (300, 300)), None);
    assert_eq!(role(&scene, (100, 102)), None);
    let segments = scene.segments();
    let stages: Vec<_> = segments.iter().map(|segment| (segment.tid, segment.stage.as_str())).collect();
    assert!(stages.contains(&(Some(Tid(201)), "data_loading")), "{stages:?}");
    assert!(stages.contains(&(Some(Tid(100)), "forward_backward")), "{stages:?}");
}

#[test]
fn a_thread_that_reads_files_for_the_launching_one_loads_data() {
    let mut scene = Scene::with_gap(3000);
    scene.thread((100, 101), "python3");
    scene.off(MAIN, 1100, 2900, 2900).by((100, 101), "python3").inside("futex", 1100);
    scene.syscall((100, 101), "read", 1000, 1010, ("file", "/sys/fs/cgroup/cpu.max"));
    assert_eq!(role(&scene, (100, 101)), None);
    scene.syscall((100, 101), "pread64", 1100, 2000, ("file", "/data/a"));
    assert_eq!(role(&scene, (100, 101)), Some(Role::DataLoaderWorker));
}

#[test]
fn the_other_roles() {
    let mut scene = Scene::with_gap(3000);
    for (tid, name) in
        [(101, "NCCL Progress"), (102, "saver"), (103, "http"), (104, "sim-gpu"), (105, "gtrace-shim")]
    {
        scene.thread((100, tid), name);
    }
    scene.process(90, 2, "kworker/0:1").kernel = true;
    scene.thread((90, 90), "kworker/0:1");
    scene.syscall((100, 102), "fsync", 10, 20, ("file", "/ckpt"));
    scene.syscall((100, 103), "accept4", 10, 20, ("tcp", "0.0.0.0:80"));
    let roles = [101, 102, 103, 104, 105].map(|tid| role(&scene, (100, tid)).map(Role::as_str));
    assert_eq!(
        roles,
        [Some("nccl_proxy"), Some("checkpoint"), Some("server"), Some("cuda_driver"), Some("tool")]
    );
    assert_eq!(role(&scene, (90, 90)), Some(Role::Kernel));
}

#[test]
fn a_server_without_clients_has_no_request() {
    let mut scene = Scene::with_gap(3000);
    scene.thread((100, 101), "http");
    scene.off(MAIN, 1100, 2900, 2900).by((100, 101), "http").inside("futex", 1100);
    scene.syscall((100, 101), "accept4", 500, 2850, ("tcp", "0.0.0.0:80"));
    scene
        .off((100, 101), 500, 2800, 2810)
        .by_kind("net", "10.0.0.9:999 -> 10.0.0.1:80")
        .inside("accept4", 500);
    let segments = scene.segments();
    let segment =
        segments.iter().find(|segment| segment.cause.as_str() == "app.no_request").expect("a segment");
    assert_eq!(segment.stage.as_str(), "serving");
}
