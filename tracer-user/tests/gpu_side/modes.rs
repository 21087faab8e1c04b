//! Modes: whole graphs or their nodes, few calls or all, nothing for a while.

use gtrace::record::gpu::GpuSide;
use tracer_abi::shim::{CollectMode, Collection};

use super::target::{Rows, Target, drain_until, find};

pub const TESTS: &[(&str, fn())] = &[
    ("modes::light_has_few_calls", light_has_few_calls),
    ("modes::graphs_whole_or_by_node", graphs_whole_or_by_node),
    ("modes::a_pause_is_unknown_and_not_idle", a_pause_is_unknown_and_not_idle),
    ("modes::every_version_in_every_mode", every_version_in_every_mode),
];

fn start(work: &str, cuda: &str, collection: Collection) -> (Target, GpuSide, Rows) {
    let raw = collection.to_raw().to_string();
    let target = Target::start(work, cuda, &[("GTRACE_START", "1"), ("GTRACE_COLLECT", raw.as_str())]);
    let mut side = GpuSide::new();
    side.collect(collection, "asked for");
    find(&mut side, &target);
    (target, side, Rows::default())
}

fn light_has_few_calls() {
    for cuda in ["12.4", "13.0"] {
        let (_target, mut side, mut rows) = start("loop", cuda, Collection::LIGHT);
        assert!(drain_until(&mut side, &mut rows, 20, |_, rows| rows.of_kind("kernel") > 300), "{cuda}");
        assert!(rows.named("cuLaunchKernel").count() > 250 && rows.named("cuStreamSynchronize").count() > 20);
        assert!(rows.syncs.is_empty() && rows.overheads.is_empty(), "{cuda}");
        let modes: Vec<String> = side.processes()[0].modes.iter().map(|change| change.mode.clone()).collect();
        assert_eq!(modes, ["light, whole graphs"], "{cuda}");
    }
}

/// Ten launches of a graph with a copy, a memset and ten kernels.
fn graphs_whole_or_by_node() {
    for cuda in ["11.8", "12.6", "13.5"] {
        for (whole, ops) in [(false, 120), (true, 10)] {
            let collection = Collection { mode: CollectMode::Full, whole_graphs: whole };
            let (mut target, mut side, mut rows) = start("graph:10", cuda, collection);
            let ended = |_: &GpuSide, _: &Rows| target.child.try_wait().unwrap().is_some();
            assert!(drain_until(&mut side, &mut rows, 20, ended));
            side.finish(std::time::Duration::from_secs(2), &mut |row| rows.take(row));
            let of_graph: Vec<_> = rows.ops.iter().filter(|op| op.graph_id.is_some()).collect();
            assert_eq!(of_graph.len(), ops, "{cuda}, whole: {whole}");
            assert_eq!(rows.of_kind("graph"), if whole { 10 } else { 0 }, "{cuda}");
            assert!(of_graph.iter().all(|op| op.graph_node_id.is_some() != whole));
            assert_eq!(rows.named("cuGraphLaunch").count(), 10, "{cuda}");
            assert_eq!(rows.losses, [], "{cuda}");
        }
    }
}

fn a_pause_is_unknown_and_not_idle() {
    for cuda in ["12.4", "13.3"] {
        let (_target, mut side, mut rows) = start("loop", cuda, Collection::FULL);
        assert!(drain_until(&mut side, &mut rows, 20, |_, rows| rows.of_kind("kernel") > 200));
        side.collect(Collection::FULL.paused(), "outside the window");
        let is_paused = |side: &GpuSide, _: &Rows| side.processes()[0].modes.len() == 2;
        assert!(drain_until(&mut side, &mut rows, 20, is_paused), "{cuda}");
        drain_until(&mut side, &mut rows, 2, |_, _| false);
        let before = rows.ops.len();
        drain_until(&mut side, &mut rows, 1, |_, _| false);
        assert_eq!(rows.ops.len(), before, "{cuda}: nothing comes in a pause");
        side.collect(Collection::FULL, "window");
        assert!(drain_until(&mut side, &mut rows, 20, |_, rows| rows.lost_time("gpu.paused") > 0), "{cuda}");
        drain_until(&mut side, &mut rows, 1, |_, _| false);
        let pause = rows.losses.iter().find(|loss| &*loss.source == "gpu.paused").unwrap();
        assert!(pause.end_ns.0 - pause.start_ns.0 > 1_500_000_000, "{pause:?}");
        // No stretch without work is longer than a few steps, but for the pause.
        let mut ops: Vec<(i64, i64)> = rows.ops.iter().map(|op| (op.start_ns.0, op.end_ns.0)).collect();
        ops.sort_unstable();
        for pair in ops.windows(2) {
            let (from, to) = (pair[0].1, pair[1].0);
            let inside = from >= pause.start_ns.0 - 1_000_000_000 && to <= pause.end_ns.0;
            assert!(to - from < 900_000_000 || inside, "{cuda}: idle from {from} to {to}, {pause:?}");
            if to - from > 900_000_000 {
                // Idle is only what the loss does not cover: next to nothing.
                let idle = (pause.start_ns.0 - from).max(0) + (to - pause.end_ns.0).max(0);
                assert!(idle < 900_000_000, "{cuda}: {idle} ns of the pause would read idle");
            }
        }
        let modes: Vec<_> = side.processes()[0].modes.iter().map(|change| change.mode.clone()).collect();
        assert_eq!(modes, ["full", "paused", "full"], "{cuda}");
    }
}

/// No version's CUPTI is confused by a change of mode.
fn every_version_in_every_mode() {
    for cuda in super::target::VERSIONS {
        let (_target, mut side, mut rows) = start("loop", cuda, Collection::LIGHT);
        for wanted in [Collection::FULL, Collection::LIGHT, Collection::FULL.paused(), Collection::FULL] {
            side.collect(wanted, "asked for");
            let word = match wanted.mode {
                CollectMode::Full => "full",
                CollectMode::Light => "light, whole graphs",
                CollectMode::Paused => "paused",
            };
            let seen = rows.of_kind("kernel");
            let done = |side: &GpuSide, rows: &Rows| {
                side.processes()[0].modes.last().is_some_and(|last| last.mode == word)
                    && (wanted.mode == CollectMode::Paused || rows.of_kind("kernel") > seen + 50)
            };
            assert!(drain_until(&mut side, &mut rows, 20, done), "{cuda}: {wanted:?}");
        }
        assert!(side.processes()[0].refused.is_none(), "{cuda}");
        assert!(rows.losses.iter().all(|loss| &*loss.source == "gpu.paused"), "{cuda}: {:?}", rows.losses);
    }
}
