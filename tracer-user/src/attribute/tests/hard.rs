//! Cases in which an obvious rule would blame the wrong one.

use super::scene::{MAIN, Scene, Woken as _, us};
use crate::event::{StreamId, Tid};

/// A second launching thread of the GPU process.
const SECOND: (i32, i32) = (100, 101);
const THIRD: (i32, i32) = (100, 102);

#[test]
fn of_two_launching_threads_the_one_whose_work_ended_the_gap_answers() {
    let mut scene = Scene::new();
    scene.thread(SECOND, "second");
    scene.launch(0, 5, 1);
    scene.kernel(10, 1000, 1);
    // The first one waits all the while, and launches after the second.
    scene.syscall(MAIN, "futex", 100, 4000, ("futex", "0x1000"));
    scene.off(MAIN, 100, 4000, 4000).by(SECOND, "second").inside("futex", 100);
    scene.syscall(SECOND, "clock_nanosleep", 900, 2900, ("sleep", ""));
    scene.off(SECOND, 900, 2900, 2900).by_kind("timer", "hrtimer_wakeup").inside("clock_nanosleep", 900);
    scene.launch(2985, 2995, 2).tid = Tid(SECOND.1);
    scene.kernel(3000, 3500, 2).stream = StreamId(2);
    assert_eq!(
        scene.told(),
        [
            "1000-2900 host.sleep clock_nanosleep",
            "2900-2985 host.cpu.user /usr/bin/python3",
            "2985-2995 cuda.launch cuLaunchKernel",
            "2995-3000 gpu.submit_latency kernel_2",
        ]
    );
    assert!(scene.segments().iter().all(|segment| segment.tid == Some(Tid(SECOND.1))));
}

#[test]
fn a_launcher_that_waited_for_another_ones_launches_is_launch_bound() {
    let mut scene = Scene::with_gap(3000);
    scene.thread(SECOND, "second");
    scene.syscall(MAIN, "futex", 1100, 2900, ("futex", "0x1000"));
    scene.off(MAIN, 1100, 2900, 2900).by(SECOND, "second").inside("futex", 1100);
    // The launches of the second one are for later, and take their time.
    for (number, start) in [(3, 1000), (4, 1600), (5, 2200)] {
        scene.launch(start, start + 590, number).tid = Tid(SECOND.1);
        scene.kernel(5000 + start, 5100 + start, number).stream = StreamId(2);
    }
    let told = scene.told();
    let launches = told.iter().filter(|line| line.ends_with("cuda.launch cuLaunchKernel")).count();
    assert_eq!(launches, 4, "{told:?}");
    assert!(told.contains(&"1600-2190 cuda.launch cuLaunchKernel".to_owned()), "{told:?}");
}

#[test]
fn a_graph_and_a_copy_end_gaps_like_kernels() {
    let mut scene = Scene::with_gap(3000);
    scene.gpu_ops[1].kind = "graph".into();
    scene.api[1].name = "cuGraphLaunch".into();
    scene.api[1].start_ns = us(2500);
    assert_eq!(
        scene.told(),
        [
            "1000-2500 host.cpu.user /usr/bin/python3",
            "2500-2995 cuda.launch cuGraphLaunch",
            "2995-3000 gpu.submit_latency kernel_2",
        ]
    );
    let mut scene = Scene::with_gap(3000);
    scene.gpu_ops.pop();
    scene.copy(3000, 3100, 2, "pinned");
    scene.kernel(3100, 3200, 3);
    scene.api[1].name = "cuMemcpyHtoDAsync_v2".into();
    let told = scene.told();
    assert_eq!(told[0], "1000-2985 host.cpu.user /usr/bin/python3");
    assert!(told[3].starts_with("3000-3100 copy.pinned"), "{told:?}");
}

#[test]
fn a_holder_that_gets_no_cpu_is_no_computing_holder() {
    // Priority inversion: the holder of the lock is kept from its CPU by somebody who has nothing to do with it.
    let mut scene = Scene::with_gap(3000);
    scene.thread(SECOND, "holder");
    scene.syscall(MAIN, "futex", 1100, 2900, ("futex", "0x1000"));
    scene.off(MAIN, 1100, 2900, 2900).by(SECOND, "holder").inside("futex", 1100);
    scene.off(SECOND, 1200, 1200, 2800).behind((300, 300), "middle", 1600).state = "preempted".into();
    let told = scene.told();
    assert_eq!(
        told[1..4],
        [
            "1100-1200 host.cpu.user /usr/bin/python3",
            "1200-2800 host.runq.preempted 300/middle",
            "2800-2900 host.cpu.user /usr/bin/python3",
        ]
    );
}

#[test]
fn a_wake_up_of_the_whole_herd_delivered_nothing() {
    // The second thread wakes all that wait for the condition; what the main thread waits for comes from the third.
    let mut scene = Scene::with_gap(3000);
    scene.thread(SECOND, "other");
    scene.thread(THIRD, "producer");
    for (start, end, waker) in [(1100, 1505, SECOND), (1510, 2900, THIRD)] {
        scene.syscall(MAIN, "futex", start, end, ("futex", "0x1000"));
        scene.off(MAIN, start, end, end).by(waker, "waker").inside("futex", start);
    }
    scene.syscall(SECOND, "clock_nanosleep", 900, 1500, ("sleep", ""));
    scene.off(SECOND, 900, 1500, 1500).by_kind("timer", "hrtimer_wakeup").inside("clock_nanosleep", 900);
    let told_alone = scene.told();
    assert_eq!(
        told_alone[1], "1100-1500 host.sleep clock_nanosleep",
        "who wakes this one alone handed it something"
    );
    scene.thread((100, 103), "another");
    scene.syscall((100, 103), "futex", 1000, 1508, ("futex", "0x1000"));
    scene.off((100, 103), 1000, 1504, 1508).by(SECOND, "waker").inside("futex", 1000);
    let told = scene.told();
    // 1505 to 1510 lies in the wait.
    assert_eq!(told[1], "1100-2900 host.cpu.user /usr/bin/python3 (inferred)", "{told:?}");
    assert!(told.iter().all(|line| !line.contains("host.sleep")), "{told:?}");
}

#[test]
fn a_queue_that_delivers_twice_has_two_producers() {
    // The same wakes, but the main thread worked on what it got.
    let mut scene = Scene::with_gap(3000);
    scene.thread(SECOND, "other");
    scene.thread(THIRD, "producer");
    for (start, end, waker) in [(1100, 1500, SECOND), (1600, 2900, THIRD)] {
        scene.syscall(MAIN, "futex", start, end, ("futex", "0x1000"));
        scene.off(MAIN, start, end, end).by(waker, "waker").inside("futex", start);
    }
    scene.syscall(SECOND, "clock_nanosleep", 900, 1490, ("sleep", ""));
    scene.off(SECOND, 900, 1490, 1490).by_kind("timer", "hrtimer_wakeup").inside("clock_nanosleep", 900);
    let told = scene.told();
    assert_eq!(told[1], "1100-1490 host.sleep clock_nanosleep", "{told:?}");
}

#[test]
fn who_waits_for_the_end_of_a_thread_or_process_waits_for_what_it_still_did() {
    let mut scene = Scene::with_gap(3000);
    scene.thread(SECOND, "ends").end_ns = Some(us(2880));
    scene.syscall(MAIN, "futex", 1100, 2900, ("futex", "0x1000"));
    scene.off(MAIN, 1100, 2900, 2900).by(SECOND, "ends").inside("futex", 1100);
    scene.syscall(SECOND, "fsync", 900, 2000, ("file", "/out/a"));
    let told_of_thread = scene.told();
    assert_eq!(
        told_of_thread[1..4],
        [
            "1100-2000 host.cpu.kernel fsync /out/a",
            "2000-2880 host.cpu.user /usr/bin/python3",
            "2880-2900 host.cpu.kernel exit",
        ]
    );

    let mut scene = Scene::with_gap(3000);
    let child = (200, 200);
    scene.process(200, 100, "child");
    scene.thread(child, "child").end_ns = Some(us(2890));
    scene.syscall(MAIN, "wait4", 1100, 2900, ("", ""));
    scene.off(MAIN, 1100, 2900, 2900).by(child, "child").inside("wait4", 1100);
    let told_of_process = scene.told();
    assert_eq!(told_of_process[1], "1100-2890 host.cpu.user /usr/bin/child", "{told_of_process:?}");
}
