//! `gapbench composed`: random scenarios of several causes, scored like all others; and what happens if one of their causes
//! is really gone, against what the recording with it said would.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use gtrace::attribute::block::Found;
use gtrace::attribute::read_timeline;
use gtrace::attribute::timeline::Timeline;
use gtrace::attribute::what_if::{Key, Player};
use gtrace::store::Bundle;

use crate::docs;
use crate::place::Place;
use crate::record::{self, Recording};
use crate::score::{self, ENOUGH, Score};
use crate::table::aligned;
use crate::truth::Planted;

/// What to run.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// How many scenarios
    #[arg(long, default_value_t = 10)]
    count: u64,
    /// The number of the first one; the others follow
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Rounds of each
    #[arg(long, default_value_t = 60)]
    rounds: u32,
    /// Run each again without each of its causes, and compare
    #[arg(long)]
    what_if: bool,
    /// Write composed.md
    #[arg(long)]
    page: bool,
    #[command(flatten)]
    place: Place,
}

const HEAD: &str = "# Random scenarios

Programs of two to five causes (a sleep, computing, a cold read, a durable write, a copy of pageable memory), each at the end of
a chain of up to five threads and processes, on one to four GPUs. In each round each cause comes with its own probability, in
random order; in every second one the launch queue was drained first. All of it follows from the seed:
`workloads run composed --seed N`. The scores are those of [accuracy.md](accuracy.md), weighed by planted time over the GPUs.
*Left out* is planted time during which the kernel counted more than 2 % of waiting for a CPU: other programs did that.
";

const WHAT_IF: &str = "Each recording is played again without all that was planted of one cause, and the program is run again
without it. Times are from the first op to the last. Both runs are recorded; what other programs did in one of them and not in
the other is part of the error.
";

/// A prediction may be wrong by this part of what was measured.
const CLOSE: f64 = 0.10;

/// One scenario's result.
struct Scored {
    seed: u64,
    causes: String,
    devices: usize,
    score: Score,
}

/// A prediction beside what came true, in ns.
struct Compared {
    seed: u64,
    without: String,
    recorded: i64,
    predicted: i64,
    measured: i64,
}

/// Runs the command.
///
/// # Errors
/// A scenario cannot be recorded.
pub fn run(args: &Args) -> Result<ExitCode> {
    let (mut scored, mut compared, mut setting) = (Vec::new(), Vec::new(), None);
    for seed in args.seed..args.seed + args.count {
        let recording = recorded(args, seed, None)?;
        let score = score_by_device(&recording);
        setting = Some(recording.meta.clone());
        if score.recall < ENOUGH || score.precision < ENOUGH {
            say_what_is_wrong(seed, &recording);
        }
        let devices = recording.gaps.iter().map(|gap| gap.device).collect::<std::collections::BTreeSet<_>>();
        scored.push(Scored {
            seed,
            causes: deeds(&recording.truth).join(", "),
            devices: devices.len(),
            score,
        });
        if args.what_if {
            let one = compare(args, seed, &recording)?;
            compared.extend(one);
        }
    }
    let (recall, precision, unknown) = together(&scored);
    let close = compared.iter().filter(|one| one.error().abs() <= CLOSE).count();
    let sums =
        format!("By time over all: recall {recall:.4}, precision {precision:.4}, unknown {unknown:.4}.");
    let mut text = format!("{}\n{sums}\n", scored_table(&scored));
    if args.what_if {
        let within = format!("{close} of {} predictions within {:.0} %.", compared.len(), CLOSE * 100.0);
        text = format!(
            "{text}\n## Without one of the causes\n\n{WHAT_IF}\n{}\n{within}\n",
            compared_table(&compared)
        );
    }
    print!("{text}");
    if args.page
        && let Some(meta) = &setting
    {
        let (date, setting) = (docs::today(), docs::setting(meta));
        let page = format!("{HEAD}\nWritten by `gapbench composed` on {date}. {setting}.\n\n{text}");
        docs::write(&args.place.docs, "composed.md", &page)?;
    }
    let passes = recall >= ENOUGH && precision >= ENOUGH && close == compared.len();
    Ok(if passes { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn deeds(truth: &[Planted]) -> Vec<String> {
    let mut deeds: Vec<String> = truth.iter().filter_map(|line| line.deed.clone()).collect();
    deeds.sort_unstable();
    deeds.dedup();
    deeds
}

/// Each device's gaps are scored by themselves, and weighed by the planted time in them: a stall of the launching thread is
/// a gap on every device.
fn score_by_device(recording: &Recording) -> Score {
    let mut devices: BTreeMap<i32, Vec<score::Gap>> = BTreeMap::new();
    for gap in &recording.gaps {
        devices.entry(gap.device).or_default().push(gap.clone());
    }
    let scores: Vec<Score> = devices
        .into_values()
        .map(|gaps| {
            let ids: std::collections::HashSet<i64> = gaps.iter().map(|gap| gap.id).collect();
            let own = recording.segments.iter().filter(|segment| ids.contains(&segment.gap));
            score::score(&gaps, &own.cloned().collect::<Vec<_>>(), &recording.truth)
        })
        .collect();
    weighed(&scores)
}

fn weighed(scores: &[Score]) -> Score {
    let planted: i64 = scores.iter().map(|score| score.planted_ns).sum();
    let mean = |value: fn(&Score) -> f64| {
        let sum: f64 = scores.iter().map(|score| value(score) * score.planted_ns as f64).sum();
        sum / planted.max(1) as f64
    };
    Score {
        recall: mean(|score| score.recall),
        precision: mean(|score| score.precision),
        unknown: mean(|score| score.unknown),
        exact: mean(|score| score.exact),
        thread: mean(|score| score.thread),
        enabler: mean(|score| score.enabler),
        conservation_ns: scores.iter().map(|score| score.conservation_ns).sum(),
        gaps: scores.iter().map(|score| score.gaps).sum(),
        planted_ns: planted,
        left_out: mean(|score| score.left_out),
    }
}

fn together(scored: &[Scored]) -> (f64, f64, f64) {
    let all = weighed(&scored.iter().map(|one| one.score).collect::<Vec<_>>());
    (all.recall, all.precision, all.unknown)
}

fn say_what_is_wrong(seed: u64, recording: &Recording) {
    eprintln!("gapbench: composed {seed}: planted {}", score::causes(&recording.truth));
    for (label, time) in score::wrong_labels(&recording.segments, &recording.truth).into_iter().take(6) {
        eprintln!("gapbench:   planted time under another name: {:10.3} ms {label}", time as f64 / 1e6);
    }
    for (label, time) in score::stray_labels(&recording.segments, &recording.truth).into_iter().take(6) {
        eprintln!("gapbench:   that name where nothing was planted: {:10.3} ms {label}", time as f64 / 1e6);
    }
}

/// Runs a scenario again without each of its causes.
fn compare(args: &Args, seed: u64, recording: &Recording) -> Result<Vec<Compared>> {
    let bundle = Bundle::open(&recording.bundle)?;
    let timeline = read_timeline(&bundle, &|_| {})?;
    let found = Found::new(&timeline)?;
    let whole = found.walk_all()?;
    let player = Player::new(&timeline, &found.roles).context("there is no GPU work")?;
    let mut compared = Vec::new();
    for deed in deeds(&recording.truth) {
        let lines: Vec<&Planted> =
            recording.truth.iter().filter(|line| line.deed.as_ref() == Some(&deed)).collect();
        let mut keys: Vec<Key> = whole
            .segments
            .iter()
            .filter(|segment| {
                lines.iter().any(|line| {
                    line.start_ns < segment.time.end.0
                        && line.end_ns > segment.time.start.0
                        && line.cause.cover(segment.cause.code())
                })
            })
            .map(|segment| segment.key(&whole.paths, &timeline, &found.roles))
            .collect();
        keys.sort_unstable();
        keys.dedup();
        let again = recorded(args, seed, Some(&deed))?;
        compared.push(Compared {
            seed,
            without: deed,
            recorded: player.window().length().0,
            predicted: player.without(&keys).0,
            measured: window(&again.bundle)?,
        });
    }
    Ok(compared)
}

/// Records a scenario, anew if the GPU side did not come up in its short life.
fn recorded(args: &Args, seed: u64, without: Option<&str>) -> Result<Recording> {
    let mut recording = record::composed(&args.place, seed, without, args.rounds)?;
    for _ in 0..2 {
        if !recording.gaps.is_empty() {
            break;
        }
        recording = record::composed(&args.place, seed, without, args.rounds)?;
    }
    Ok(recording)
}

/// From the first op to the last.
fn window(bundle: &Path) -> Result<i64> {
    let timeline: Timeline = read_timeline(&Bundle::open(bundle)?, &|_| {})?;
    let start = timeline.ops.iter().map(|op| op.start().0).min().context("there is no GPU work")?;
    let end = timeline.ops.iter().map(|op| op.end().0).max().context("there is no GPU work")?;
    Ok(end - start)
}

impl Compared {
    fn error(&self) -> f64 {
        (self.predicted - self.measured) as f64 / self.measured.max(1) as f64
    }
}

fn scored_table(scored: &[Scored]) -> String {
    let head = [
        "seed",
        "causes",
        "GPUs",
        "recall",
        "precision",
        "unknown",
        "gaps",
        "planted ms",
        "left out",
        "error ns",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(scored.iter().map(|one| {
        let score = &one.score;
        vec![
            one.seed.to_string(),
            one.causes.clone(),
            one.devices.to_string(),
            format!("{:.3}", score.recall),
            format!("{:.3}", score.precision),
            format!("{:.4}", score.unknown),
            score.gaps.to_string(),
            format!("{:.1}", score.planted_ns as f64 / 1e6),
            format!("{:.3}", score.left_out),
            score.conservation_ns.to_string(),
        ]
    }));
    aligned(&rows)
}

fn compared_table(compared: &[Compared]) -> String {
    let head = ["seed", "without", "recorded ms", "predicted ms", "measured ms", "error", ""];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(compared.iter().map(|one| {
        let ms = |ns: i64| format!("{:.1}", ns as f64 / 1e6);
        vec![
            one.seed.to_string(),
            one.without.clone(),
            ms(one.recorded),
            ms(one.predicted),
            ms(one.measured),
            format!("{:+.1} %", one.error() * 100.0),
            if one.error().abs() <= CLOSE { "close".into() } else { "WRONG".into() },
        ]
    }));
    aligned(&rows)
}
