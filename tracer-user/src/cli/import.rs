//! `gtrace import`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;

use super::analyze::AnalyzeArgs;
use super::report::{ReportArgs, ReportFormat};
use super::{ExitStatus, Failure, OrFail as _, Result, Ui, Unfinished, analyze, report};
use crate::collective::match_ranks;
use crate::event::DurationNs;
use crate::import::{ImportError, Imported, import_file};
use crate::store::Bundle;
use crate::store::schema::{Collective, Gap};

/// More refused records than this share make a recording incomplete.
const TOLERATED: f64 = 0.001;

/// Arguments of `gtrace import`.
#[derive(Debug, Args)]
pub struct ImportArgs {
    /// Traces of the PyTorch profiler (JSON), or exports of Nsight Systems (SQLite), plain or compressed with gzip. Of
    /// several, one a rank, each becomes a recording of its own: DIR/rank=0, DIR/rank=1 …
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Where to write the recording [default: NAME.gtrace in the working directory].
    #[arg(long, short, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Import only: neither analyse nor report.
    #[arg(long)]
    pub no_report: bool,
}

/// Turns other tools' recordings into one of gtrace's, analyses it and prints its report.
///
/// # Errors
/// A file cannot be imported, or the recording cannot be written.
pub fn run(args: &ImportArgs, ui: &Ui) -> Result<ExitStatus> {
    match args.files.as_slice() {
        [file] => {
            let output = args.output.clone().unwrap_or_else(|| default_output(file));
            let unfinished = Unfinished::at(&output);
            let imported = import(file, &output, ui)?;
            drop(unfinished);
            let status = say(&imported, ui);
            if !args.no_report {
                analyze::run(&AnalyzeArgs { bundle: output.clone() }, ui)?;
                report::run(
                    &ReportArgs { bundle: output, format: ReportFormat::Text, against: None, output: None },
                    ui,
                )?;
            }
            Ok(status)
        }
        files => import_ranks(files, args, ui),
    }
}

/// Several files, one a rank. One that cannot be imported is named and left out: the others took their time.
fn import_ranks(files: &[PathBuf], args: &ImportArgs, ui: &Ui) -> Result<ExitStatus> {
    let Some(output) = &args.output else {
        return Err(Failure::new("several files need a folder for their recordings")
            .because("each rank becomes a recording of its own")
            .try_this("name it with -o")
            .wrong_usage()
            .into());
    };
    std::fs::create_dir(output).or_fail(
        format!("cannot create {}", output.display()),
        "give another folder with -o, or remove it",
    )?;
    let mut status = ExitStatus::Done;
    let mut ranks: Vec<(i32, PathBuf)> = Vec::new();
    let mut refused = None;
    for (place, file) in files.iter().enumerate() {
        match import_rank(file, place, output, &ranks, ui) {
            Ok((rank, bundle, how)) => {
                if how != ExitStatus::Done {
                    status = ExitStatus::Incomplete;
                }
                if !args.no_report {
                    analyze::run(&AnalyzeArgs { bundle: bundle.clone() }, ui)?;
                }
                ranks.push((rank, bundle));
            }
            Err(error) => {
                ui.warn(&format!("left out: {error:#}"));
                refused = Some(error);
            }
        }
    }
    if let (true, Some(error)) = (ranks.is_empty(), refused.take()) {
        // Made by this call, and empty.
        let _ = std::fs::remove_dir(output);
        return Err(error);
    }
    if ranks.len() < files.len() {
        status = ExitStatus::Incomplete;
        let missing = files.len() - ranks.len();
        ui.warn(&format!("{missing} of {} files are not in {}", files.len(), output.display()));
    }
    ranks.sort();
    if !args.no_report {
        ui.print(&ranks_table(&ranks)?)?;
    }
    Ok(status)
}

/// One of several files: its rank, its recording and how it went.
fn import_rank(
    file: &Path,
    place: usize,
    output: &Path,
    others: &[(i32, PathBuf)],
    ui: &Ui,
) -> Result<(i32, PathBuf, ExitStatus)> {
    let part = output.join(format!(".importing-{place}"));
    let _unfinished = Unfinished::at(&part);
    let imported = import(file, &part, ui)?;
    let rank = imported.rank.unwrap_or(place as i32);
    if others.iter().any(|(other, _)| *other == rank) {
        // Best effort: the error at hand says more.
        let _ = std::fs::remove_dir_all(&part);
        return Err(Failure::new(format!("cannot import {}", file.display()))
            .because(format!("another of the files is of rank {rank}, too"))
            .try_this("give one file a rank, of one run; import other runs into other folders")
            .into());
    }
    let bundle = output.join(format!("rank={rank}"));
    std::fs::rename(&part, &bundle).or_fail(
        format!("cannot name the recording {}", bundle.display()),
        "look at the folder's permissions",
    )?;
    let status = say(&Imported { output: bundle.clone(), ..imported }, ui);
    Ok((rank, bundle, status))
}

/// What each rank's devices did, and who waited for whom.
fn ranks_table(ranks: &[(i32, PathBuf)]) -> Result<String> {
    let mut collectives = Vec::new();
    let mut idle = Vec::new();
    for (rank, path) in ranks {
        let bundle = Bundle::open(path)?;
        collectives.push((*rank, bundle.read::<Collective>()?));
        let gaps = bundle.scan::<Gap>()?;
        let mut sum = DurationNs(0);
        for gap in gaps {
            let gap = gap?;
            if gap.kind.as_str() == "idle" {
                sum = sum + (gap.end_ns - gap.start_ns);
            }
        }
        idle.push(sum);
    }
    let matched = match_ranks(&collectives);
    let mut text = String::from(
        "rank         idle   in collectives   waited for others   others waited for it   came last\n",
    );
    for (rank, idle) in matched.ranks.iter().zip(&idle) {
        let _ = writeln!(
            text,
            "{:<4} {:>12} {:>16} {:>19} {:>22} {:>11}",
            rank.rank,
            idle.to_string(),
            rank.in_collectives.to_string(),
            rank.waited.to_string(),
            rank.waited_for.to_string(),
            rank.last
        );
    }
    let late = matched.late();
    let names: Vec<String> = late.iter().map(|rank| rank.rank.to_string()).collect();
    let _ = match late.as_slice() {
        [] => writeln!(text, "\nNo rank held up the others."),
        [one] => writeln!(text, "\nRank {} held up the others.", one.rank),
        _ => writeln!(text, "\nRanks {} held up the others.", names.join(" and ")),
    };
    if !matched.named && matched.matched > 0 {
        text += "The traces do not name communicators: it is taken that all ranks take part in all collectives.\n";
    }
    if matched.unmatched > 0 {
        let _ = writeln!(
            text,
            "{} collectives have no counterpart on some rank and are left out.",
            matched.unmatched
        );
    }
    if let Some((_, worst)) =
        ranks.iter().find(|(rank, _)| late.first().is_some_and(|late| late.rank == *rank))
    {
        let _ = writeln!(text, "Why: gtrace report {}", worst.display());
    }
    Ok(text)
}

fn import(file: &Path, output: &Path, ui: &Ui) -> Result<Imported> {
    let progress = ui.progress(&format!("importing {}", file.display()), None);
    let imported = import_file(file, output);
    drop(progress);
    let remedy = match &imported {
        Err(ImportError::Store(_)) => "give another folder with -o, or make room",
        Err(ImportError::NothingIn { .. }) => "profile with ProfilerActivity.CPU and ProfilerActivity.CUDA",
        _ => {
            "give a trace of the PyTorch profiler (.json, .json.gz) or an export of Nsight Systems (.sqlite)"
        }
    };
    Ok(imported.or_fail(format!("cannot import {}", file.display()), remedy)?)
}

/// Says how it went, and how that ends the command.
fn say(imported: &Imported, ui: &Ui) -> ExitStatus {
    let refused = imported.refused_records();
    ui.say(&format!(
        "imported {} GPU ops, {} CUDA calls, {} events in all: {}",
        imported.counts.ops,
        imported.counts.calls,
        imported.counts.rows,
        imported.output.display()
    ));
    for (source, reason, count) in imported.refused.iter().take(8) {
        ui.detail(&format!("refused {count} × {reason} ({source})"));
    }
    let mut status = ExitStatus::Done;
    if let Some(cut) = &imported.cut {
        ui.warn(&format!(
            "the trace is incomplete: {cut}; its gaps may hold work that is missing, and read unknown"
        ));
        status = ExitStatus::Incomplete;
    }
    if refused as f64 > imported.counts.rows as f64 * TOLERATED {
        ui.warn(&format!("{refused} records were refused: `-v` says which, and the table `losses` when"));
        status = ExitStatus::Incomplete;
    }
    if let Some(missing) = &imported.meta.gpu_missing {
        ui.warn(missing);
        status = ExitStatus::Incomplete;
    }
    status
}

/// `trace.json.gz` becomes `trace.gtrace`.
fn default_output(file: &Path) -> PathBuf {
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut stem = name.as_str();
    for ending in [".gz", ".json", ".sqlite", ".pt.trace"] {
        stem = stem.strip_suffix(ending).unwrap_or(stem);
    }
    PathBuf::from(format!("{}.gtrace", if stem.is_empty() { "imported" } else { stem }))
}
