//! What takes a thread's time without its doing: reclaim, compaction, interrupts, limits; and connections that lose segments.

use super::scene::{AFTER, BEFORE, MAIN, Scene, Woken as _, expect};
use crate::event::DurationNs;

#[test]
fn time_in_reclaim_is_reclaim_whether_the_thread_runs_or_waits_there() {
    let mut scene = Scene::with_gap(3000);
    scene.syscall(MAIN, "pread64", 1100, 2900, ("file", "/data/a"));
    scene.stall(MAIN, "group_reclaim", 1500, 2500);
    // Reclaim writes pages out and waits for that.
    scene.request(7, MAIN, [1600, 1610, 2000], "/other").op = "write".into();
    let row = scene.off(MAIN, 1620, 2010, 2020).by_kind("block", "vda").inside("pread64", 1100);
    row.request_id = Some(crate::event::RequestId(7));
    expect(
        &scene,
        &[
            "1100-1500 host.cpu.kernel pread64 /data/a",
            "1500-1620 memory.reclaim the control group's memory",
            "1620-2010 memory.reclaim the control group's memory",
            "2010-2020 host.wake_latency CPU 0",
            "2020-2500 memory.reclaim the control group's memory",
            "2500-2900 host.cpu.kernel pread64 /data/a",
        ],
    );
}

#[test]
fn a_thread_that_sleeps_for_its_groups_memory_waits_for_no_timer_of_its_own() {
    for (freed, expected) in [
        (1095, "1100-2900 memory.reclaim the control group's memory (above memory.high) (inferred)"),
        (50, "1100-2900 host.timed_wait"),
    ] {
        let mut scene = Scene::with_gap(3000);
        scene.stall(MAIN, "group_reclaim", freed - 20, freed);
        let row = scene.off(MAIN, 1100, 2900, 2900).by_kind("timer", "process_timeout");
        row.state = "uninterruptible".into();
        let told = scene.told();
        assert!(told.iter().any(|line| line == expected), "{told:?}");
    }
}

#[test]
fn compaction_in_a_page_fault_is_told_from_computing() {
    let mut scene = Scene::with_gap(3000);
    scene.stall(MAIN, "compaction", 1100, 2900);
    expect(&scene, &["1100-2900 memory.compaction large pages"]);
}

#[test]
fn an_interrupt_takes_its_time_out_of_computing_and_nothing_else() {
    let mut scene = Scene::with_gap(3000);
    scene.interrupt(MAIN, "NET_RX", 1100, 1700);
    // Within another one, and of another thread.
    scene.interrupt(MAIN, "irq 9 eth0", 1200, 1300);
    scene.interrupt((200, 200), "NET_RX", 2000, 2500);
    assert_eq!(
        scene.told(),
        [BEFORE, "1100-1700 host.irq NET_RX", "1700-2985 host.cpu.user /usr/bin/python3", AFTER[1], AFTER[2],]
    );
}

#[test]
fn a_writer_that_is_slowed_down_waits_for_no_timer_of_its_own() {
    let mut scene = Scene::with_gap(3000);
    scene.syscall(MAIN, "write", 1100, 2900, ("file", "/data/out"));
    let row = scene.off(MAIN, 1100, 2900, 2900).by_kind("timer", "process_timeout").inside("write", 1100);
    row.throttled = Some(true);
    expect(&scene, &["1100-2900 storage.write.throttled /data/out"]);
}

#[test]
fn a_read_that_a_limit_held_back_waited_for_the_limit_and_then_for_the_device() {
    let mut scene = Scene::with_gap(3000);
    scene.syscall(MAIN, "pread64", 1100, 2900, ("file", "/data/a"));
    scene.request(7, (50, 50), [2400, 2410, 2890], "/data/a").throttled = Some(true);
    let row = scene.off(MAIN, 1100, 2900, 2900).by_kind("block", "vda").inside("pread64", 1100);
    row.request_id = Some(crate::event::RequestId(7));
    expect(&scene, &["1100-2400 storage.read.throttled /data/a", "2400-2900 storage.read.device /data/a"]);
}

#[test]
fn a_page_from_swap_space_is_no_page_of_a_file() {
    let mut scene = Scene::with_gap(3000);
    scene.request(7, MAIN, [1100, 1101, 2890], "").swap = Some(true);
    scene.off(MAIN, 1100, 2900, 2900).by_kind("block", "vda").request_id = Some(crate::event::RequestId(7));
    expect(&scene, &["1100-2900 memory.swap vda"]);
}

#[test]
fn a_mask_is_the_cause_only_if_a_forbidden_cpu_idled_all_the_while() {
    for (idle, expected) in [
        (980, "1900-2900 host.runq.affinity may run on 1 CPU"),
        (400, "1900-2900 host.runq.preempted 300/hog"),
    ] {
        let mut scene = Scene::with_gap(3000);
        let row = scene.off(MAIN, 1900, 1900, 2900).behind((300, 300), "hog", 990);
        row.state = "preempted".into();
        row.allowed_cpus = Some(1);
        row.forbidden_idle_ns = Some(DurationNs(idle * 1000));
        let told = scene.told();
        assert!(told.iter().any(|line| line == expected), "{told:?}");
    }
}

#[test]
fn a_peer_is_waited_for_over_a_connection_that_loses_segments() {
    for (connection, time, expected) in [
        ("10.0.0.1:500 -> 10.0.0.2:90", 2000, "1100-2900 net.retransmit 10.0.0.2:90"),
        ("10.0.0.1:500 -> 10.0.0.2:90", 2950, "1100-2900 net.recv 10.0.0.2:90"),
        ("10.0.0.1:501 -> 10.0.0.2:90", 2000, "1100-2900 net.recv 10.0.0.2:90"),
    ] {
        let mut scene = Scene::with_gap(3000);
        scene.syscall(MAIN, "recvfrom", 1100, 2900, ("tcp", "10.0.0.1:500 -> 10.0.0.2:90"));
        let delivered = "10.0.0.2:90 -> 10.0.0.1:500";
        scene.off(MAIN, 1100, 2900, 2900).by_kind("net", delivered).inside("recvfrom", 1100);
        scene.retransmit(connection, time);
        expect(&scene, &[expected]);
    }
}
