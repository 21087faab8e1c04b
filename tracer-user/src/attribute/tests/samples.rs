//! Which function time in user code is named by.

use super::scene::{MAIN, Scene};

/// The main thread computes until the launch that ends the gap.
fn computing() -> Scene {
    let mut scene = Scene::with_gap(31_000);
    scene.sample(MAIN, 900, ("before_the_gap", 1), "");
    scene.sample(MAIN, 6_000, ("collate_fn", 118), "");
    scene.sample(MAIN, 11_000, ("decode", 60), "inflate");
    scene.sample(MAIN, 16_000, ("decode", 61), "inflate");
    scene.sample(MAIN, 21_000, ("decode", 61), "crc32");
    scene.sample(MAIN, 26_000, ("decode", 61), "inflate");
    scene
}

#[test]
fn the_function_with_the_most_samples_names_the_segment() {
    let scene = computing();
    assert_eq!(
        scene.told(),
        [
            "1000-30985 host.cpu.user train.py:61 decode, in libz: inflate",
            "30985-30995 cuda.launch cuLaunchKernel",
            "30995-31000 gpu.submit_latency kernel_2",
        ]
    );
    let segments = scene.segments();
    let rows: Vec<i64> = scene.samples.iter().map(|sample| sample.id.0).collect();
    let evidence: Vec<(&str, i64)> =
        segments[0].evidence.iter().map(|evidence| (&*evidence.table, evidence.row.0)).collect();
    assert!(evidence.ends_with(&[("samples", rows[3]), ("samples", rows[5])]), "{evidence:?}");
    assert_eq!(&*segments[0].confidence, "exact");
}

#[test]
fn each_piece_is_named_by_its_own_samples_or_by_the_program() {
    let mut scene = computing();
    scene.syscall(MAIN, "pread64", 12_000, 18_000, ("file", "/data/a"));
    scene.syscall(MAIN, "pread64", 29_000, 30_000, ("file", "/data/b"));
    assert_eq!(
        scene.told(),
        [
            "1000-12000 host.cpu.user train.py:118 collate_fn",
            "12000-18000 host.cpu.kernel pread64 /data/a",
            "18000-29000 host.cpu.user train.py:61 decode, in libz: crc32",
            "29000-30000 host.cpu.kernel pread64 /data/b",
            "30000-30985 host.cpu.user /usr/bin/python3",
            "30985-30995 cuda.launch cuLaunchKernel",
            "30995-31000 gpu.submit_latency kernel_2",
        ]
    );
}

#[test]
fn anothers_samples_name_nothing() {
    let mut scene = Scene::with_gap(31_000);
    scene.thread((100, 101), "pool");
    scene.sample((100, 101), 6_000, ("spin", 1), "");
    assert_eq!(scene.told()[0], "1000-30985 host.cpu.user /usr/bin/python3");
}
