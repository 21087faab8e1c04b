//! What must hold whatever the timeline: random threads, edges (circles among them), requests, losses, clock errors, devices
//! and streams.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::scene::{Scene, Woken as _, us};
use crate::attribute::steps::Steps;
use crate::attribute::what_if::replayed;
use crate::attribute::{Cause, analyze};
use crate::event::{ContextId, DeviceId, DurationNs, MonoNs, Pid, RequestId, StreamId, Tid};
use crate::store::schema::{Gap, GapSegment};

/// Everything happens in so many microseconds.
const SPAN: i64 = 400;
/// Threads: three of the GPU process, two workers, a kernel thread, one outside.
const THREADS: [(i32, i32); 7] =
    [(100, 100), (100, 101), (100, 102), (200, 200), (300, 300), (90, 90), (700, 700)];

#[derive(Clone, Debug)]
struct RandomOff {
    thread: usize,
    off: i64,
    blocked: i64,
    runnable: i64,
    waker: usize,
    kind: usize,
    call: usize,
    state: usize,
    ends: u8,
}

#[derive(Clone, Debug)]
struct RandomOp {
    device: i32,
    stream: i64,
    start: i64,
    length: i64,
    kind: usize,
    correlation: i64,
    foreign: bool,
}

#[derive(Clone, Debug)]
struct RandomCall {
    thread: usize,
    name: usize,
    start: i64,
    length: i64,
    correlation: i64,
}

#[derive(Clone, Debug)]
struct World {
    ops: Vec<RandomOp>,
    api: Vec<RandomCall>,
    calls: Vec<RandomCall>,
    off: Vec<RandomOff>,
    requests: Vec<(i64, usize, i64, i64, i64)>,
    losses: Vec<(usize, i64, i64)>,
    starts: Vec<i64>,
}

const API: [&str; 8] = [
    "cuLaunchKernel",
    "cuStreamSynchronize",
    "cuMemcpyHtoD_v2",
    "cuMemAlloc_v2",
    "cudaLaunchKernel",
    "cuLaunchHostFunc",
    "cuMemFree_v2",
    "cuCtxGetDevice",
];
const CALLS: [&str; 8] =
    ["read", "futex", "fsync", "clock_nanosleep", "recvfrom", "epoll_wait", "sendto", "openat"];
const KINDS: [&str; 7] = ["task", "task", "block", "net", "timer", "irq", ""];
const STATES: [&str; 4] = ["interruptible", "uninterruptible", "preempted", "stopped"];
const SOURCES: [&str; 3] = ["ring.off_cpu", "shim.ring", "cupti.invalid"];

fn world() -> impl Strategy<Value = World> {
    let time = 0..SPAN;
    let off =
        (
            0..THREADS.len(),
            time.clone(),
            0..80_i64,
            0..20_i64,
            0..THREADS.len(),
            0..KINDS.len(),
            0..CALLS.len() + 1,
            (0..STATES.len(), 0..10_u8),
        )
            .prop_map(|(thread, off, blocked, runnable, waker, kind, call, (state, ends))| {
                RandomOff { thread, off, blocked, runnable, waker, kind, call, state, ends }
            });
    let op = (0..2_i32, 1..3_i64, time.clone(), 0..30_i64, 0..5_usize, 0..20_i64, prop::bool::weighted(0.1))
        .prop_map(|(device, stream, start, length, kind, correlation, foreign)| RandomOp {
            device,
            stream,
            start,
            length,
            kind,
            correlation,
            foreign,
        });
    let call = |names: usize, longest: i64| {
        (0..THREADS.len(), 0..names, 0..SPAN, 0..longest, 0..20_i64).prop_map(
            |(thread, name, start, length, correlation)| RandomCall {
                thread,
                name,
                start,
                length,
                correlation,
            },
        )
    };
    (
        vec(op, 0..25),
        vec(call(API.len(), 30), 0..25),
        vec(call(CALLS.len(), 90), 0..25),
        vec(off, 0..60),
        vec((0..8_i64, 0..THREADS.len(), time.clone(), 0..30_i64, 0..60_i64), 0..12),
        vec((0..SOURCES.len(), time, 0..60_i64), 0..3),
        vec(select(vec![0, 0, 0, 50, 200]), THREADS.len()),
    )
        .prop_map(|(ops, api, calls, off, requests, losses, starts)| World {
            ops,
            api,
            calls,
            off,
            requests,
            losses,
            starts,
        })
}

impl World {
    /// The rows.
    fn scene(&self) -> Scene {
        let mut scene = Scene::new();
        scene.threads.clear();
        scene.processes.clear();
        (scene.started, scene.ended) = (20, SPAN);
        for (index, &(pid, tid)) in THREADS.iter().enumerate() {
            if pid == tid {
                let process = scene.process(pid, if pid == 300 { 200 } else { 100 }, "p");
                process.kernel = pid == 90;
                process.outside = pid == 700;
            }
            // Rows of threads without an entry in `threads` occur too.
            if self.starts[index] != 200 {
                let thread = scene.thread((pid, tid), "t");
                thread.start_ns = us(self.starts[index].max(20));
                thread.before_attach = self.starts[index] == 0;
            }
        }
        for op in &self.ops {
            let row = scene.kernel(op.start, op.start + op.length, op.correlation);
            row.device = DeviceId(op.device);
            row.context = ContextId(i64::from(op.device));
            row.stream = StreamId(op.stream);
            row.kind = ["kernel", "memcpy", "memset", "graph", "kernel"][op.kind].into();
            if op.kind == 4 {
                row.name = "ncclKernel_x".into();
            }
            if op.foreign {
                row.pid = Pid(200);
            }
        }
        for call in &self.api {
            let (pid, tid) = THREADS[call.thread];
            let row = scene.call(API[call.name], call.start, call.start + call.length, call.correlation);
            (row.pid, row.tid) = (Pid(pid), Tid(tid));
        }
        for call in &self.calls {
            let object = ["file", "tcp", "pipe"][call.name % 3];
            let end = call.start + call.length;
            scene.syscall(THREADS[call.thread], CALLS[call.name], call.start, end, (object, "/x"));
        }
        self.off_cpu(&mut scene);
        for &(number, submitter, queued, issued, device) in &self.requests {
            let times = [queued, queued + issued, queued + issued + device];
            scene.request(number, THREADS[submitter], times, ["/x", ""][number as usize % 2]);
        }
        for &(source, start, length) in &self.losses {
            scene.loss(SOURCES[source], start, start + length);
        }
        scene
    }

    /// Adds all of its intervals, system calls and CUDA calls to `scene` as those of a process that nobody waits for: busy,
    /// woken by everybody, and loud.
    fn as_bystander(&self, scene: &mut Scene) {
        const BYSTANDER: (i32, i32) = (800, 800);
        scene.process(BYSTANDER.0, 1, "p");
        scene.thread(BYSTANDER, "t");
        let before = scene.off_cpu.len();
        self.off_cpu(scene);
        for row in &mut scene.off_cpu[before..] {
            (row.pid, row.tid) = (Pid(BYSTANDER.0), Tid(BYSTANDER.1));
        }
        for call in &self.calls {
            scene.syscall(BYSTANDER, CALLS[call.name], call.start, call.start + call.length, ("file", "/x"));
        }
        for call in &self.api {
            let row = scene.call(API[call.name], call.start, call.start + call.length, call.correlation);
            (row.pid, row.tid) = (Pid(BYSTANDER.0), Tid(BYSTANDER.1));
        }
    }

    fn off_cpu(&self, scene: &mut Scene) {
        for off in &self.off {
            let woken = off.off + off.blocked;
            let call = self.calls.get(off.call).map(|call| (CALLS[call.name], call.start));
            let row = scene.off(THREADS[off.thread], off.off, woken, woken + off.runnable);
            row.state = STATES[off.state].into();
            if let Some((name, start)) = call {
                row.inside(name, start);
            }
            match KINDS[off.kind] {
                "" => {}
                "task" => drop_ref(row.by(THREADS[off.waker], "w")),
                kind => drop_ref(row.by_kind(kind, "irq 4 x")),
            }
            if KINDS[off.kind] == "block" {
                row.request_id = Some(RequestId(off.call as i64));
            }
            row.behind(THREADS[(off.waker + 1) % THREADS.len()], "c", off.runnable / 2);
            match off.ends {
                0 => row.woken_ns = None,
                1 => row.on_ns = None,
                2 => (row.woken_ns, row.on_ns) = (None, None),
                _ => {}
            }
        }
    }
}

fn drop_ref<T>(_: T) {}

fn results(scene: &Scene) -> (Vec<Gap>, Vec<GapSegment>) {
    let timeline = scene.timeline();
    let analysis = analyze(&timeline).expect("time adds up");
    (analysis.found.gap_rows(&timeline).collect(), analysis.found.segment_rows(&timeline).collect())
}

/// A row in a different order must not matter; any fixed shuffle will do.
fn shuffle<T>(rows: &mut [T], seed: usize) {
    for index in 1..rows.len() {
        rows.swap(index, (index * 7919 + seed) % (index + 1));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn time_is_conserved(world in world()) {
        let scene = world.scene();
        // `analyze` checks devices and gaps; here the same from the rows alone.
        let (gaps, segments) = results(&scene);
        for gap in &gaps {
            prop_assert!(gap.start_ns < gap.end_ns);
            let mut cursor = gap.start_ns;
            for (seq, segment) in segments.iter().filter(|segment| segment.gap_id == gap.gap_id).enumerate() {
                prop_assert_eq!(segment.seq, seq as i32);
                prop_assert_eq!(segment.start_ns, cursor);
                prop_assert!(segment.end_ns > cursor);
                cursor = segment.end_ns;
            }
            prop_assert_eq!(cursor, gap.end_ns);
        }
        // No compute runs within a gap, and gaps of one device are disjoint.
        let timeline = scene.timeline();
        for gap in &gaps {
            let inside = timeline.ops.iter().filter(|op| {
                op.device == gap.device
                    && op.class == crate::attribute::timeline::OpClass::Compute
                    && op.start() < gap.end_ns
                    && op.end() > gap.start_ns
                    && !op.time.is_empty()
            });
            prop_assert_eq!(inside.count(), 0);
        }
    }

    #[test]
    fn nothing_is_blamed_within_losses(world in world()) {
        let scene = world.scene();
        let (_, segments) = results(&scene);
        for loss in scene.losses.iter().filter(|loss| loss.pid.is_none()) {
            for segment in &segments {
                let from: MonoNs = segment.start_ns.max(loss.start_ns);
                if from < segment.end_ns.min(loss.end_ns) {
                    prop_assert!(segment.cause.starts_with("unknown."), "{:?} in {:?}", segment, loss);
                    prop_assert!(segment.path.is_empty());
                }
            }
        }
    }

    #[test]
    fn the_order_of_rows_does_not_matter(world in world(), seed in 0..1000_usize) {
        let scene = world.scene();
        let mut other = scene.clone();
        shuffle(&mut other.gpu_ops, seed);
        shuffle(&mut other.api, seed);
        shuffle(&mut other.off_cpu, seed);
        shuffle(&mut other.syscalls, seed);
        shuffle(&mut other.block_io, seed);
        shuffle(&mut other.threads, seed);
        shuffle(&mut other.processes, seed);
        shuffle(&mut other.losses, seed);
        prop_assert_eq!(results(&scene), results(&scene));
        prop_assert_eq!(results(&scene), results(&other));
    }

    #[test]
    fn an_innocent_thread_changes_nothing(world in world(), bystander in world()) {
        let alone = world.scene();
        let mut together = alone.clone();
        bystander.as_bystander(&mut together);
        prop_assert_eq!(results(&alone), results(&together));
    }

    #[test]
    fn chains_are_bounded_and_told_whole(world in world()) {
        let (_, segments) = results(&world.scene());
        for segment in &segments {
            prop_assert!(segment.path.len() <= crate::attribute::walk::MAX_HOPS + 4, "{}", segment.path.len());
            if let Some((last, before)) = segment.path.split_last() {
                prop_assert!(last.edge.is_none());
                prop_assert!(before.iter().all(|hop| hop.edge.is_some()));
            }
            prop_assert!(Cause::from_code(&segment.cause).is_some());
        }
    }

    #[test]
    fn a_replay_without_removal_is_the_recording(world in world(), causes in vec(0..Cause::ALL.len(), 0..6)) {
        let timeline = world.scene().timeline();
        for (recorded, played) in replayed(&timeline, &[]) {
            prop_assert_eq!(recorded, played);
        }
        // Whatever is taken out, nothing comes later.
        let causes: Vec<Cause> = causes.into_iter().map(|cause| Cause::ALL[cause]).collect();
        for (recorded, played) in replayed(&timeline, &causes) {
            prop_assert!(played.start <= recorded.start && played.end <= recorded.end, "{:?} {:?}", recorded, played);
            prop_assert!(played.start <= played.end);
        }
    }

    #[test]
    fn the_times_of_steps_add_up(world in world()) {
        let timeline = world.scene().timeline();
        let analysis = analyze(&timeline).expect("time adds up");
        let mut steps = Steps::find(&timeline);
        steps.add(&analysis.found);
        for pair in steps.all().windows(2).filter(|pair| pair[0].device == pair[1].device) {
            prop_assert!(pair[0].time.end <= pair[1].time.start);
        }
        for row in steps.rows(&timeline) {
            let stages = [
                row.data_loading_ns, row.h2d_ns, row.forward_backward_ns, row.communication_ns, row.checkpoint_ns,
                row.serving_ns, row.startup_ns, row.other_ns,
            ];
            let gaps = row.idle_ns + row.exposed_copy_ns + row.exposed_comm_ns;
            prop_assert_eq!(stages.into_iter().sum::<DurationNs>(), gaps);
            prop_assert!(row.compute_ns.0 >= 0);
            prop_assert_eq!(row.compute_ns + gaps, row.end_ns - row.start_ns);
        }
    }

    #[test]
    fn what_comes_later_changes_nothing(world in world(), cut in 0..SPAN) {
        let whole = world.scene();
        let mut part = whole.clone();
        part.gpu_ops.retain(|row| row.start_ns < us(cut));
        // A call that begins later than the op that it launched makes that op invalid: calls stay.
        part.off_cpu.retain(|row| row.off_ns < us(cut));
        part.syscalls.retain(|row| row.start_ns < us(cut));
        part.block_io.retain(|row| row.queued_ns < us(cut));
        part.losses.retain(|row| row.start_ns < us(cut));
        same_before(&results(&whole), &results(&part), us(cut))?;
    }
}

/// The gaps that end before `cut` have the same causes in both. (The stage may differ: what a thread is for shows in all that
/// it does.)
fn same_before(
    (gaps, segments): &(Vec<Gap>, Vec<GapSegment>),
    (other_gaps, other_segments): &(Vec<Gap>, Vec<GapSegment>),
    cut: MonoNs,
) -> Result<(), TestCaseError> {
    let told = |segments: &[GapSegment], gap: &Gap| {
        let own = segments.iter().filter(|segment| segment.gap_id == gap.gap_id);
        own.map(|row| (row.start_ns, row.end_ns, row.cause.clone(), row.object.clone(), row.tid))
            .collect::<Vec<_>>()
    };
    let key = |gap: &Gap| (gap.device, gap.kind.clone(), gap.start_ns, gap.end_ns, gap.next_op);
    for gap in gaps.iter().filter(|gap| gap.end_ns < cut) {
        let Some(other) = other_gaps.iter().find(|other| key(other) == key(gap)) else { continue };
        // Which processes use a device shows in all of its ops, and with it whose invalid records concern it.
        let (told, other_told) = (told(segments, gap), told(other_segments, other));
        let invalid = told.iter().chain(&other_told).any(|row| row.2.as_str() == "unknown.invalid_record");
        if !invalid {
            prop_assert_eq!(told, other_told);
        }
    }
    Ok(())
}
