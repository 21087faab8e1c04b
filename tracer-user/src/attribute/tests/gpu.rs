//! The device's side: kinds of gaps, launches, dependencies, synchronisation, copies.

use super::scene::{MAIN, Scene, Woken as _, us};
use crate::event::{ContextId, CorrelationId, DeviceId, Pid, RowId, StreamId, Tid};
use crate::store::schema::{CudaOverhead, CudaSync};

fn sync(kind: &str, correlation: i64, start: i64, end: i64, context: i64, stream: i64) -> CudaSync {
    CudaSync {
        id: RowId(correlation),
        pid: Pid(MAIN.0),
        kind: kind.into(),
        context: ContextId(context),
        stream: Some(StreamId(stream)),
        event_id: Some(1),
        start_ns: us(start),
        end_ns: us(end),
        correlation_id: CorrelationId(correlation),
    }
}

#[test]
fn busy_is_a_union_and_kinds_are_kept_apart() {
    let mut scene = Scene::new();
    scene.kernel(0, 100, 1);
    scene.kernel(50, 200, 2).stream = StreamId(2);
    scene.copy(150, 300, 3, "pinned");
    scene.kernel(400, 500, 4).name = "ncclDevKernel_AllReduce".into();
    scene.kernel(450, 600, 5);
    let analysis = scene.analysis();
    let gaps: Vec<_> = analysis
        .found
        .gaps
        .iter()
        .map(|gap| {
            (
                gap.gap.activity.gap_kind().expect("a gap"),
                gap.gap.time.start.0 / 1000,
                gap.gap.time.end.0 / 1000,
            )
        })
        .collect();
    assert_eq!(gaps, [("exposed_copy", 200, 300), ("idle", 300, 400), ("exposed_comm", 400, 450)]);
    let device = &analysis.devices[0];
    assert_eq!(device.busy.0 / 1000, 350);
    assert_eq!(device.gap_time().0 / 1000, 250);
    assert_eq!((device.leading_edge().length().0, device.trailing_edge().length().0 / 1000), (0, 99_400));
}

#[test]
fn micro_gaps_are_gaps() {
    let mut scene = Scene::new();
    scene.launch(0, 5, 1);
    scene.kernel(10, 100, 1);
    scene.launch(90, 98, 2);
    scene.kernel(102, 200, 2);
    assert_eq!(scene.told(), ["100-102 gpu.dependency kernel_1"]);
    // Launched just before the device became idle, on a stream that was empty: on its way.
    scene.gpu_ops[1].stream = StreamId(2);
    assert_eq!(scene.told(), ["100-102 gpu.submit_latency kernel_2"]);
}

#[test]
fn a_launch_before_the_gap_that_nothing_holds_is_queued() {
    let mut scene = Scene::with_gap(3000);
    let launch = scene.api.last_mut().expect("the launch");
    launch.start_ns = us(20);
    launch.end_ns = us(30);
    assert_eq!(scene.told(), ["1000-3000 gpu.queued kernel_2"]);
}

#[test]
fn a_host_function_holds_its_stream() {
    let mut scene = Scene::with_gap(3000);
    let launch = scene.api.last_mut().expect("the launch");
    launch.start_ns = us(40);
    launch.end_ns = us(50);
    scene.call("cuLaunchHostFunc", 20, 30, 9);
    assert_eq!(scene.told(), ["1000-3000 gpu.dependency cuLaunchHostFunc (inferred)"]);
}

#[test]
fn another_process_on_the_device_is_named() {
    let mut scene = Scene::new();
    scene.process(200, 1, "other");
    scene.kernel(0, 1000, 1).pid = Pid(200);
    scene.launch(20, 30, 2);
    scene.kernel(1500, 2000, 2);
    assert_eq!(scene.told(), ["1000-1500 gpu.other_process 200/other (inferred)"]);
}

#[test]
fn an_op_of_another_device_is_followed_to_its_own_launch() {
    let mut scene = Scene::new();
    scene.launch(0, 5, 1);
    scene.kernel(10, 1000, 1);
    // Device 0 waits for an event behind an op of device 1, which the main thread launched late.
    scene.syncs.push(sync("stream_wait_event", 3, 30, 32, 1, 1));
    scene.launch(40, 50, 4);
    scene.kernel(3005, 4000, 4);
    scene.launch(1500, 1510, 5);
    let op = scene.kernel(1520, 3000, 5);
    op.device = DeviceId(1);
    op.context = ContextId(2);
    assert_eq!(
        scene.told(),
        [
            "1000-1500 host.cpu.user /usr/bin/python3 (inferred)",
            "1500-1510 cuda.launch cuLaunchKernel (inferred)",
            "1510-1520 gpu.submit_latency kernel_5 (inferred)",
            "1520-3005 gpu.dependency kernel_5 (inferred)",
        ]
    );
}

#[test]
fn a_synchronisation_with_an_idle_device_is_on_its_way_back() {
    let mut scene = Scene::with_gap(3000);
    scene.call("cuStreamSynchronize", 20, 1200, 9);
    scene.off(MAIN, 30, 1150, 1180).by((100, 150), "sim-gpu 0").inside("futex", 25);
    assert_eq!(
        scene.told(),
        [
            "1000-1150 cuda.sync cuStreamSynchronize",
            "1150-1180 cuda.sync cuStreamSynchronize",
            "1180-1200 cuda.sync cuStreamSynchronize",
            "1200-2985 host.cpu.user /usr/bin/python3",
            "2985-2995 cuda.launch cuLaunchKernel",
            "2995-3000 gpu.submit_latency kernel_2",
        ]
    );
    let timeline = scene.timeline();
    let analysis = crate::attribute::analyze(&timeline).expect("time adds up");
    let gap = analysis.found.gap_rows(&timeline).next().expect("a gap");
    assert_eq!(gap.enabler.as_deref(), Some("cuStreamSynchronize"));
    assert_eq!((gap.pid, gap.tid), (Some(Pid(100)), Some(Tid(100))));
}

#[test]
fn a_synchronisation_that_seems_to_return_before_the_op_it_waited_for_drained_the_queue() {
    // The op before the gap ends at 1,000 µs of the device's clock.
    let enabler = |before_ns: i64| {
        let mut scene = Scene::with_gap(3000);
        scene.call("cuStreamSynchronize", 20, 1000, 9).end_ns.0 -= before_ns;
        let timeline = scene.timeline();
        let analysis = crate::attribute::analyze(&timeline).expect("time adds up");
        analysis.found.gap_rows(&timeline).next().expect("a gap").enabler.map(|name| name.to_string())
    };
    assert_eq!(enabler(4).as_deref(), Some("cuStreamSynchronize"));
    assert_eq!(enabler(-4).as_deref(), Some("cuStreamSynchronize"));
    assert_eq!(enabler(2_000), None, "it waited for something else");
}

#[test]
fn a_thread_that_spins_in_a_synchronisation_waits() {
    let mut scene = Scene::with_gap(3000);
    scene.call("cudaDeviceSynchronize", 20, 1200, 9);
    assert_eq!(scene.told()[0], "1000-1200 cuda.sync cudaDeviceSynchronize");
}

#[test]
fn a_synchronisation_with_another_device_is_a_dependency() {
    let mut scene = Scene::with_gap(3000);
    scene.call("cuStreamSynchronize", 1100, 2200, 9);
    scene.syncs.push(sync("stream", 9, 1100, 2200, 2, 7));
    scene.launch(1050, 1060, 10);
    let op = scene.kernel(1070, 2195, 10);
    op.device = DeviceId(1);
    op.context = ContextId(2);
    let told = scene.told();
    assert!(told.contains(&"1100-2195 gpu.dependency kernel_10".to_owned()), "{told:?}");
}

#[test]
fn driver_work_is_named_whether_it_runs_or_blocks() {
    for (name, cause) in [
        ("cuMemAlloc_v2", "cuda.malloc"),
        ("cuMemFree_v2", "cuda.free"),
        ("cuMemHostAlloc", "cuda.pin"),
        ("cuModuleLoadData", "cuda.module_load"),
        ("cuGraphInstantiateWithFlags", "cuda.graph_build"),
        ("cuCtxCreate_v2", "cuda.init"),
        ("cuLinkComplete", "cuda.jit"),
        ("cuPointerGetAttribute", "cuda.api"),
    ] {
        let mut scene = Scene::with_gap(3000);
        scene.call(name, 1100, 2900, 9);
        assert_eq!(scene.told()[1], format!("1100-2900 {cause} {name}"));
        scene.off(MAIN, 1200, 2500, 2500).by_kind("irq", "irq 45 nvidia").inside("ioctl", 1190);
        assert_eq!(
            scene.told()[1..4],
            ["1100-1200", "1200-2500", "2500-2900"].map(|time| format!("{time} {cause} {name}"))
        );
    }
}

#[test]
fn the_drivers_lock_has_a_holder() {
    let mut scene = Scene::with_gap(3000);
    scene.thread((100, 101), "helper");
    scene.call("cuMemAlloc_v2", 1100, 2900, 9);
    scene.call("cuMemFree_v2", 1050, 2860, 10).tid = Tid(101);
    scene.off(MAIN, 1200, 2850, 2850).by((100, 101), "helper").inside("futex", 1190);
    assert!(scene.told().contains(&"1200-2850 cuda.lock 101/helper".to_owned()), "{:?}", scene.told());
}

#[test]
fn overhead_within_a_call_is_named_by_its_kind() {
    let mut scene = Scene::with_gap(3000);
    for (kind, start) in [("lazy_function_loading", 2000), ("instrumentation", 2500)] {
        scene.overhead.push(CudaOverhead {
            id: RowId(start),
            pid: Pid(MAIN.0),
            tid: Some(Tid(MAIN.1)),
            kind: kind.into(),
            start_ns: us(start),
            end_ns: us(start + 100),
            correlation_id: None,
        });
    }
    let launch = scene.api.last_mut().expect("the launch");
    launch.start_ns = us(1900);
    assert_eq!(
        scene.told()[1..6],
        [
            "1900-2000 cuda.launch cuLaunchKernel",
            "2000-2100 cuda.module_load lazy_function_loading",
            "2100-2500 cuda.launch cuLaunchKernel",
            "2500-2600 tool.overhead instrumentation",
            "2600-2995 cuda.launch cuLaunchKernel",
        ]
    );
}

#[test]
fn nested_calls_of_runtime_and_driver_are_one_launch() {
    let mut scene = Scene::with_gap(3000);
    scene.call("cudaLaunchKernel", 2900, 2998, 2).domain = "runtime".into();
    assert_eq!(
        scene.told()[1..],
        [
            "2900-2985 cuda.launch cudaLaunchKernel",
            "2985-2995 cuda.launch cuLaunchKernel",
            "2995-2998 cuda.launch cudaLaunchKernel",
            "2998-3000 gpu.submit_latency kernel_2",
        ]
    );
}

#[test]
fn an_exposed_copy_is_its_own_cause() {
    let mut scene = Scene::with_gap(3000);
    scene.call("cuMemcpyHtoD_v2", 1200, 2600, 9);
    scene.copy(1500, 2500, 9, "pageable");
    assert_eq!(
        scene.told(),
        [
            "1000-1200 host.cpu.user /usr/bin/python3",
            // Staging, on the host, before and after the device's part.
            "1200-1500 copy.pageable cuMemcpyHtoD_v2",
            "1500-2500 copy.pageable HtoD 1000000 bytes at 1.00 GB/s",
            "2500-2600 copy.pageable cuMemcpyHtoD_v2",
            "2600-2985 host.cpu.user /usr/bin/python3",
            "2985-2995 cuda.launch cuLaunchKernel",
            "2995-3000 gpu.submit_latency kernel_2",
        ]
    );
    assert_eq!(scene.segments()[2].stage.as_str(), "h2d");
    assert_eq!(scene.segments()[2].tid, Some(Tid(100)));
    for (kind, host, cause) in [
        ("PtoP", "device", "copy.peer"),
        ("DtoD", "device", "copy.device"),
        ("DtoH", "pinned", "copy.pinned"),
    ] {
        let copy = scene.gpu_ops.last_mut().expect("the copy");
        copy.copy_kind = Some(kind.into());
        copy.src_kind = Some(host.into());
        assert!(scene.told()[2].starts_with(&format!("1500-2500 {cause} {kind}")), "{:?}", scene.told());
    }
}

#[test]
fn collectives_alone_are_said_to_be_undecided() {
    let mut scene = Scene::with_gap(3000);
    scene.launch(20, 30, 9);
    scene.kernel(1000, 2900, 9).name = "ncclDevKernel_AllReduce_Sum_f16".into();
    assert_eq!(scene.told()[0], "1000-2900 comm.wait_or_transfer ncclDevKernel_AllReduce_Sum_f16");
    assert_eq!(scene.segments()[0].stage.as_str(), "communication");
}

#[test]
fn without_a_launch_the_cause_is_unknown() {
    let mut scene = Scene::with_gap(3000);
    scene.api.pop();
    assert_eq!(scene.told(), ["1000-3000 unknown.no_launch_record kernel_2"]);
    // Launched before the first call that is recorded.
    scene.api[0].correlation_id = CorrelationId(5);
    assert_eq!(scene.told(), ["1000-3000 unknown.before_attach kernel_2"]);
}

#[test]
fn a_driver_thread_that_runs_meanwhile_does_the_calls_work() {
    let mut scene = Scene::with_gap(3000);
    scene.call("cuMemAlloc_v2", 1100, 2900, 9);
    scene.off(MAIN, 1200, 1200, 2500).behind((100, 150), "sim-gpu-dma", 1300).state = "preempted".into();
    assert_eq!(scene.told()[2], "1200-2500 cuda.malloc cuMemAlloc_v2");
    scene.off_cpu[0].culprit_comm = Some("hog".into());
    assert_eq!(scene.told()[2], "1200-2500 host.runq.oversubscribed 100/hog");
}
