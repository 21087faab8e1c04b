//! Collectives: who came late, and why.

use super::scene::{MAIN, Scene, Woken as _, us};
use crate::event::{ContextId, DeviceId, Pid, StreamId, Text, Tid};
use crate::store::schema::{Collective, Marker};

/// The other rank's process and main thread.
const LATE: (i32, i32) = (200, 200);

/// Two ranks. Device 0: a kernel up to 1000, then the collective from 1002 to 5100. Device 1: a kernel up to 900, then the
/// collective from 5000 to 5100, launched from 4980 to 4990.
fn scene() -> Scene {
    let mut scene = Scene::new();
    scene.process(LATE.0, 1, "python3");
    scene.thread(LATE, "python3");
    scene.launch(0, 5, 1);
    scene.kernel(10, 1000, 1);
    scene.launch(20, 25, 2);
    collective(&mut scene, 0, 1002, 2);
    on_late(&mut scene, 0, 900, 11, "kernel_11");
    call_of_late(&mut scene, 4980, 4990, 12);
    collective(&mut scene, 1, 5000, 12);
    scene
}

fn collective(scene: &mut Scene, rank: i32, start: i64, correlation: i64) {
    let name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL";
    let op = if rank == 0 {
        let op = scene.kernel(start, 5100, correlation);
        op.name = name.into();
        op.clone()
    } else {
        on_late(scene, start, 5100, correlation, name);
        scene.gpu_ops.last().expect("just pushed").clone()
    };
    scene.collectives.push(Collective {
        op_id: op.op_id,
        pid: op.pid,
        device: op.device,
        stream: op.stream,
        op: "allreduce".into(),
        communicator: Some("c0".into()),
        rank: Some(rank),
        ranks: Some(2),
        sequence: 0,
        count: None,
        data_type: None,
        bytes: None,
        start_ns: op.start_ns,
        end_ns: op.end_ns,
    });
}

fn on_late(scene: &mut Scene, start: i64, end: i64, correlation: i64, name: &str) {
    let op = scene.kernel(start, end, correlation);
    op.pid = Pid(LATE.0);
    op.device = DeviceId(1);
    op.context = ContextId(2);
    op.stream = StreamId(2);
    op.name = Text::from(name);
}

fn call_of_late(scene: &mut Scene, start: i64, end: i64, correlation: i64) {
    let call = scene.call("cuLaunchKernelEx", start, end, correlation);
    call.pid = Pid(LATE.0);
    call.tid = Tid(LATE.1);
}

/// The segments of device 0's gap in which only the collective ran.
fn told(scene: &Scene) -> Vec<String> {
    let segments = scene.segments();
    let lines = scene.told();
    segments
        .iter()
        .zip(lines)
        .filter(|(segment, _)| segment.path.iter().any(|hop| hop.thread.as_str() == "GPU 0"))
        .filter(|(segment, _)| segment.start_ns >= us(1002))
        .map(|(_, line)| line)
        .collect()
}

#[test]
fn the_wait_is_the_late_ranks_own_ledger_and_the_rest_is_transfer() {
    let mut scene = scene();
    scene.off(LATE, 1500, 4000, 4010).inside("clock_nanosleep", 1400).waker_kind = Some("timer".into());
    assert_eq!(
        told(&scene),
        [
            "1002-1500 host.cpu.user /usr/bin/python3",
            "1500-4000 host.sleep clock_nanosleep",
            "4000-4010 host.wake_latency CPU 0",
            "4010-4980 host.cpu.user /usr/bin/python3",
            "4980-4990 cuda.launch cuLaunchKernelEx",
            "4990-5000 gpu.submit_latency ncclDevKernel_AllReduce_Sum_f32_RING_LL",
            "5000-5100 comm.transfer ncclDevKernel_AllReduce_Sum_f32_RING_LL",
        ]
    );
    // Both are visible: over which rank the chain goes, and where it ends.
    let segments = scene.segments();
    let sleep = segments
        .iter()
        .find(|segment| {
            segment.cause.as_str() == "host.sleep"
                && segment.path.iter().any(|hop| hop.edge.as_deref() == Some("late rank"))
        })
        .expect("a wait for the late rank");
    let hop = sleep.path.iter().find(|hop| hop.edge.as_deref() == Some("late rank")).expect("its hop");
    assert_eq!((hop.thread.as_str(), hop.object.as_deref()), ("GPU 0", Some("rank 1")));
    assert_eq!((sleep.pid, sleep.tid), (Some(Pid(LATE.0)), Some(Tid(LATE.1))));
}

#[test]
fn a_rank_whose_gpu_is_still_computing_is_named_with_its_kernel() {
    let mut scene = scene();
    on_late(&mut scene, 900, 4970, 13, "attention");
    call_of_late(&mut scene, 10, 20, 13);
    let told = told(&scene);
    assert_eq!(told[0], "1002-4970 comm.wait_rank rank 1: attention");
    assert!(told.last().is_some_and(|line| line.starts_with("5000-5100 comm.transfer")), "{told:?}");
}

#[test]
fn without_all_ranks_nothing_is_told_apart() {
    let mut scene = scene();
    scene.collectives.pop();
    assert_eq!(told(&scene), ["1002-5100 comm.wait_or_transfer ncclDevKernel_AllReduce_Sum_f32_RING_LL"]);
}

#[test]
fn two_collectives_that_wait_for_each_other_end() {
    let mut scene = scene();
    // On device 1 another collective runs meanwhile, whose last rank is device 0.
    for (rank, start) in [(1, 905), (0, 1001)] {
        collective(&mut scene, rank, start, 30 + i64::from(rank));
        scene.gpu_ops.last_mut().expect("just pushed").end_ns = us(5050);
        let row = scene.collectives.last_mut().expect("just pushed");
        row.end_ns = us(5050);
        row.communicator = Some("c1".into());
    }
    let analysis = scene.analysis();
    assert!(analysis.found.gaps.iter().all(|gap| !analysis.found.segments_of(gap).is_empty()));
}

#[test]
fn making_a_communicator_is_named_in_whatever_state_the_thread_is() {
    let mut scene = Scene::with_gap(3000);
    scene.off(MAIN, 1300, 2500, 2510).inside("futex", 1290).by(LATE, "python3");
    scene.markers.push(Marker {
        id: crate::event::RowId(77),
        pid: Pid(MAIN.0),
        tid: Tid(MAIN.1),
        domain: "NCCL".into(),
        name: "ncclCommSplit".into(),
        start_ns: us(1200),
        end_ns: us(2700),
    });
    let told = scene.told();
    assert!(told.contains(&"1200-2700 comm.init ncclCommSplit".to_owned()), "{told:?}");
    assert!(told.iter().any(|line| line.starts_with("2700-2985 host.cpu.user")), "{told:?}");
    assert!(told.iter().any(|line| line.starts_with("1000-1200 host.cpu.user")), "{told:?}");
}
