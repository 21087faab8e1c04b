//! The recording played again without a cause.

use super::scene::{MAIN, Scene, Woken as _};
use crate::attribute::cause::Cause;
use crate::attribute::role::Role;
use crate::attribute::timeline::Timeline;
use crate::attribute::what_if::{Key, Shares, WhatIf, what_if};
use crate::attribute::{analyze, role};

const WORKER: (i32, i32) = (200, 200);

/// Six steps of 2500 µs: a worker reads for 1000, decodes for 1500 and wakes the main thread, which launches 800 µs of work.
/// The worker does not wait for the main thread.
fn loader_bound() -> Scene {
    let mut scene = Scene::new();
    scene.process(200, 100, "worker");
    scene.thread(WORKER, "worker");
    for step in 1..=6_i64 {
        let (begin, end) = (2500 * (step - 1), 2500 * step);
        scene.syscall(WORKER, "pread64", begin, begin + 1000, ("file", "/data/a"));
        scene.request(step, WORKER, [begin, begin, begin + 1000], "/data/a");
        let read = scene.off(WORKER, begin, begin + 1000, begin + 1000);
        read.by_kind("block", "vda").inside("pread64", begin);
        read.request_id = Some(crate::event::RequestId(step));
        let wait = begin + if step == 1 { 0 } else { 20 };
        scene.syscall(MAIN, "futex", wait, end, ("futex", "0x1000"));
        scene.off(MAIN, wait, end, end).by(WORKER, "worker").inside("futex", wait);
        scene.launch(end, end + 5, step);
        scene.kernel(end + 10, end + 810, step);
    }
    scene
}

fn played(timeline: &Timeline) -> Vec<WhatIf> {
    let analysis = analyze(timeline).expect("time adds up");
    let roles = role::find_roles(timeline);
    what_if(timeline, &roles, &Shares::of(&analysis.found, timeline, &roles))
}

fn micros(what: &WhatIf) -> (Cause, i64, i64) {
    (what.key.cause, what.alone.0 / 1000, what.together.0 / 1000)
}

#[test]
fn behind_a_cause_stands_the_next_one() {
    let timeline = loader_bound().timeline();
    let list = played(&timeline);
    let worker = Some(Role::DataLoaderWorker);
    // Recorded: 13,300 µs. Without decoding the disk is left, without the disk decoding; without both the device itself.
    assert_eq!(
        list.iter().map(micros).collect::<Vec<_>>()[..2],
        [(Cause::HostCpuUser, 5_800, 5_800), (Cause::StorageReadDevice, 8_310, 4_825)]
    );
    assert_eq!(list[0].key, Key { cause: Cause::HostCpuUser, role: worker });
    assert_eq!(list[0].next.map(|(key, _)| key), Some(Key { cause: Cause::StorageReadDevice, role: worker }));
    assert_eq!(list[1].next.map(|(key, _)| key), Some(Key { cause: Cause::HostCpuUser, role: worker }));
}

#[test]
fn what_the_device_hides_brings_nothing() {
    // The worker is faster than the device: its disk is on no gap's chain, and taking it away changes nothing.
    let mut scene = Scene::new();
    scene.process(200, 100, "worker");
    scene.thread(WORKER, "worker");
    for step in 1..=6_i64 {
        let begin = 1000 * step;
        scene.launch(begin, begin + 5, step);
        scene.kernel(begin + 10, begin + 1010, step);
        scene.call("cuStreamSynchronize", begin + 6, begin + 1012, 100 + step);
    }
    let timeline = scene.timeline();
    let list = played(&timeline);
    assert!(list.iter().all(|what| what.alone.0 > 5_990_000), "{list:?}");
}
