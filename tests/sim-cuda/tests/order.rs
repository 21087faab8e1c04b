//! What may run when: streams, engines, events, the default stream, host functions, graphs.
#![allow(clippy::unwrap_used, reason = "a failure here is a failure of the test")]
#![allow(clippy::float_cmp, reason = "compared with tolerance where it matters")]

mod common;

use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};

use common::cupti::{monotonic, of_kind, recorded};
use common::{Handle, cu, isolated};

const KERNEL: u32 = 10;
const MEMCPY: u32 = 1;
const MS: u64 = 1_000_000;

fn overlap(a: (u64, u64), b: (u64, u64)) -> bool {
    a.0 < b.1 && b.0 < a.1
}

#[test]
fn kernels_of_a_stream_follow_each_other() {
    isolated("kernels_of_a_stream_follow_each_other", &[], || {
        let (driver, cupti) = recorded(&[KERNEL]);
        let stream = driver.stream(1);
        for ns in [300_000, 20_000, 1_000_000, 5_000] {
            driver.spin(stream, ns);
        }
        driver.sync();
        let kernels = of_kind(&cupti.records(false), KERNEL);
        let lengths: Vec<u64> = kernels.iter().map(|k| k.span().1 - k.span().0).collect();
        for (length, wanted) in lengths.iter().zip([300_000u64, 20_000, 1_000_000, 5_000]) {
            assert!(length.abs_diff(wanted) <= wanted / 5_000 + 2, "{length} for {wanted}");
        }
        for pair in kernels.windows(2) {
            let gap = pair[1].span().0 - pair[0].span().1;
            assert!((790..=20_000).contains(&gap), "gap of {gap} ns");
        }
        assert!(kernels.iter().all(|k| k.name() == "spin_ns"));
    });
}

#[test]
fn kernels_of_two_streams_overlap() {
    isolated("kernels_of_two_streams_overlap", &[], || {
        let (driver, cupti) = recorded(&[KERNEL]);
        let (a, b) = (driver.stream(1), driver.stream(1));
        driver.spin(a, 500 * MS);
        driver.spin(b, 500 * MS);
        driver.sync();
        let kernels = of_kind(&cupti.records(false), KERNEL);
        assert!(overlap(kernels[0].span(), kernels[1].span()));
        assert_ne!(kernels[0].u32(48), kernels[1].u32(48), "stream numbers");
    });
}

#[test]
fn compute_slots_are_limited() {
    isolated("compute_slots_are_limited", &[("SIMCUDA_CONCURRENT_KERNELS", "2")], || {
        let (driver, cupti) = recorded(&[KERNEL]);
        for _ in 0..5 {
            driver.spin(driver.stream(1), 40 * MS);
        }
        driver.sync();
        let kernels = of_kind(&cupti.records(false), KERNEL);
        for kernel in &kernels {
            // Two clocks' worth of rounding: ends and starts that touch do not overlap.
            let at = kernel.span().0 + 1_000;
            let running = kernels.iter().filter(|k| k.span().0 <= at && at < k.span().1).count();
            assert!(running <= 2, "{running} at once");
        }
    });
}

#[test]
fn the_two_directions_have_an_engine_each() {
    // 40 MB at 1 GB/s take 40 ms.
    isolated("the_two_directions_have_an_engine_each", &[("SIMCUDA_PINNED_GBS", "1")], || {
        const LEN: usize = 40_000_000;
        let (driver, cupti) = recorded(&[MEMCPY]);
        let device = driver.alloc(LEN * 3);
        let host = driver.pinned(LEN * 3).as_mut_ptr();
        let streams = [driver.stream(1), driver.stream(1), driver.stream(1)];
        let at = |i: usize| (device + (i * LEN) as u64, host.wrapping_add(i * LEN).cast::<c_void>());
        let (d, h) = at(0);
        let gate = driver.event(0);
        driver.spin(streams[0], 100 * MS);
        assert_eq!(cu!(driver, cuEventRecord(gate => Handle, streams[0] => Handle)), 0);
        for stream in streams {
            assert_eq!(cu!(driver, cuStreamWaitEvent(stream => Handle, gate => Handle, 0 => u32)), 0);
        }
        assert_eq!(
            cu!(driver, cuMemcpyHtoDAsync_v2(d => u64, h => Handle, LEN => usize, streams[0] => Handle)),
            0
        );
        let (d, h) = at(1);
        assert_eq!(
            cu!(driver, cuMemcpyDtoHAsync_v2(h => Handle, d => u64, LEN => usize, streams[1] => Handle)),
            0
        );
        let (d, h) = at(2);
        assert_eq!(
            cu!(driver, cuMemcpyHtoDAsync_v2(d => u64, h => Handle, LEN => usize, streams[2] => Handle)),
            0
        );
        driver.sync();
        let copies = of_kind(&cupti.records(false), MEMCPY);
        let up: Vec<_> = copies.iter().filter(|c| c.u8(4) == 1).collect();
        let down: Vec<_> = copies.iter().filter(|c| c.u8(4) == 2).collect();
        assert_eq!((up.len(), down.len()), (2, 1));
        assert!(up[0].span().1 <= up[1].span().0 + 100, "two copies at once on one engine");
        assert!(up.iter().any(|c| overlap(c.span(), down[0].span())), "the directions wait for each other");
        assert!(
            copies.iter().all(|c| (c.u8(5), c.u8(6)) == (2, 3) || (c.u8(5), c.u8(6)) == (3, 2)),
            "pinned"
        );
    });
}

#[test]
fn events_order_streams_and_measure() {
    isolated("events_order_streams_and_measure", &[], || {
        let (driver, cupti) = recorded(&[KERNEL, 38]);
        let (a, b) = (driver.stream(1), driver.stream(1));
        let (begin, end) = (driver.event(0), driver.event(0));
        assert_eq!(cu!(driver, cuEventRecord(begin => Handle, a => Handle)), 0);
        driver.spin(a, 30 * MS);
        assert_eq!(cu!(driver, cuEventRecord(end => Handle, a => Handle)), 0);
        assert_eq!(cu!(driver, cuStreamWaitEvent(b => Handle, end => Handle, 0 => u32)), 0);
        driver.spin(b, MS);
        assert_eq!(cu!(driver, cuEventQuery(end => Handle)), 600);
        assert_eq!(cu!(driver, cuEventSynchronize(end => Handle)), 0);
        let mut ms = 0f32;
        let result = cu!(driver, cuEventElapsedTime(&raw mut ms => *mut f32, begin => Handle, end => Handle));
        assert_eq!(result, 0);
        assert!((30.0..31.0).contains(&ms), "{ms}");
        driver.sync();
        let records = cupti.records(false);
        let kernels = of_kind(&records, KERNEL);
        assert!(kernels[1].span().0 >= kernels[0].span().1);
        let kinds: Vec<u32> = records.iter().filter(|r| r.kind() == 38).map(|r| r.u32(4)).collect();
        assert_eq!(kinds, [2, 1, 4], "stream-wait-event, event, context");
    });
}

#[test]
fn the_default_stream_waits_and_is_waited_for() {
    isolated("the_default_stream_waits_and_is_waited_for", &[], || {
        let (driver, cupti) = recorded(&[KERNEL]);
        let (blocking, free) = (driver.stream(0), driver.stream(1));
        driver.spin(free, 400 * MS);
        driver.spin(blocking, 50 * MS);
        driver.spin(std::ptr::null_mut(), 50 * MS);
        driver.spin(blocking, 50 * MS);
        driver.sync();
        let kernels = of_kind(&cupti.records(false), KERNEL);
        let of = |stream: u32| {
            kernels.iter().filter(move |k| k.u32(48) == stream).map(common::cupti::Record::span)
        };
        let null: Vec<_> = of(7).collect();
        let made: Vec<_> = of(13).collect();
        let other: Vec<_> = of(14).collect();
        let (blocking, free) = if made.len() == 2 { (made, other) } else { (other, made) };
        assert!(blocking[0].1 <= null[0].0 && null[0].1 <= blocking[1].0);
        assert!(overlap(free[0], null[0]));
    });
}

#[test]
fn per_thread_default_streams_are_apart() {
    isolated("per_thread_default_streams_are_apart", &[], || {
        let (driver, cupti) = recorded(&[KERNEL]);
        let function = driver.function(c"spin_ns");
        let launch = |function: Handle| {
            let (ns, null) = (300 * MS, std::ptr::null_mut());
            let mut arguments = [(&raw const ns).cast_mut().cast::<c_void>()];
            cu!(driver, cuLaunchKernel_ptsz(
                function => Handle, 1 => u32, 1 => u32, 1 => u32, 1 => u32, 1 => u32, 1 => u32, 0 => u32,
                null => Handle, arguments.as_mut_ptr() => *mut *mut c_void, null.cast() => *mut *mut c_void
            ))
        };
        assert_eq!(launch(function), 0);
        let (function, context) = (function as usize, driver.context as usize);
        std::thread::scope(|scope| {
            scope.spawn(move || {
                assert_eq!(cu!(driver, cuCtxSetCurrent(context as Handle => Handle)), 0);
                assert_eq!(launch(function as Handle), 0);
            });
        });
        driver.sync();
        let kernels = of_kind(&cupti.records(false), KERNEL);
        assert_eq!(kernels.len(), 2);
        assert!(overlap(kernels[0].span(), kernels[1].span()));
    });
}

static CALLED: AtomicU64 = AtomicU64::new(0);

extern "C" fn host_function(user: *mut c_void) {
    std::thread::sleep(std::time::Duration::from_millis(user as u64));
    CALLED.store(monotonic(), Ordering::Release);
}

#[test]
fn host_functions_hold_their_stream() {
    isolated("host_functions_hold_their_stream", &[("SIMCUDA_CUPTI_VERSION", "13.5")], || {
        let (driver, cupti) = recorded(&[KERNEL, 58]);
        let stream = driver.stream(1);
        driver.spin(stream, 10 * MS);
        let result = cu!(driver, cuLaunchHostFunc(
            stream => Handle, host_function => extern "C" fn(*mut c_void), 20 as Handle => Handle
        ));
        assert_eq!(result, 0);
        driver.spin(stream, MS);
        assert_eq!(cu!(driver, cuStreamSynchronize(stream => Handle)), 0);
        let records = cupti.records(false);
        let kernels = of_kind(&records, KERNEL);
        let called = CALLED.load(Ordering::Acquire);
        assert!(kernels[0].span().1 + 20 * MS <= called, "called before its turn");
        assert!(called <= kernels[1].span().0 + 2_000, "the next kernel did not wait for it");
        let host = records.iter().find(|r| r.kind() == 58).unwrap();
        assert!(host.u64(40) - host.u64(32) >= 20 * MS && host.u64(40) <= kernels[1].span().0 + 2_000);
    });
}

fn fork_and_join(driver: common::Driver) -> Handle {
    let (a, b) = (driver.stream(1), driver.stream(1));
    let (fork, join) = (driver.event(2), driver.event(2));
    assert_eq!(cu!(driver, cuStreamBeginCapture_v2(a => Handle, 0 => i32)), 0);
    driver.spin(a, 2 * MS);
    assert_eq!(cu!(driver, cuEventRecord(fork => Handle, a => Handle)), 0);
    assert_eq!(cu!(driver, cuStreamWaitEvent(b => Handle, fork => Handle, 0 => u32)), 0);
    driver.spin(a, 30 * MS);
    driver.spin(b, 30 * MS);
    assert_eq!(cu!(driver, cuEventRecord(join => Handle, b => Handle)), 0);
    assert_eq!(cu!(driver, cuStreamWaitEvent(a => Handle, join => Handle, 0 => u32)), 0);
    driver.spin(a, 2 * MS);
    let (mut graph, mut exec) = (std::ptr::null_mut(), std::ptr::null_mut());
    assert_eq!(cu!(driver, cuStreamEndCapture(a => Handle, &raw mut graph => *mut Handle)), 0);
    let result =
        cu!(driver, cuGraphInstantiateWithFlags(&raw mut exec => *mut Handle, graph => Handle, 0 => u64));
    assert_eq!(result, 0);
    exec
}

#[test]
fn graphs_run_their_nodes_in_the_captured_order() {
    isolated("graphs_run_their_nodes_in_the_captured_order", &[], || {
        let (driver, cupti) = recorded(&[KERNEL, 4]);
        let exec = fork_and_join(driver);
        let stream = driver.stream(1);
        assert_eq!(cu!(driver, cuGraphLaunch(exec => Handle, stream => Handle)), 0);
        driver.spin(stream, MS);
        driver.sync();
        let records = cupti.records(false);
        let kernels = of_kind(&records, KERNEL);
        assert_eq!(kernels.len(), 5, "nothing ran during the capture");
        let spans: Vec<_> = kernels.iter().map(common::cupti::Record::span).collect();
        assert!(spans[0].1 <= spans[1].0 && overlap(spans[1], spans[2]), "{spans:?}");
        assert!(spans[3].0 >= spans[1].1.max(spans[2].1) && spans[4].0 >= spans[3].1);
        let launch = records.iter().find(|r| r.kind() == 4 && r.u32(4) == 514).unwrap();
        assert!(
            kernels[..4].iter().all(|k| k.u32(92) == launch.u32(32) && k.u32(156) == 1 && k.u64(144) != 0)
        );
        assert_eq!(kernels[4].u32(156), 0);
    });
}

#[test]
fn graph_trace_gives_one_record_a_launch() {
    isolated("graph_trace_gives_one_record_a_launch", &[], || {
        let (driver, cupti) = recorded(&[KERNEL, 51]);
        let exec = fork_and_join(driver);
        let stream = driver.stream(1);
        assert_eq!(cu!(driver, cuGraphLaunch(exec => Handle, stream => Handle)), 0);
        driver.sync();
        let records = cupti.records(false);
        assert!(of_kind(&records, KERNEL).is_empty());
        let graphs = of_kind(&records, 51);
        assert_eq!(graphs.len(), 1);
        assert!((34 * MS..36 * MS).contains(&(graphs[0].u64(16) - graphs[0].u64(8))));
    });
}

/// A node of `spin_ns`.
#[repr(C)]
struct KernelNode {
    function: Handle,
    sizes: [u32; 7],
    params: *mut *mut c_void,
    extra: *mut *mut c_void,
    kernel: Handle,
    context: Handle,
}

#[test]
fn graphs_are_made_node_by_node_and_updated() {
    isolated("graphs_are_made_node_by_node_and_updated", &[], || {
        let (driver, cupti) = recorded(&[KERNEL]);
        let null = std::ptr::null_mut();
        let build = |ns: u64, count: usize| {
            let mut graph = null;
            assert_eq!(cu!(driver, cuGraphCreate(&raw mut graph => *mut Handle, 0 => u32)), 0);
            let mut params = [(&raw const ns).cast_mut().cast::<c_void>()];
            let node = KernelNode {
                function: driver.function(c"spin_ns"),
                sizes: [1, 1, 1, 32, 1, 1, 0],
                params: params.as_mut_ptr(),
                extra: std::ptr::null_mut(),
                kernel: null,
                context: null,
            };
            let mut last: Handle = null;
            for number in 0..count {
                let before = last;
                let result = cu!(driver, cuGraphAddKernelNode_v2(
                    &raw mut last => *mut Handle, graph => Handle, &raw const before => *const Handle,
                    usize::from(number > 0) => usize, &raw const node => *const KernelNode));
                assert_eq!(result, 0);
            }
            graph
        };
        let (first, second, longer) = (build(2 * MS, 3), build(5 * MS, 3), build(MS, 4));
        let (mut exec, stream) = (null, driver.stream(1));
        assert_eq!(
            cu!(driver, cuGraphInstantiateWithFlags(&raw mut exec => *mut Handle, first => Handle, 0 => u64)),
            0
        );
        let launch = || assert_eq!(cu!(driver, cuGraphLaunch(exec => Handle, stream => Handle)), 0);
        launch();
        driver.sync();
        let update =
            |graph| cu!(driver, cuGraphExecUpdate_v2(exec => Handle, graph => Handle, null => Handle));
        assert_eq!(update(second), 0);
        assert_eq!(update(longer), 910, "other nodes");
        launch();
        driver.sync();
        let kernels = of_kind(&cupti.records(false), KERNEL);
        let lengths: Vec<u64> = kernels.iter().map(|k| (k.span().1 - k.span().0 + MS / 2) / MS).collect();
        assert_eq!(lengths, [2, 2, 2, 5, 5, 5]);
        assert!(kernels.windows(2).all(|pair| pair[0].span().1 <= pair[1].span().0), "in order");
        let nodes: Vec<u64> = kernels.iter().map(|k| k.u64(144)).collect();
        assert_eq!(nodes[..3], nodes[3..], "the nodes stay the same ones");
    });
}

#[test]
fn processes_take_turns_on_a_shared_device() {
    let file = std::env::temp_dir().join(format!("sim-cuda-shared-{}", std::process::id()));
    let shared = file.to_str().unwrap().to_owned();
    isolated("processes_take_turns_on_a_shared_device", &[("SIMCUDA_SHARED", &shared)], || {
        if std::env::var_os("SIM_CUDA_SECOND").is_some() {
            for (start, end) in turns() {
                println!("SPAN {start} {end}");
            }
            return;
        }
        let other = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["processes_take_turns_on_a_shared_device", "--exact", "--nocapture"])
            .env("SIM_CUDA_SECOND", "1")
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let own = turns();
        let text = String::from_utf8(other.wait_with_output().unwrap().stdout).unwrap();
        let number = |text: &str| text.parse::<u64>().unwrap();
        let others: Vec<(u64, u64)> = text
            .lines()
            .filter_map(|line| line.split("SPAN ").nth(1)?.split_once(' '))
            .map(|(start, end)| (number(start), number(end)))
            .collect();
        assert_eq!((own.len(), others.len()), (100, 100));
        let between = |spans: &[(u64, u64)]| (spans[0].0, spans[spans.len() - 1].1);
        assert!(overlap(between(&own), between(&others)), "they ran at the same time: {own:?}, {others:?}");
        // Each process converts the device's clock by itself.
        let apart = |a: &(u64, u64), b: &(u64, u64)| !overlap((a.0 + 20_000, a.1 - 20_000), *b);
        assert!(own.iter().all(|a| others.iter().all(|b| apart(a, b))), "{own:?}\n{others:?}");
    });
    let _ = std::fs::remove_file(file);
}

/// The spans of kernels that are waited for one by one.
fn turns() -> Vec<(u64, u64)> {
    let (driver, cupti) = recorded(&[KERNEL]);
    let stream = driver.stream(1);
    for _ in 0..100 {
        driver.spin(stream, 5 * MS);
        driver.sync();
    }
    of_kind(&cupti.records(false), KERNEL).iter().map(common::cupti::Record::span).collect()
}
