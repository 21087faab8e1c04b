//! Recordings with one story each.

use gtrace::event::{DurationNs, MonoNs};
use gtrace::store::meta::{GpuInfo, ProbeStatus};
use gtrace::store::schema::{Loss, WhatIf};

use super::scene::{MS, Piece, START, Scene, Waker, hop};

const MAIN: (i32, i32) = (100, 100);
const PIN: (i32, i32) = (100, 105);
const WORKER: (i32, i32) = (101, 101);

/// Ten steps; before each the GPU waits for a worker that reads and decodes.
pub fn loader_bound() -> Scene {
    let mut scene = Scene::new(&["python3", "train.py", "--data", "/data"], 400 * MS);
    scene.thread(100, 100, "python3", Some("main"));
    scene.thread(100, 105, "pt_pin", Some("pin_memory"));
    scene.thread(101, 101, "python3", Some("dataloader_worker"));
    scene.thread(102, 102, "python3", Some("dataloader_worker"));
    let mut at = START + 20 * MS;
    scene.op(0, "kernel", "sgemm_128x64", at, at + 6 * MS);
    at += 6 * MS;
    for step in 0..10_i64 {
        let gap = at;
        let file = format!("/data/shard-{:02}.bin", step % 4);
        let read_end = gap + 9 * MS + step * 100_000;
        let request = scene.read("nvme0n1", &file, gap - MS, gap - MS + 50_000, read_end);
        let row = request.row.0;
        let waits = vec![
            scene.off(
                MAIN,
                gap - 2 * MS,
                gap + 13 * MS,
                gap + 13 * MS + 20_000,
                "futex",
                Waker::Task(100, 105, "pt_pin"),
            ),
            scene.off(
                PIN,
                gap - 2 * MS,
                gap + 13 * MS - 90_000,
                gap + 13 * MS - 80_000,
                "read",
                Waker::Task(101, 101, "python3"),
            ),
            scene.off(
                WORKER,
                gap - MS,
                read_end + 10_000,
                read_end + 15_000,
                "pread64",
                Waker::Block("nvme0n1", row),
            ),
            request,
        ];
        let chain = |last: gtrace::store::schema::Hop| {
            vec![
                hop(MAIN, "python3", "blocked", Some("futex"), Some("0x7f10aa00"), Some("woken by task")),
                hop(PIN, "pt_pin", "blocked", Some("read"), Some("pipe:[4242]"), Some("woken by task")),
                last,
            ]
        };
        let read = hop(WORKER, "python3", "blocked", Some("pread64"), Some(&file), Some("block completion"));
        let decode = hop(WORKER, "python3", "running", None, Some("/usr/bin/python3.11"), None);
        let mut reading = chain(read);
        reading.push(hop((0, 0), "nvme0n1", "device", None, Some(&file), None));
        let launch = at + 13 * MS + 40_000;
        scene.op(0, "kernel", "sgemm_128x64", launch + 20_000, launch + 6 * MS);
        scene.gap(
            "idle",
            gap,
            Some("cuStreamSynchronize"),
            &[
                Piece::new("storage.read.device", read_end - gap)
                    .stage("data_loading")
                    .object(&file)
                    .thread(101, 101)
                    .path(reading)
                    .evidence(waits.clone()),
                Piece::new("host.cpu.user", gap + 13 * MS - read_end)
                    .stage("data_loading")
                    .object("/usr/bin/python3.11")
                    .thread(101, 101)
                    .path(chain(decode))
                    .evidence(waits[..2].to_vec()),
                Piece::new("host.wake_latency", 40_000)
                    .stage("data_loading")
                    .object("CPU 2")
                    .thread(100, 100)
                    .path(vec![hop(MAIN, "python3", "runnable", Some("futex"), None, None)])
                    .evidence(waits[..1].to_vec()),
                Piece::new("gpu.submit_latency", 20_000)
                    .stage("forward_backward")
                    .object("sgemm_128x64")
                    .inferred(),
            ],
        );
        at = launch + 6 * MS;
    }
    steps_of_loader_bound(&mut scene);
    scene
}

/// Steps, and what they would take without the disk or without decoding.
fn steps_of_loader_bound(scene: &mut Scene) {
    for step in 0..10 {
        let start = START + 26 * MS + step * 19 * MS;
        let slow = step % 4 == 3;
        let (longer, outlier) = if slow { (4 * MS, Some("periodic")) } else { (0, None) };
        scene.step(step, (start, start + 15 * MS + longer), 6 * MS, outlier);
    }
    let worker = Some("dataloader_worker".into());
    let without = |cause: &str, alone, together, next: &str| WhatIf {
        cause: cause.into(),
        role: worker.clone(),
        gap_ns: DurationNs(90 * MS),
        start_ns: MonoNs(START + 20 * MS),
        end_ns: MonoNs(START + 210 * MS),
        alone_ns: DurationNs(alone * MS),
        together_ns: DurationNs(together * MS),
        next_cause: Some(next.into()),
        next_role: worker.clone(),
        next_ns: Some(DurationNs(30 * MS)),
    };
    scene.what_if.push(without("storage.read.device", 96, 96, "host.cpu.user"));
    scene.what_if.push(without("host.cpu.user", 160, 70, "storage.read.device"));
}

/// Kernels back to back.
pub fn healthy() -> Scene {
    let mut scene = Scene::new(&["./train"], 120 * MS);
    scene.thread(100, 100, "train", Some("main"));
    let mut at = START + 5 * MS;
    scene.op(0, "kernel", "fused_step", at, at + 10 * MS);
    for _ in 0..10 {
        at += 10 * MS;
        scene.op(0, "kernel", "fused_step", at + 3_000, at + 10 * MS);
        scene.gap("idle", at, None, &[Piece::new("gpu.submit_latency", 3_000).object("fused_step")]);
    }
    scene
}

/// Events were lost, probes are missing, the recorder was killed, and the GPU is a simulated one.
pub fn lossy() -> Scene {
    let mut scene = Scene::new(&["python3", "serve.py"], 100 * MS);
    scene.meta.mode = "attach".into();
    scene.meta.ended_ns = None;
    scene.meta.ended = "running".into();
    scene.meta.gpus = vec![GpuInfo { device: 0, name: "Simulated GPU".into(), ..GpuInfo::default() }];
    scene.meta.losses.insert("ring.off_cpu".into(), 1_200);
    scene.meta.probes = vec![ProbeStatus {
        name: "block_rq_issue".into(),
        attached: false,
        reason: Some("no tracepoint block:block_rq_issue".into()),
        unknowable: vec!["storage.read.queue".into(), "storage.write.queue".into()],
    }];
    scene.thread(100, 100, "python3", Some("main"));
    scene.op(0, "kernel", "decode", START + 10 * MS, START + 20 * MS);
    scene.op(0, "kernel", "decode", START + 60 * MS, START + 70 * MS);
    scene.gap(
        "idle",
        START + 20 * MS,
        None,
        &[
            Piece::new("host.cpu.user", 8 * MS).thread(100, 100).object("/usr/bin/python3.11"),
            Piece::new("unknown.lost_events", 30 * MS).object("ring.off_cpu"),
            Piece::new("unknown.before_attach", 2 * MS),
        ],
    );
    scene.losses.push(Loss {
        source: "ring.off_cpu".into(),
        reason: "ring full".into(),
        pid: None,
        start_ns: MonoNs(START + 28 * MS),
        end_ns: MonoNs(START + 58 * MS),
        count: 1_000,
    });
    scene
}

/// Two devices: one waits for the other, and for a pageable copy.
pub fn two_devices() -> Scene {
    let mut scene = Scene::new(&["./pipeline"], 200 * MS);
    scene.meta.gpus.push(GpuInfo { device: 1, name: "NVIDIA H200".into(), ..GpuInfo::default() });
    scene.thread(100, 100, "pipeline", Some("main"));
    scene.op(0, "kernel", "stage0", START + 10 * MS, START + 90 * MS);
    scene.op(1, "kernel", "stage1", START + 10 * MS, START + 30 * MS);
    scene.op(1, "memcpy", "HtoD", START + 80 * MS, START + 92 * MS);
    scene.gap(
        "idle",
        START + 30 * MS,
        None,
        &[Piece::new("gpu.dependency", 50 * MS).object("stage0 on GPU 0").stage("forward_backward")],
    );
    scene.op(1, "kernel", "stage1", START + 92 * MS, START + 120 * MS);
    scene.gap(
        "exposed_copy",
        START + 80 * MS,
        None,
        &[Piece::new("copy.pageable", 12 * MS)
            .object("HtoD 8.0 MiB at 0.7 GB/s")
            .stage("h2d")
            .thread(100, 100)],
    );
    scene
}

/// Names that try to take the terminal over.
pub fn hostile() -> Scene {
    let mut scene = Scene::new(&["python3", "\u{1b}]0;owned\u{7}evil\nname.py"], 50 * MS);
    scene.meta.host = "h\u{1b}[2Jost".into();
    scene.thread(100, 100, "a\u{202e}b\u{1b}[31m", Some("ma\rin"));
    let long = format!("/data/{}\u{200b}/数据.bin", "x".repeat(5_000));
    scene.op(0, "kernel", "k", START + MS, START + 2 * MS);
    scene.op(0, "kernel", "k\u{9b}31m", START + 12 * MS, START + 13 * MS);
    scene.gap(
        "idle",
        START + 2 * MS,
        Some("cu\u{8}Sync"),
        &[Piece::new("storage.read.device", 10 * MS)
            .object(&long)
            .thread(100, 100)
            .stage("data_loading")
            .path(vec![hop(MAIN, "a\u{202e}b\u{1b}[31m", "blocked", Some("read"), Some(&long), None)])],
    );
    scene
}

/// A host without any GPU work.
pub fn no_gpu() -> Scene {
    let mut scene = Scene::new(&["make", "-j8"], 30 * MS);
    scene.meta.gpus.clear();
    scene.meta.gpu_missing = Some("no process of the tree loaded libcuda".into());
    scene.thread(100, 100, "make", Some("main"));
    scene
}
