//! `gapbench score`: records every case in both modes, scores it, and writes down the result.

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use gtrace::store::Meta;

use crate::case::{Case, Mode};
use crate::docs;
use crate::place::Place;
use crate::record::{self, Length, Recording};
use crate::score::{self, Score};
use crate::table::{self, Outcome};

/// What to run.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Names of scenarios, alone (`cold-read`) or with their neighbour (`cold-read+disk`) [default: all]
    scenarios: Vec<String>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// The tests' form: short recordings, those scenarios that a busy machine of two CPUs can hold to the bar, with neighbours under `gtrace run` only, up to three tries each, because
    /// a test machine may be taken by others at any moment; writes no page
    #[arg(long)]
    quick: bool,
    /// One mode only
    #[arg(long, value_parser = ["run", "attach"])]
    mode: Option<String>,
    #[command(flatten)]
    place: Place,
}

/// Runs the command.
///
/// # Errors
/// There is no such scenario, or a result cannot be written. A case that cannot be recorded is a result.
pub fn run(args: &Args) -> Result<ExitCode> {
    let mut cases = select(&args.scenarios)?;
    if args.quick && args.scenarios.is_empty() {
        cases.retain(Case::is_tested);
    }
    let length = if args.quick {
        Length { rounds: 30, attach_ms: 2_000 }
    } else {
        Length { rounds: 60, attach_ms: 3_000 }
    };
    let tries = if args.quick { 3 } else { 1 };
    let (mut outcomes, mut setting) = (Vec::new(), None);
    for case in &cases {
        for mode in [Mode::Run, Mode::Attach] {
            let other_mode = args.mode.as_deref().is_some_and(|only| only != mode.name());
            if other_mode || (args.quick && case.neighbour.is_some() && mode == Mode::Attach) {
                continue;
            }
            let mut score = one(&args.place, case, mode, length, &mut setting);
            for _ in 1..tries {
                if score.as_ref().is_ok_and(Score::passes) {
                    break;
                }
                eprintln!("gapbench: {} under {}: once more", case.name(), mode.name());
                score = one(&args.place, case, mode, length, &mut setting);
            }
            if let Err(error) = &score {
                eprintln!("gapbench: {} under {}: {error:#}", case.name(), mode.name());
            }
            let score = score.map_err(|error| format!("{error:#}"));
            outcomes.push(Outcome { name: case.name(), mode: mode.name(), score });
        }
    }
    report(args, &outcomes, setting.as_ref())?;
    let failed = outcomes.iter().filter(|outcome| !outcome.score.as_ref().is_ok_and(Score::passes)).count();
    eprintln!("gapbench: {} passed, {failed} failed", outcomes.len() - failed);
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn select(names: &[String]) -> Result<Vec<Case>> {
    let all = Case::all();
    let matches = |case: &Case, name: &String| case.name() == *name || case.scenario == name.as_str();
    if let Some(unknown) = names.iter().find(|name| !all.iter().any(|case| matches(case, name))) {
        let known: Vec<String> = all.iter().map(Case::name).collect();
        bail!("there is no scenario `{unknown}`; there are: {}", known.join(", "));
    }
    Ok(all
        .into_iter()
        .filter(|case| names.is_empty() || names.iter().any(|name| matches(case, name)))
        .collect())
}

fn one(place: &Place, case: &Case, mode: Mode, length: Length, setting: &mut Option<Meta>) -> Result<Score> {
    let recording = record::record(place, case, mode, length)?;
    let score = score::score(&recording.gaps, &recording.segments, &recording.truth);
    if !score.passes() {
        explain(case, mode, &recording);
    }
    setting.get_or_insert(recording.meta);
    Ok(score)
}

/// Says what a case that fails has instead of what was planted.
fn explain(case: &Case, mode: Mode, recording: &Recording) {
    let (name, mode) = (case.name(), mode.name());
    eprintln!("gapbench: {name} under {mode}: planted {}", score::causes(&recording.truth));
    for (label, time) in score::wrong_labels(&recording.segments, &recording.truth).into_iter().take(6) {
        eprintln!("gapbench:   planted time under another name: {:10.3} ms {label}", time as f64 / 1e6);
    }
    for (label, time) in score::stray_labels(&recording.segments, &recording.truth).into_iter().take(6) {
        eprintln!("gapbench:   that name where nothing was planted: {:10.3} ms {label}", time as f64 / 1e6);
    }
    for (label, time) in score::other_enablers(&recording.gaps, &recording.truth).into_iter().take(6) {
        eprintln!("gapbench:   another enabler: {:10.3} ms {label}", time as f64 / 1e6);
    }
}

fn report(args: &Args, outcomes: &[Outcome], setting: Option<&Meta>) -> Result<()> {
    let table = table::markdown(outcomes);
    let json = table::json(outcomes)?;
    if args.json {
        println!("{json}");
    } else {
        print!("{table}");
    }
    let path = args.place.work.join("results.json");
    std::fs::create_dir_all(&args.place.work)?;
    std::fs::write(&path, &json).with_context(|| format!("cannot write {}", path.display()))?;
    let whole = args.scenarios.is_empty() && !args.quick && args.mode.is_none();
    if let (true, Some(meta)) = (whole, setting) {
        docs::write(&args.place.docs, "accuracy.md", &page(&table, meta))?;
    }
    Ok(())
}

fn page(table: &str, meta: &Meta) -> String {
    let (date, setting) = (docs::today(), docs::setting(meta));
    format!(
        "# How right the causes are

Programs that keep a GPU busy plant stalls of a known cause and write down when they did so and why. `cargo xtask gapbench`
records each of them, from its start (`run`) and while it runs (`attach`), and compares the causes in the recording with
what was planted, by time:

- **recall**: how much of the planted time has the planted cause (and file or peer);
- **precision**: how much of the time with that cause was planted;
- **unknown**: how much of all gap time has no known cause;
- **exact**: how much of all gap time rests only on events recorded as they happened;
- **thread**: how much of the rightly named time also names the thread that committed the act;
- **enabler**: how much of the planted time that a synchronising call made possible lies in gaps that name that call;
- **left out**: how much of the planted time the program itself marked as disturbed, because the kernel counted an involuntary
  switch of its thread meanwhile; it is in none of the sums above (only `sync-each-kernel`, whose stalls are microseconds);
- **error ns**: by how much the segments of the gaps fail to add up to the gaps.

A scenario passes with recall, precision, thread and enabler of at least 0.95, unknown time of at most 0.01, at most 0.5
left out, and an error of 0.
A name with a plus has a loud innocent neighbour beside the planted stall: another process that reads the same disk without
pause (`disk`), threads of the same process that wake each other (`futex`) or send TCP messages (`chatter`) some fifteen
thousand times a second, or poll without pause (`busy-poll`), or short-lived processes (`short-lived`).

Written by `cargo xtask gapbench` on {date}. {setting}.

{table}"
    )
}
