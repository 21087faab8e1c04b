//! Lost time is unknown, never idle, never blamed.

use super::scene::{Scene, us};
use crate::event::Pid;

#[test]
fn lost_events_cut_causes() {
    let mut scene = Scene::with_gap(3000);
    scene.loss("ring.off_cpu", 1500, 2000);
    scene.loss("shim.ring", 1800, 2200);
    scene.loss("ring.block", 5000, 6000);
    assert_eq!(
        scene.told()[..4],
        [
            "1000-1500 host.cpu.user /usr/bin/python3",
            "1500-2000 unknown.lost_events ring.off_cpu",
            "2000-2200 unknown.lost_events shim.ring",
            "2200-2985 host.cpu.user /usr/bin/python3",
        ]
    );
    let segment = &scene.segments()[1];
    assert_eq!((segment.pid, segment.tid), (None, None));
    assert!(segment.path.is_empty() && segment.evidence.is_empty());
}

#[test]
fn losses_that_hide_no_cause_take_nothing() {
    let mut scene = Scene::with_gap(3000);
    let told = scene.told();
    for source in ["syscall_counts", "ring.object", "irq_reset", "irq_depth"] {
        scene.loss(source, 0, 9000);
    }
    // Of a process that does not use this device.
    scene.loss("shim.ring", 0, 9000).pid = Some(Pid(4711));
    assert_eq!(scene.told(), told);
}

#[test]
fn an_op_that_contradicts_its_launch_is_unknown_not_idle() {
    let mut scene = Scene::with_gap(3000);
    // The call that launched it began 500 µs after it "started".
    scene.launch(2000, 2010, 9);
    scene.kernel(1500, 1900, 9);
    let analysis = scene.analysis();
    assert_eq!(analysis.devices[0].busy.0 / 1000, 990 + 1000);
    assert_eq!(
        scene.told()[..3],
        [
            "1000-1500 host.cpu.user /usr/bin/python3",
            "1500-2000 unknown.invalid_record gpu_ops: it starts before its own launch",
            "2000-2010 cuda.launch cuLaunchKernel",
        ]
    );
    assert_eq!(scene.timeline().invalid_ops, 1);
}

#[test]
fn invalid_records_of_the_gpu_are_named_as_such() {
    let mut scene = Scene::with_gap(3000);
    scene.loss("cupti.invalid", 1000, 3000).end_ns = us(3000);
    assert_eq!(scene.told(), ["1000-3000 unknown.invalid_record cupti.invalid"]);
}
