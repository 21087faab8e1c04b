//! `gapbench cost`: what recording costs, as ratios within one run.

mod demo;
mod instructions;
mod micro;
mod ratio;
mod recorder;
mod shim;

pub use instructions::run_loop as shim_loop;

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

use crate::place::Place;
use crate::{docs, table};

/// What to measure.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Parts to measure: getppid, getppid-emitted, pread, pread-emitted, pingpong, scan, cpu, shim, demo [default: all, and write the page]
    parts: Vec<String>,
    /// Pairs of measurements of each part
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pairs: u32,
    /// The demo's training loop
    #[arg(long, default_value = "tracer-user/assets/demo/train.py")]
    train: PathBuf,
    #[command(flatten)]
    place: Place,
}

/// Runs the command.
///
/// # Errors
/// A part cannot be measured.
pub fn run(args: &Args) -> Result<ExitCode> {
    let wanted = |name: &str| args.parts.is_empty() || args.parts.iter().any(|part| part == name);
    let known = |part: &&String| {
        matches!(part.as_str(), "demo" | "shim") || micro::LOOPS.iter().any(|spec| spec.name == *part)
    };
    if let Some(unknown) = args.parts.iter().find(|part| !known(part)) {
        bail!("there is no part `{unknown}`");
    }
    std::fs::create_dir_all(args.place.data())
        .with_context(|| format!("cannot make {}", args.place.data().display()))?;
    let mut loops = Vec::new();
    for part in micro::LOOPS.iter().filter(|spec| wanted(spec.name)) {
        eprintln!("cost: {}", part.name);
        loops.push(micro::measure(&args.place, part, args.pairs)?);
    }
    let shim = if wanted("shim") {
        eprintln!("cost: shim");
        Some(shim::measure(&args.place, args.pairs)?)
    } else {
        None
    };
    let demo = if wanted("demo") {
        eprintln!("cost: demo");
        Some(demo::measure(&args.place, &args.train, args.pairs)?)
    } else {
        None
    };
    let mut text = String::new();
    if !loops.is_empty() {
        text.push_str(&loops_section(&loops));
    }
    if let Some(shim) = &shim {
        text.push_str(&shim::section(shim));
    }
    if let Some(demo) = &demo {
        text.push_str(&demo_section(demo));
    }
    print!("{text}");
    if let (true, Some(demo)) = (args.parts.is_empty(), &demo) {
        let page = page(&text, args.pairs, &docs::setting(&demo.meta));
        docs::write(&args.place.docs, "performance.md", &page)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn loops_section(loops: &[micro::Measured]) -> String {
    let head =
        ["loop", "plain", "not recorded", "recorded", "events lost", "recorder's memory", "one operation is"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for measured in loops {
        rows.push(vec![
            measured.name.to_owned(),
            format!("{:.0} ns", measured.plain_ns),
            measured.beside.show(),
            measured.recorded.show(),
            measured.lost.to_string(),
            format!("{} MB", measured.memory / 1_000_000),
            measured.what.to_owned(),
        ]);
    }
    format!(
        "## Small loops\n\n`not recorded`: gtrace records another process. `recorded`: gtrace records the loop.\n\n{}\n",
        table::aligned(&rows)
    )
}

fn demo_section(demo: &demo::Measured) -> String {
    let lost: u64 = demo.meta.losses.values().sum();
    let mut text = format!(
        "## The demo's training loop\n\n{:.1} steps/s with nothing attached; recorded, {} times as many. Events lost: {lost}. \
         The recorder used {:.2} s of CPU in a recording of {:.1} s.\n\n",
        demo.plain,
        demo.recorded.show(),
        demo.meta.recorder_cpu_ns as f64 / 1e9,
        demo.meta.ended_ns.map_or(0.0, |end| (end - demo.meta.started_ns) as f64 / 1e9),
    );
    let mut rows = vec![["table", "rows", "bytes", "bytes a row"].map(str::to_owned).to_vec()];
    for (name, count, bytes) in demo.tables.iter().filter(|(_, count, _)| *count > 0) {
        let each = *bytes as f64 / *count as f64;
        rows.push(vec![name.clone(), count.to_string(), bytes.to_string(), format!("{each:.1}")]);
    }
    let _ = write!(text, "What its recording takes on disk:\n\n{}\n", table::aligned(&rows));
    text
}

fn page(text: &str, pairs: u32, setting: &str) -> String {
    format!(
        "# What recording costs

Each figure is the median of the ratios of {pairs} pairs that alternate within one run, least and greatest in brackets; a
ratio is comparable from machine to machine, a time is not. Differences below about 6 % are noise on a machine with 2 CPUs.

Written by `cargo xtask bench` on {date}. {setting}.

{text}",
        date = docs::today()
    )
}
