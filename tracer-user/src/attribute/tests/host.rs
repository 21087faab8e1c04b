//! What threads do: on the CPU, runnable, blocked, and the edges between them.

use super::scene::{MAIN, RECORDER, Scene, Woken as _, expect, us};
use crate::event::{DurationNs, Pid, Tid};

const WORKER: (i32, i32) = (200, 200);

/// The main thread waits in `futex` within `[1100, 2900)` and runs again at once; the caller says who wakes it.
fn waiting() -> Scene {
    let mut scene = Scene::with_gap(3000);
    scene.syscall(MAIN, "futex", 1100, 2900, ("futex", "0x1000"));
    scene
}

#[test]
fn running_is_named_by_system_call_or_user_code() {
    let mut scene = Scene::with_gap(3000);
    scene.syscall(MAIN, "pread64", 1100, 2900, ("file", "/data/a"));
    expect(&scene, &["1100-2900 host.cpu.kernel pread64 /data/a"]);
}

#[test]
fn a_task_that_woke_the_thread_answers_for_its_wait() {
    let mut scene = waiting();
    scene.process(200, 100, "worker");
    scene.thread(WORKER, "worker");
    scene.off(MAIN, 1100, 2900, 2900).by(WORKER, "worker").inside("futex", 1100);
    scene.syscall(WORKER, "clock_nanosleep", 1500, 2500, ("sleep", ""));
    scene
        .off(WORKER, 1500, 2400, 2500)
        .by_kind("timer", "hrtimer_wakeup")
        .inside("clock_nanosleep", 1500)
        .behind((300, 300), "hog", 90);
    expect(
        &scene,
        &[
            "1100-1500 host.cpu.user /usr/bin/worker",
            "1500-2400 host.sleep clock_nanosleep",
            "2400-2500 host.runq.contention 300/hog",
            "2500-2900 host.cpu.user /usr/bin/worker",
        ],
    );
}

#[test]
fn an_idle_pool_thread_is_not_blamed() {
    let mut scene = waiting();
    scene.thread((100, 101), "pool");
    scene.thread((100, 102), "pool");
    scene.off(MAIN, 1100, 2900, 2900).by((100, 101), "pool").inside("futex", 1100);
    // The other pool thread sleeps all the time, and is woken after the gap.
    scene.off((100, 102), 500, 8000, 8010).by(MAIN, "python3").inside("futex", 400);
    let told = scene.told();
    assert!(told.contains(&"1100-2900 host.cpu.user /usr/bin/python3".to_owned()), "{told:?}");
    let segments = scene.segments();
    assert!(segments.iter().all(|segment| segment.tid != Some(Tid(102))));
}

#[test]
fn the_culprit_of_a_runnable_thread_is_who_held_the_cpu() {
    type Case<'a> = (&'a dyn Fn(&mut Scene), &'a str);
    let cases: [Case; 7] = [
        (
            &|scene| drop_ref(scene.off(MAIN, 1100, 1100, 2900).behind((300, 301), "hog", 1800)),
            "host.runq.contention 300/hog",
        ),
        (
            &|scene| {
                scene.off(MAIN, 1100, 1100, 2900).behind((300, 301), "hog", 1800).state = "preempted".into();
            },
            "host.runq.preempted 300/hog",
        ),
        (
            &|scene| {
                scene.off(MAIN, 1100, 1100, 2900).behind((100, 140), "omp", 1800).state = "preempted".into();
            },
            "host.runq.oversubscribed 100/omp",
        ),
        (
            &|scene| drop_ref(scene.off(MAIN, 1100, 1100, 2900).behind((RECORDER, RECORDER), "gtrace", 1800)),
            "tool.overhead 9/gtrace",
        ),
        (
            &|scene| drop_ref(scene.off(MAIN, 1100, 1100, 2900).behind((100, 160), "gtrace-cupti", 1800)),
            "tool.overhead 100/gtrace-cupti",
        ),
        // Somebody ran for a moment, but the CPU idled nearly all the time: the task is innocent.
        (
            &|scene| {
                scene.off(MAIN, 1100, 1100, 2900).behind((300, 301), "hog", 10).idle_ns =
                    DurationNs(1_700_000);
            },
            "host.wake_latency CPU 0",
        ),
        (&|scene| drop_ref(scene.off(MAIN, 1100, 1100, 2900)), "host.wake_latency CPU 0"),
    ];
    for (make, named) in cases {
        let mut scene = Scene::with_gap(3000);
        make(&mut scene);
        expect(&scene, &[&format!("1100-2900 {named}")]);
    }
}

fn drop_ref<T>(_: T) {}

#[test]
fn an_idle_cpu_that_does_not_come_for_long_is_a_quota_only_if_one_was_used_up() {
    let mut scene = Scene::with_gap(50_000);
    let row = scene.off(MAIN, 1100, 1100, 49_000);
    row.state = "preempted".into();
    row.idle_ns = DurationNs(47_000_000);
    let unexplained = "1100-49000 unknown.not_scheduled CPU 0";
    assert_eq!(scene.told()[1], unexplained);
    let group = "/kubepods/pod1";
    // Another group's quota, and one that did not hold it back for so long.
    scene.throttled.insert(String::new(), 90_000_000);
    scene.processes[0].cgroup = Some(group.into());
    assert_eq!(scene.told()[1], unexplained);
    scene.throttled.insert(group.to_owned(), 46_000_000);
    assert_eq!(scene.told()[1], unexplained);
    scene.throttled.insert(group.to_owned(), 48_000_000);
    assert_eq!(scene.told()[1], "1100-49000 host.runq.throttled CPU 0 (inferred)");
}

#[test]
fn a_timer_is_a_sleep_or_a_wait_that_ran_out() {
    let mut scene = Scene::with_gap(3000);
    scene.syscall(MAIN, "clock_nanosleep", 1100, 2900, ("sleep", ""));
    scene.off(MAIN, 1100, 2900, 2900).by_kind("timer", "hrtimer_wakeup").inside("clock_nanosleep", 1100);
    expect(&scene, &["1100-2900 host.sleep clock_nanosleep"]);

    let mut scene = waiting();
    scene.off(MAIN, 1100, 2900, 2900).by_kind("timer", "hrtimer_wakeup").inside("futex", 1100);
    expect(&scene, &["1100-2900 host.timed_wait 0x1000"]);
}

/// A thread that wants the interpreter lock waits anew every time its time-out of 500 µs ran out.
fn waits_begun_again(objects: [&str; 3]) -> Scene {
    let mut scene = Scene::with_gap(3000);
    scene.process(200, 100, "holder");
    scene.thread(WORKER, "holder");
    for (start, end, object) in [(1100, 1600, objects[0]), (1610, 2100, objects[1]), (2110, 2900, objects[2])]
    {
        scene.syscall(MAIN, "futex", start, end, ("futex", object));
        let row = scene.off(MAIN, start, end - 2, end).inside("futex", start);
        if end == 2900 {
            row.woken_ns = Some(us(2900));
            row.by(WORKER, "holder");
        } else {
            row.by_kind("timer", "hrtimer_wakeup");
        }
    }
    scene
}

#[test]
fn a_wait_that_is_begun_again_is_one_wait() {
    let scene = waits_begun_again(["0x1000", "0x1000", "0x1000"]);
    expect(&scene, &["1100-2900 host.cpu.user /usr/bin/holder"]);
}

#[test]
fn a_wait_for_the_interpreter_lock_is_its_holders_time() {
    let mut scene = Scene::with_gap(3000);
    scene.thread((100, 101), "holder");
    scene.syscall(MAIN, "futex", 1100, 1400, ("gil", "GIL of CPython 3.11"));
    scene.off(MAIN, 1100, 1390, 1400).by_kind("timer", "hrtimer_wakeup").inside("futex", 1100);
    scene.syscall(MAIN, "futex", 1410, 2900, ("gil", "GIL of CPython 3.11"));
    scene.off(MAIN, 1410, 2900, 2900).by((100, 101), "holder").inside("futex", 1410);
    // The holder sleeps until just before it takes the lock, computes, and lets go.
    scene.off((100, 101), 500, 1080, 1090).by_kind("timer", "hrtimer_wakeup").inside("clock_nanosleep", 400);
    expect(&scene, &["1100-2900 host.cpu.user /usr/bin/python3"]);
}

#[test]
fn a_wait_for_the_interpreter_lock_that_nobody_was_seen_ending_goes_on_in_the_next() {
    for (kind, object, first) in [
        ("gil", "GIL of CPython 3.11", "1100-2900 host.cpu.user /usr/bin/holder"),
        ("futex", "0x1000", "1100-1390 unknown.no_waker futex"),
    ] {
        let mut scene = Scene::with_gap(3000);
        scene.process(200, 100, "holder");
        scene.thread(WORKER, "holder");
        scene.syscall(MAIN, "futex", 1100, 1400, (kind, object));
        scene.off(MAIN, 1100, 1390, 1400).inside("futex", 1100);
        scene.syscall(MAIN, "futex", 1410, 2900, (kind, object));
        scene.off(MAIN, 1410, 2900, 2900).by(WORKER, "holder").inside("futex", 1410);
        assert_eq!(scene.told()[1], first);
    }
}

#[test]
fn the_interpreter_lock_found_free_when_a_timed_wait_ran_out_had_no_holder_to_follow() {
    let mut scene = Scene::with_gap(3000);
    scene.syscall(MAIN, "futex", 1100, 2900, ("gil", "GIL of CPython 3.11"));
    scene.off(MAIN, 1100, 2900, 2900).by_kind("timer", "hrtimer_wakeup").inside("futex", 1100);
    expect(&scene, &["1100-2900 host.gil GIL of CPython 3.11"]);
}

#[test]
fn a_condition_variable_has_two_futex_words() {
    let scene = waits_begun_again(["0x1000", "0x1004", "0x1000"]);
    expect(&scene, &["1100-2900 host.cpu.user /usr/bin/holder"]);
}

#[test]
fn a_return_that_was_not_seen_is_unknown_unless_the_wait_went_on() {
    let mut scene = waits_begun_again(["0x1000", "0x1000", "0x1000"]);
    for row in &mut scene.off_cpu[..2] {
        row.state = "unseen".into();
        row.woken_ns = Some(row.off_ns);
        row.waker_kind = None;
    }
    expect(&scene, &["1100-2900 host.cpu.user /usr/bin/holder"]);
    let mut scene = waiting();
    scene.off(MAIN, 1100, 1100, 2900).inside("futex", 1100).state = "unseen".into();
    expect(&scene, &["1100-2900 unknown.lost_events sched_switch"]);
}

#[test]
fn waits_on_different_objects_stay_apart() {
    let scene = waits_begun_again(["0x1000", "0x2000", "0x2000"]);
    let told = scene.told();
    assert_eq!(told[1], "1100-1598 host.timed_wait 0x1000");
    assert!(told.contains(&"1610-2900 host.cpu.user /usr/bin/holder".to_owned()), "{told:?}");
}

#[test]
fn a_waker_outside_the_recording_is_a_peer() {
    let mut scene = waiting();
    scene.off(MAIN, 1100, 2900, 2900).by((700, 700), "dbus").inside("futex", 1100);
    expect(&scene, &["1100-2900 host.ipc 700/dbus"]);
}

#[test]
fn nobody_seen_is_unknown() {
    let mut scene = waiting();
    scene.off(MAIN, 1100, 2900, 2900).inside("futex", 1100);
    expect(&scene, &["1100-2900 unknown.no_waker futex"]);
    // The idle task wakes nobody by itself: the interrupt around it was missed.
    let mut scene = waiting();
    scene.off(MAIN, 1100, 2900, 2900).by((0, 0), "swapper/0").inside("futex", 1100);
    expect(&scene, &["1100-2900 unknown.no_waker futex"]);
}

#[test]
fn a_sleep_needs_nobody_to_end_it() {
    let mut scene = waiting();
    scene.off(MAIN, 1100, 2900, 2900).inside("clock_nanosleep", 1100);
    expect(&scene, &["1100-2900 host.sleep clock_nanosleep (inferred)"]);
}

#[test]
fn an_interrupt_of_unknown_purpose_is_unknown() {
    let mut scene = waiting();
    scene.off(MAIN, 1100, 2900, 2900).by_kind("irq", "irq 45 mystery").inside("futex", 1100);
    expect(&scene, &["1100-2900 unknown.interrupt irq 45 mystery"]);
}

#[test]
fn a_circle_ends_as_such() {
    let mut scene = waiting();
    scene.process(200, 100, "worker");
    scene.thread(WORKER, "worker");
    scene.off(MAIN, 1100, 2900, 2900).by(WORKER, "worker").inside("futex", 1100);
    scene.off(WORKER, 1200, 2800, 2800).by(MAIN, "python3").inside("futex", 1150);
    expect(
        &scene,
        &[
            "1100-1200 host.cpu.user /usr/bin/worker",
            "1200-2800 unknown.depth the chain closed in a circle",
            "2800-2900 host.cpu.user /usr/bin/worker",
        ],
    );
}

#[test]
fn a_chain_of_more_than_32_hops_ends_as_such() {
    let mut scene = waiting();
    scene.off(MAIN, 1100, 2900, 2900).by((200, 200), "t").inside("futex", 1100);
    for hop in 0..40 {
        let pid = 200 + hop;
        scene.process(pid, 100, "t");
        scene.thread((pid, pid), "t");
        scene.off((pid, pid), 1100, 2900, 2900).by((pid + 1, pid + 1), "t").inside("futex", 1000);
    }
    expect(&scene, &["1100-2900 unknown.depth more than 32 hops"]);
    assert_eq!(scene.segments()[1].path.len(), 33);
}

#[test]
fn stopped_is_neither_blocked_nor_running() {
    let mut scene = Scene::with_gap(3000);
    scene.off(MAIN, 1100, 2900, 2900).by((700, 700), "bash").state = "stopped".into();
    expect(&scene, &["1100-2900 host.stopped"]);
}

#[test]
fn a_thread_that_did_not_exist_is_its_makers() {
    let mut scene = waiting();
    scene.process(200, 150, "child").start_ns = us(2000);
    let thread = scene.thread(WORKER, "child");
    thread.start_ns = us(2000);
    thread.before_attach = false;
    scene.process(150, 100, "shell");
    scene.thread((150, 150), "shell");
    scene.off(MAIN, 1100, 2900, 2900).by(WORKER, "child").inside("futex", 1100);
    scene.syscall((150, 150), "clone", 1900, 2000, ("", ""));
    expect(
        &scene,
        &[
            "1100-1900 host.cpu.user /usr/bin/shell (inferred)",
            "1900-2000 host.fork clone (inferred)",
            "2000-2900 host.cpu.user /usr/bin/child",
        ],
    );
}

#[test]
fn a_thread_without_rows_is_not_recorded() {
    let mut scene = Scene::with_gap(3000);
    scene.threads.clear();
    let told = scene.told();
    assert_eq!(told[0], "1000-2985 unknown.not_recorded_thread python3");
    assert_eq!(told[1], "2985-2995 cuda.launch cuLaunchKernel (inferred)");
}

#[test]
fn time_before_the_recording_is_before_attach() {
    let mut scene = Scene::with_gap(3000);
    scene.started = 2000;
    for thread in &mut scene.threads {
        thread.start_ns = us(2000);
    }
    assert_eq!(
        scene.told()[..2],
        [
            "1000-2000 unknown.before_attach python3".to_owned(),
            "2000-2985 host.cpu.user /usr/bin/python3".to_owned(),
        ]
    );
}

#[test]
fn network_names_the_peer_and_loopback_goes_on_in_the_sender() {
    let mut scene = Scene::with_gap(3000);
    scene.syscall(MAIN, "recvfrom", 1100, 2900, ("tcp", "10.0.0.1:41532 -> 10.0.0.2:9000"));
    scene
        .off(MAIN, 1100, 2900, 2900)
        .by_kind("net", "10.0.0.2:9000 -> 10.0.0.1:41532")
        .inside("recvfrom", 1100);
    expect(&scene, &["1100-2900 net.recv 10.0.0.2:9000"]);

    // The receive softirq interrupted a compiler: it is not the sender.
    let row = scene.off_cpu.last_mut().expect("one row");
    row.waker_pid = Some(Pid(200));
    row.waker_tid = Some(Tid(200));
    row.waker_comm = Some("sender".into());
    scene.process(200, 100, "sender");
    scene.thread(WORKER, "sender");
    expect(&scene, &["1100-2900 net.recv 10.0.0.2:9000"]);

    // It was in its own sending call.
    scene.off_cpu.last_mut().expect("one row").waker_syscall = Some("sendto".into());
    expect(&scene, &["1100-2900 host.cpu.user /usr/bin/sender"]);
}

#[test]
fn connecting_sending_accepting_and_names_have_their_own_codes() {
    for (call, peer, code) in [
        ("connect", "10.0.0.2:9000", "net.connect 10.0.0.2:9000"),
        ("sendto", "10.0.0.2:9000", "net.send 10.0.0.2:9000"),
        ("recvmsg", "10.0.0.2:53", "net.dns 10.0.0.2:53"),
    ] {
        let mut scene = Scene::with_gap(3000);
        let object = format!("10.0.0.1:41532 -> {peer}");
        scene.syscall(MAIN, call, 1100, 2900, ("tcp", &object));
        let delivered = format!("{peer} -> 10.0.0.1:41532");
        scene.off(MAIN, 1100, 2900, 2900).by_kind("net", &delivered).inside(call, 1100);
        expect(&scene, &[&format!("1100-2900 {code}")]);
    }
}
