//! The demo's training loop with and without gtrace: steps per second, events lost, bytes a row.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use gtrace::store::{Bundle, Meta};

use super::ratio::{Ratio, median};
use crate::place::Place;

/// Steps of one run.
const STEPS: &str = "150";

/// What was measured.
pub struct Measured {
    /// Steps per second with nothing attached (median).
    pub plain: f64,
    /// Steps per second recorded / with nothing attached.
    pub recorded: Ratio,
    /// What the last recording says about itself.
    pub meta: Meta,
    /// Table, rows and bytes on disk of the last recording.
    pub tables: Vec<(String, u64, u64)>,
}

/// Measures in so many pairs.
///
/// # Errors
/// The demo cannot be run or recorded.
pub fn measure(place: &Place, program: &Path, pairs: u32) -> Result<Measured> {
    let data = place.data().join("demo");
    let python = python()?;
    let train = |mut command: Command| -> Result<f64> {
        command.arg(program).arg("--data").arg(&data).args(["--steps", STEPS]);
        steps_per_second(&mut command)
    };
    let bundle = place.work.join("cost-demo.gtrace");
    let (mut plain, mut recorded) = (Vec::new(), Vec::new());
    // The first run makes the data set.
    train(place.environment(Command::new(&python)))?;
    for _ in 0..pairs {
        let without = train(place.environment(Command::new(&python)))?;
        if bundle.exists() {
            std::fs::remove_dir_all(&bundle)?;
        }
        let mut gtrace = place.program("gtrace");
        gtrace.arg("run").arg("-o").arg(&bundle).arg("--no-report").arg("--").arg(&python);
        recorded.push((train(gtrace)?, without));
        plain.push(without);
    }
    plain.sort_by(f64::total_cmp);
    let opened = Bundle::open(&bundle)?;
    let tables =
        opened.meta().rows.iter().map(|(table, rows)| Ok((table.clone(), *rows, size(&bundle.join(table))?)));
    Ok(Measured {
        plain: median(&plain),
        recorded: Ratio::of(&recorded).context("the demo measured nothing")?,
        meta: opened.meta().clone(),
        tables: tables.collect::<Result<_>>()?,
    })
}

/// Runs the loop and reads its last line: `150 steps in 6.20 s: 24.19 steps/s`.
fn steps_per_second(command: &mut Command) -> Result<f64> {
    let output = command.output().context("cannot start the demo's loop")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let value =
        text.lines().rev().find_map(|line| line.split_once(" s: ")?.1.strip_suffix(" steps/s")?.parse().ok());
    value.with_context(|| {
        format!(
            "the demo's loop ended with {} and no result: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        )
    })
}

/// The interpreter itself: `python3` on PATH may be a script that looks for it.
fn python() -> Result<PathBuf> {
    let output = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output();
    let output = output.context("cannot start python3")?;
    if !output.status.success() {
        bail!("python3 ended with {}", output.status);
    }
    Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()))
}

/// Bytes of the files in a folder.
fn size(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))? {
        bytes += entry?.metadata()?.len();
    }
    Ok(bytes)
}
