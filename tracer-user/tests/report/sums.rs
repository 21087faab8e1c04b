//! The report's numbers against sums made another way.

use gtrace::report::model::Report;
use proptest::prelude::*;

use super::golden::report;
use super::scene::{MS, Piece, START, Scene};
use super::scenes;

fn every_table_sums_to_the_gap_time(report: &Report, gap_ns: i64) {
    let totals = &report.totals;
    assert_eq!(totals.gap_ns, gap_ns);
    assert_eq!(totals.window_ns, totals.compute_ns + totals.gap_ns);
    assert_eq!(report.devices.iter().map(gtrace::report::model::Device::gap_ns).sum::<i64>(), gap_ns);
    assert_eq!(report.causes.iter().map(|cause| cause.ns).sum::<i64>(), gap_ns);
    assert_eq!(report.stages.iter().map(|stage| stage.ns).sum::<i64>(), gap_ns);
    let by_thread: i64 = report.threads.iter().map(|thread| thread.ns).sum();
    assert_eq!(by_thread + report.threadless_ns, gap_ns);
    let trust = &report.trust;
    assert_eq!(trust.exact_ns + trust.inferred_ns + trust.unknown_ns, gap_ns);
    for cause in &report.causes {
        assert_eq!(cause.stages.iter().map(|stage| stage.ns).sum::<i64>(), cause.ns);
    }
    for stage in &report.stages {
        assert_eq!(stage.causes.iter().map(|cause| cause.ns).sum::<i64>(), stage.ns);
    }
    assert_eq!(trust.uncovered_gaps, 0);
    assert!(report.devices.iter().all(|device| device.imbalance_ns == 0));
}

#[test]
fn the_scenes_add_up() {
    for scene in [
        scenes::loader_bound(),
        scenes::healthy(),
        scenes::lossy(),
        scenes::two_devices(),
        scenes::hostile(),
        scenes::no_gpu(),
    ] {
        let gap_ns = scene.gaps.iter().map(|gap| (gap.end_ns - gap.start_ns).0).sum();
        every_table_sums_to_the_gap_time(&report(scene), gap_ns);
    }
}

#[test]
fn the_loader_bound_numbers() {
    let report = report(scenes::loader_bound());
    // 10 gaps: reads of 9.0 to 9.9 ms, the rest of 13 ms decoding, 40 µs to wake, 20 µs to submit.
    let ns = |code: &str| report.causes.iter().find(|cause| cause.cause == code).map(|cause| cause.ns);
    assert_eq!(ns("storage.read.device"), Some(94_500_000));
    assert_eq!(ns("host.cpu.user"), Some(35_500_000));
    assert_eq!(ns("host.wake_latency"), Some(400_000));
    assert_eq!(ns("gpu.submit_latency"), Some(200_000));
    assert_eq!(report.objects.block_devices[0].ns, 94_500_000);
    assert_eq!(report.objects.files.len(), 4);
    assert_eq!(report.enablers[0].gaps, 10);
    assert_eq!(report.disks[0].reads, 10);
    assert_eq!(report.verdict.state, "waiting");
}

#[test]
fn a_gap_that_is_not_covered_is_an_error() {
    let mut scene = scenes::two_devices();
    scene.segments[0].end_ns.0 -= 1;
    assert_eq!(report(scene).trust.uncovered_gaps, 1);
    let mut scene = scenes::two_devices();
    scene.gaps[1].start_ns.0 += 1;
    let report = report(scene);
    assert_eq!(report.trust.uncovered_gaps, 1);
}

#[test]
fn work_inside_a_gap_is_an_error() {
    let mut scene = scenes::two_devices();
    scene.op(1, "kernel", "sneaky", START + 40 * MS, START + 41 * MS);
    let report = report(scene);
    assert_eq!(report.devices[1].imbalance_ns, -MS);
}

const CAUSES: [&str; 6] =
    ["storage.read.device", "host.cpu.user", "unknown.no_waker", "net.recv", "gpu.queued", "new.code"];
const STAGES: [&str; 3] = ["data_loading", "checkpoint", "other"];

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn any_recording_adds_up(
        gaps in proptest::collection::vec(
            (1_i64..5_000_000, proptest::collection::vec((1_i64..3_000_000, 0_usize..6, 0_usize..3, 0_i32..4, any::<bool>()), 1..6)),
            1..20,
        )
    ) {
        let mut scene = Scene::new(&["x"], 1_000 * MS);
        let mut at = START;
        let mut gap_ns = 0;
        let mut by_cause = [0_i64; 6];
        scene.op(0, "kernel", "k", at, at + 10);
        at += 10;
        for (busy, pieces) in &gaps {
            let length: i64 = pieces.iter().map(|piece| piece.0).sum();
            scene.op(0, "kernel", "k", at + length, at + length + busy);
            let made: Vec<Piece> = pieces.iter().map(|(ns, cause, stage, thread, exact)| {
                by_cause[*cause] += ns;
                let piece = Piece::new(CAUSES[*cause], *ns).stage(STAGES[*stage]).object(&format!("o{thread}"));
                let piece = if *thread > 0 { piece.thread(100, 100 + thread) } else { piece };
                if *exact { piece } else { piece.inferred() }
            }).collect();
            scene.gap("idle", at, None, &made);
            at += length + busy;
            gap_ns += length;
        }
        let report = report(scene);
        every_table_sums_to_the_gap_time(&report, gap_ns);
        for (cause, expected) in CAUSES.iter().zip(by_cause) {
            let found = report.causes.iter().find(|row| row.cause == *cause).map_or(0, |row| row.ns);
            prop_assert_eq!(found, expected);
        }
    }
}
