//! What a right attribution of the real recordings says.

use std::collections::HashMap;
use std::fmt::Write as _;

use gtrace::collective::match_ranks;
use gtrace::store::schema::{Collective, Gap, GapSegment};

use super::folder::{Made, make, traces};

/// Idle time of a bundle by cause, and all of it.
struct Idle {
    segments: Vec<(Gap, GapSegment)>,
    total: i64,
}

impl Idle {
    fn of(made: &Made) -> Self {
        let gaps: HashMap<i64, Gap> = made
            .bundle
            .read::<Gap>()
            .unwrap()
            .into_iter()
            .filter(|gap| gap.kind.as_str() == "idle")
            .map(|gap| (gap.gap_id.0, gap))
            .collect();
        let total = gaps.values().map(|gap| (gap.end_ns - gap.start_ns).0).sum();
        let segments = made
            .bundle
            .read::<GapSegment>()
            .unwrap()
            .into_iter()
            .filter_map(|segment| Some((gaps.get(&segment.gap_id.0)?.clone(), segment)))
            .collect();
        Self { segments, total }
    }

    /// Share of idle time in segments of which `is` holds, in percent.
    fn percent(&self, is: impl Fn(&GapSegment) -> bool) -> f64 {
        let ns: i64 =
            self.segments.iter().filter(|(_, s)| is(s)).map(|(_, s)| (s.end_ns - s.start_ns).0).sum();
        ns as f64 / self.total as f64 * 100.0
    }

    fn cause(&self, code: &str) -> f64 {
        self.percent(|segment| segment.cause.starts_with(code))
    }

    /// The segments of the longest gap, by cause and object, in ns.
    fn longest(&self) -> HashMap<(String, String), i64> {
        let longest =
            self.segments.iter().map(|(gap, _)| gap).max_by_key(|gap| (gap.end_ns - gap.start_ns).0).unwrap();
        let mut sums = HashMap::new();
        for (_, s) in self.segments.iter().filter(|(gap, _)| gap.gap_id == longest.gap_id) {
            let object = s.object.as_deref().unwrap_or_default().to_owned();
            *sums.entry((s.cause.to_string(), object)).or_default() += (s.end_ns - s.start_ns).0;
        }
        sums
    }

    fn listing(&self) -> String {
        let mut sums: HashMap<(String, String), i64> = HashMap::new();
        for (_, s) in &self.segments {
            let object = s.object.as_deref().unwrap_or_default().chars().take(50).collect();
            *sums.entry((s.cause.to_string(), object)).or_default() += (s.end_ns - s.start_ns).0;
        }
        let mut sums: Vec<_> = sums.into_iter().collect();
        sums.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
        let mut text = String::new();
        for ((cause, object), ns) in sums.iter().take(12) {
            let percent = *ns as f64 / self.total as f64 * 100.0;
            let _ = write!(text, "\n{percent:6.2} % {cause} {object}");
        }
        text
    }
}

macro_rules! idle {
    ($test:literal, $file:literal) => {{
        let Some(folder) = traces($test) else { return };
        let made = make(&folder.join($file));
        let idle = Idle::of(&made);
        println!("{}: {} ns idle{}", $file, idle.total, idle.listing());
        idle
    }};
}

#[test]
fn without_workers_the_loader_is_the_cause_and_with_workers_it_is_not() {
    let alone = idle!("loader pair", "kineto_resnet50_workers0.json.gz");
    let loader = alone.cause("host.data_loader");
    assert!((72.0..75.0).contains(&loader), "{loader}");
    assert!((loader - alone.percent(|s| s.stage.as_str() == "data_loading")).abs() < 0.5);
    let workers = idle!("loader pair", "kineto_resnet50_workers4.json.gz");
    assert!(workers.cause("host.data_loader") < 0.5, "{}", workers.cause("host.data_loader"));
}

#[test]
fn the_two_late_ranks_of_eight() {
    let Some(folder) = traces("the_two_late_ranks_of_eight") else { return };
    let ranks: Vec<(i32, Vec<Collective>)> = (0..8)
        .map(|rank| {
            let made = make(&folder.join(format!("megatron_tp8_rank{rank}.json.gz")));
            assert_eq!(made.imported.rank, Some(rank));
            (rank, made.bundle.read::<Collective>().unwrap())
        })
        .collect();
    let matched = match_ranks(&ranks);
    assert_eq!((matched.matched, matched.unmatched), (84, 0));
    let mut late: Vec<i32> = matched.late().iter().map(|rank| rank.rank).collect();
    late.sort_unstable();
    assert_eq!(late, [0, 6], "{matched:?}");
    for rank in &matched.ranks {
        let ms = rank.in_collectives.0 / 1_000_000;
        let expected = match rank.rank {
            0 => 241..=241,
            6 => 263..=264,
            _ => 412..=495,
        };
        assert!(expected.contains(&ms), "rank {}: {ms} ms", rank.rank);
    }
}

#[test]
fn the_allocator_of_an_unpooled_run() {
    let idle = idle!("allocator", "tracelens_resnet18_no_pool_mi300x.json.gz");
    let allocation = idle.cause("cuda.malloc") + idle.cause("cuda.free");
    assert!((92.0..=96.0).contains(&allocation), "{allocation}");
    assert!(idle.percent(|s| s.object.as_deref() == Some("hipFree")) > 0.0);
    let longest = idle.longest();
    let free = longest[&("cuda.free".to_owned(), "hipFree".to_owned())];
    assert!(free > 60_000_000, "{longest:?}");
}

#[test]
fn a_cold_start_is_context_creation_and_lazy_loading() {
    let idle = idle!("cold start", "hta_alexnet_cold_start.json.gz");
    let longest = idle.longest();
    let ms = |cause: &str, object: &str| longest[&(cause.to_owned(), object.to_owned())] / 1_000_000;
    assert!((6_530..=6_535).contains(&ms("cuda.init", "cudaFree")), "{longest:?}");
    assert!((3_054..=3_057).contains(&ms("cuda.module_load", "cudaLaunchKernel")), "{longest:?}");
}

#[test]
fn the_loader_and_the_first_use_of_a_desktop_card() {
    let idle = idle!("param", "param_resnet_loader.json.gz");
    let loader = idle.cause("host.data_loader");
    assert!((66.0..70.0).contains(&loader), "{loader}");
    // Two calls that set up, 1.05 s, and a first launch, 0.73 s.
    assert!((10.0..12.0).contains(&idle.cause("cuda.init")), "{}", idle.cause("cuda.init"));
    assert!(idle.cause("cuda.module_load") > 7.0, "{}", idle.cause("cuda.module_load"));
}

#[test]
fn compiling_and_loading_of_a_first_sample() {
    let idle = idle!("compile", "particle_transformer_compile.json.gz");
    assert!((64.0..67.0).contains(&idle.cause("cuda.module_load")), "{}", idle.cause("cuda.module_load"));
}

#[test]
fn work_that_was_queued_already_is_not_the_launching_thread_s() {
    let idle = idle!("prequeued", "hta_prequeued_a100_rank0.json.gz");
    let device =
        idle.cause("gpu.") + idle.cause("unknown.no_launch_record") + idle.cause("unknown.before_attach");
    assert!(device > 85.0, "{device}");
    let host = idle.cause("host.") + idle.cause("cuda.");
    assert!(host < 14.0, "{host}");
}

#[test]
fn eager_decoding_is_starved_by_the_host() {
    let idle = idle!("eager", "tracelens_vllm_eager_b200.json.gz");
    let host = idle.cause("host.") + idle.cause("cuda.") + idle.cause("gpu.submit_latency");
    assert!(host > 97.0, "{host}");
    assert!(idle.cause("host.") + idle.cause("cuda.") > 80.0);
}

#[test]
fn the_console_and_the_file() {
    let idle = idle!("console", "nsys_mordred_console_wait.sqlite.gz");
    let longest = idle.longest();
    let getc = longest[&("host.user".to_owned(), "standard input".to_owned())];
    // 4,651.7 ms, less what of it lies before the gap.
    assert!((4_651_000_000..4_652_000_000).contains(&getc), "{longest:?}");
    let read: i64 = idle
        .segments
        .iter()
        .filter(|(gap, s)| {
            (gap.end_ns - gap.start_ns).0 == 1_244_871_654 && s.object.as_deref() == Some("read")
        })
        .map(|(_, s)| (s.end_ns - s.start_ns).0)
        .sum();
    assert_eq!(read, 1_240_389_045, "by the calls themselves");
    // The stack says that it reads a file, the trace does not say what the read waited for.
    assert!(idle.cause("storage") == 0.0);
}

#[test]
fn busy_devices_have_next_to_nothing_to_report() {
    for (file, most) in [
        ("tracelens_vllm_graph_mi300x.json.gz", 0.3),
        ("hta_ns_resolution.json.gz", 1.7),
        ("megatron_tp8_rank4.json.gz", 0.6),
    ] {
        let Some(folder) = traces("busy") else { return };
        let made = make(&folder.join(file));
        let report = gtrace::report::load::report(&made.bundle, &|_| {}).unwrap();
        let idle = Idle::of(&made);
        let window: i64 = report.devices.iter().map(gtrace::report::model::Device::window_ns).sum();
        let share = idle.total as f64 / window as f64 * 100.0;
        assert!(share < most, "{file}: {share} % idle");
    }
}
