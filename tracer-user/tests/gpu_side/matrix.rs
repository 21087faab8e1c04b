//! The matrix of docs/cuda.md: what comes of each CUDA version under each condition. `GTRACE_BLESS=1` runs all of it (some
//! minutes) and writes the page; otherwise a few versions are run, and must be as the page says.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use gtrace::record::gpu::GpuSide;
use tracer_abi::shim::{CollectMode, Collection};

use super::target::{Rows, Target, VERSIONS, drain_until, find, record};

pub const TESTS: &[(&str, fn())] = &[("matrix::docs_cuda_md_says_what_comes_of_it", page)];

/// The versions that are run when the page is only checked: where policies change.
const CHECKED: [&str; 4] = ["11.8", "12.4", "12.9", "13.3"];
const BEGIN: &str = "<!-- matrix: written by GTRACE_BLESS=1 cargo test --test gpu_side -- matrix -->";
const END: &str = "<!-- end of the matrix -->";

/// What came, in words: what is recorded, and what is said.
type Outcome = (String, String);

/// A condition.
struct Condition {
    name: &'static str,
    run: fn(&str) -> Outcome,
}

macro_rules! from_start {
    ($name:literal, $work:literal, $ops:literal $(, $variable:literal = $value:literal)*) => {
        Condition {
            name: $name,
            run: |cuda| {
                let variables = [("GTRACE_START", "1") $(, ($variable, $value))*];
                let (side, rows) = record(&mut Target::start($work, cuda, &variables));
                outcome(&side, &rows, $ops)
            },
        }
    };
}

const CONDITIONS: &[Condition] = &[
    from_start!("from the start", "steps:10", 120),
    Condition { name: "live attach", run: |cuda| attached(cuda, 1) },
    Condition { name: "attach, detach, attach again", run: |cuda| attached(cuda, 2) },
    from_start!("CUDA graphs, node by node", "graph:5", 60),
    Condition { name: "CUDA graphs, each launch as one", run: whole_graphs },
    Condition { name: "live attach to a process that replays graphs", run: late_graphs },
    from_start!("another subscriber", "steps:10", 120, "SIMCUDA_SUBSCRIBER_BUSY" = "another-tool"),
    from_start!(
        "buffers of another client (`FOREIGN_BUFFERS`)",
        "steps:10",
        120,
        "SIMCUDA_FOREIGN_BUFFERS" = "1"
    ),
    from_start!("CUPTI not initialised (15)", "steps:10", 120, "SIMCUDA_CUPTI_ERROR" = "15"),
    from_start!("CUPTI fails (999)", "steps:10", 120, "SIMCUDA_CUPTI_ERROR" = "999"),
    from_start!("times all zero (`ZERO_AFTER`)", "steps:10", 120, "SIMCUDA_ZERO_AFTER" = "50"),
    from_start!("end before start", "steps:10", 120, "SIMCUDA_END_BEFORE_START" = "10"),
    from_start!("start before its launch", "steps:10", 120, "SIMCUDA_START_BEFORE_LAUNCH" = "10"),
    from_start!("records twice (`DUPLICATES`)", "steps:10", 120, "SIMCUDA_DUPLICATES" = "10"),
    from_start!("records dropped", "steps:10", 120, "SIMCUDA_DROP_RECORDS" = "10"),
    from_start!("buffers dropped", "steps:10", 120, "SIMCUDA_DROP_BUFFERS" = "1"),
    from_start!("unknown kinds between", "steps:10", 120, "SIMCUDA_UNKNOWN_KINDS" = "3"),
    from_start!("buffers late, or only when flushed", "steps:10", 120, "SIMCUDA_LATE_BUFFERS_MS" = "-1"),
    from_start!("enabling takes 300 ms", "steps:10", 120, "SIMCUDA_SLOW_ENABLE_MS" = "300"),
    from_start!("a NULL buffer would crash", "steps:10", 120, "SIMCUDA_NULL_BUFFER_CRASH" = "1"),
    Condition { name: "kernels fall silent (`SILENT_AFTER`)", run: silent },
];

/// What came of a program that did so many ops.
fn outcome(side: &GpuSide, rows: &Rows, ops: usize) -> Outcome {
    let refused = side.processes().iter().find_map(|process| process.refused.clone());
    // Of records that CUPTI drops some may be calls only.
    let dropped = rows.lost("cupti.dropped") > 0 && !rows.ops.is_empty();
    let recorded = match rows.ops.len() {
        all if all == ops && !dropped => "all work",
        0 => "nothing",
        _ => "the rest of the work",
    };
    let clock = side.processes().first().map(|process| process.clock.clone()).unwrap_or_default();
    let converted = refused.is_none() && clock == "realtime";
    let recorded = if converted { format!("{recorded}, times converted") } else { recorded.to_owned() };
    let mut said: BTreeSet<String> = rows
        .losses
        .iter()
        .map(|loss| format!("`{}`: {}", loss.source, without_numbers(&loss.reason)))
        .collect();
    said.extend(refused.map(|reason| format!("refused: {}", without_numbers(&reason))));
    (recorded, said.into_iter().collect::<Vec<_>>().join("; "))
}

/// Numbers and folders differ from run to run.
fn without_numbers(text: &str) -> String {
    let word = |word: &str| match word.rsplit_once('/') {
        Some((folder, file)) if folder.starts_with('/') => file.to_owned(),
        _ if word.len() > 1 && word.chars().all(|c| c.is_ascii_digit()) => "N".to_owned(),
        _ => word.to_owned(),
    };
    text.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// A recorder that comes to a process which uses CUDA already, so often.
fn attached(cuda: &str, times: usize) -> Outcome {
    let target = Target::start("loop", cuda, &[]);
    target.expect("ready");
    let mut last = (String::new(), String::new());
    for _ in 0..times {
        let (mut side, mut rows) = (GpuSide::new(), Rows::default());
        find(&mut side, &target);
        let enough = drain_until(&mut side, &mut rows, 20, |_, rows| rows.of_kind("kernel") > 200);
        side.finish(Duration::from_secs(2), &mut |row| rows.take(row));
        assert!(enough, "{cuda}: {:?}", side.processes());
        let ops = rows.ops.len();
        last = outcome(&side, &rows, ops);
        drop(side);
    }
    last
}

fn whole_graphs(cuda: &str) -> Outcome {
    let collection = Collection { mode: CollectMode::Full, whole_graphs: true };
    let raw = collection.to_raw().to_string();
    let mut target =
        Target::start("graph:5", cuda, &[("GTRACE_START", "1"), ("GTRACE_COLLECT", raw.as_str())]);
    let (mut side, mut rows) = (GpuSide::new(), Rows::default());
    side.collect(collection, "asked for");
    find(&mut side, &target);
    drain_until(&mut side, &mut rows, 20, |_, _| target.child.try_wait().unwrap().is_some());
    side.finish(Duration::from_secs(2), &mut |row| rows.take(row));
    outcome(&side, &rows, 5)
}

fn late_graphs(cuda: &str) -> Outcome {
    let target = Target::start("loop", cuda, &[]);
    target.expect("ready");
    let (mut side, mut rows) = (GpuSide::new(), Rows::default());
    side.note_graph_launches(std::iter::once((target.pid(), 1_000_000)).collect());
    find(&mut side, &target);
    let decided = |side: &GpuSide, rows: &Rows| {
        rows.ops.len() > 200 || side.processes().iter().any(|process| process.refused.is_some())
    };
    assert!(drain_until(&mut side, &mut rows, 20, decided), "{cuda}: neither records nor a reason");
    side.finish(Duration::from_secs(2), &mut |row| rows.take(row));
    let ops = rows.ops.len().max(1);
    outcome(&side, &rows, ops)
}

fn silent(cuda: &str) -> Outcome {
    let target = Target::start("loop", cuda, &[("GTRACE_START", "1"), ("SIMCUDA_SILENT_AFTER", "100")]);
    let (mut side, mut rows) = (GpuSide::new(), Rows::default());
    find(&mut side, &target);
    drain_until(&mut side, &mut rows, 20, |_, rows| rows.lost("cupti.silent") > 0);
    drop(side);
    let mut side = GpuSide::new();
    find(&mut side, &target);
    outcome(&side, &rows, usize::MAX)
}

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/cuda.md")
}

/// The table of what came in each version.
fn table(outcomes: &[(&'static str, Vec<(&'static str, Outcome)>)]) -> String {
    let mut text = String::from("| condition | CUDA | recorded | said |\n|---|---|---|---|\n");
    for (name, by_version) in outcomes {
        let mut rest = by_version.as_slice();
        let mut first = true;
        while let Some((from, outcome)) = rest.first() {
            let same = rest.iter().take_while(|(_, other)| other == outcome).count();
            let to = rest[same - 1].0;
            let versions = if *from == to { (*from).to_owned() } else { format!("{from} – {to}") };
            let name = if first { *name } else { "" };
            let _ = writeln!(text, "| {name} | {versions} | {} | {} |", outcome.0, outcome.1);
            (first, rest) = (false, &rest[same..]);
        }
    }
    text
}

/// The row of the table that holds a condition and a version.
fn cell<'page>(page: &'page str, name: &str, version: &str) -> Option<(&'page str, &'page str)> {
    let place = |version: &str| VERSIONS.iter().position(|known| *known == version);
    let mut within = false;
    for line in page.lines().filter(|line| line.starts_with('|')) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [condition, versions, recorded, said] = cells[..] else { continue };
        within = if condition.is_empty() { within } else { condition == name };
        let (from, to) = versions.split_once(" – ").unwrap_or((versions, versions));
        if within && place(from) <= place(version) && place(version) <= place(to) && place(from).is_some() {
            return Some((recorded, said));
        }
    }
    None
}

fn page() {
    let bless = std::env::var_os("GTRACE_BLESS").is_some();
    let page = std::fs::read_to_string(path()).unwrap();
    let versions: &[&'static str] = if bless { &VERSIONS } else { &CHECKED };
    let mut outcomes = Vec::new();
    for condition in CONDITIONS {
        let by_version: Vec<(&'static str, Outcome)> =
            versions.iter().map(|version| (*version, (condition.run)(version))).collect();
        if !bless {
            for (version, (recorded, said)) in &by_version {
                let written = cell(&page, condition.name, version);
                assert_eq!(
                    written,
                    Some((recorded.as_str(), said.as_str())),
                    "{}, {version}",
                    condition.name
                );
            }
        }
        outcomes.push((condition.name, by_version));
    }
    if bless {
        let (before, rest) = page.split_once(BEGIN).expect("the page has the matrix's beginning");
        let (_, after) = rest.split_once(END).expect("and its end");
        let text = format!("{before}{BEGIN}\n\n{}\n{END}{after}", table(&outcomes));
        std::fs::write(path(), text).unwrap();
    }
}
