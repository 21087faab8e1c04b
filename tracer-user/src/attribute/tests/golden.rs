//! A whole chain as it is stored: main thread ← pinning thread ← worker process ← read ← block device.

use std::fmt::Write as _;

use super::scene::{MAIN, Scene, Woken as _};
use crate::event::RequestId;

const PIN: (i32, i32) = (100, 101);
const WORKER: (i32, i32) = (200, 200);

fn data_loader() -> Scene {
    let mut scene = Scene::new();
    scene.thread(PIN, "pin_memory");
    scene.process(WORKER.0, MAIN.0, "pt_data_worker");
    scene.thread(WORKER, "pt_data_worker");
    scene.launch(0, 5, 1);
    scene.kernel(10, 1000, 1);
    scene.call("cuStreamSynchronize", 10, 1010, 2);
    scene.off(MAIN, 20, 1004, 1010).by((100, 150), "sim-gpu").inside("futex", 15);
    // The main thread waits for the pinning thread, that for the worker, and that reads and decodes.
    scene.syscall(MAIN, "futex", 1040, 9105, ("futex", "0x7f0000001000"));
    scene.off(MAIN, 1050, 9090, 9100).by(PIN, "pin_memory").inside("futex", 1040);
    scene.syscall(PIN, "read", 900, 8010, ("pipe", "pipe:[77]"));
    scene.off(PIN, 905, 8000, 8008).by(WORKER, "pt_data_worker").inside("read", 900);
    scene.syscall(WORKER, "pread64", 800, 6500, ("file", "/data/shard-003.bin"));
    let row = scene.off(WORKER, 810, 6000, 6004).by_kind("block", "vda").inside("pread64", 800);
    row.request_id = Some(RequestId(7));
    scene.request(6, WORKER, [805, 806, 3000], "/data/shard-003.bin");
    scene.request(7, WORKER, [806, 3005, 5990], "/data/shard-003.bin");
    scene.call("cuMemcpyHtoDAsync_v2", 9300, 9320, 3);
    scene.copy(9325, 9825, 3, "pinned");
    scene.launch(9330, 9340, 4);
    scene.kernel(9830, 12_000, 4);
    scene
}

/// Everything of a scene's segments in lines.
fn full_text(scene: &Scene) -> String {
    let timeline = scene.timeline();
    let analysis = crate::attribute::analyze(&timeline).expect("time adds up");
    let mut text = String::new();
    for gap in analysis.found.gap_rows(&timeline) {
        let _ = writeln!(
            text,
            "gap {} GPU {} {} {}..{} cause {} stage {} enabler {}",
            gap.gap_id,
            gap.device,
            gap.kind,
            gap.start_ns.0,
            gap.end_ns.0,
            gap.cause,
            gap.stage,
            gap.enabler.as_deref().unwrap_or("-"),
        );
        for segment in analysis.found.segment_rows(&timeline).filter(|segment| segment.gap_id == gap.gap_id) {
            let _ = writeln!(
                text,
                "  {}..{} {} [{}] {} {}",
                segment.start_ns.0,
                segment.end_ns.0,
                segment.cause,
                segment.stage,
                segment.object.as_deref().unwrap_or("-"),
                segment.confidence,
            );
            for hop in &segment.path {
                let _ = writeln!(
                    text,
                    "      {}/{} {} {} {} {} => {}",
                    hop.pid,
                    hop.tid,
                    hop.thread,
                    hop.state,
                    hop.call.as_deref().unwrap_or("-"),
                    hop.object.as_deref().unwrap_or("-"),
                    hop.edge.as_deref().unwrap_or("leaf"),
                );
            }
            let rows: Vec<_> =
                segment.evidence.iter().map(|row| format!("{}:{}", row.table, row.row)).collect();
            let _ = writeln!(text, "      rests on {}", rows.join(" "));
        }
    }
    text
}

#[test]
fn main_pin_worker_read_block_device() {
    insta::assert_snapshot!(full_text(&data_loader()));
}
