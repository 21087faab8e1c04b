//! GPU programs with planted stalls, and what they need beside them.
//!
//! ```text
//! workloads list
//! workloads run SCENARIO [--rounds N] [--data DIR] [--peer ADDRESS] [--neighbour KIND]
//! workloads run composed --seed N [--without DEED]
//! workloads peer | compete | share | hammer --data DIR      beside a scenario, outside the recording
//! workloads micro MODE COUNT CPU [DIR]               for measuring what recording costs
//! workloads restless [THREADS]                       notices if anything of it is touched
//! ```
//!
//! Each prints `READY …` once it is under way.

mod clock;
mod cpu;
mod files;
mod gpu;
mod group;
mod micro;
mod nccl;
mod neighbour;
mod restless;
mod scenario;
mod stage;
mod truth;
mod worker;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

use neighbour::Inside;
use stage::Options;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("workloads: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(arguments: &[String]) -> Result<()> {
    let (command, rest) = arguments
        .split_first()
        .context("say what: list, run, peer, compete, share, hammer, micro or restless")?;
    match command.as_str() {
        "list" => {
            for (name, _) in scenario::SCENARIOS {
                println!("{name}");
            }
            Ok(())
        }
        "run" => {
            let (name, rest) = rest.split_first().context("say which scenario")?;
            scenario::run(name, &options(rest)?)
        }
        "worker" => scenario::work(rest),
        "peer" => scenario::slow_peer::serve(),
        "compete" => scenario::run_queue::compete(),
        "share" => scenario::shared_device::share(),
        "hammer" => neighbour::hammer_disk(&options(rest)?.data),
        "micro" => micro::run(rest),
        "restless" => restless::run(rest),
        other => bail!("there is no command `{other}`"),
    }
}

fn options(arguments: &[String]) -> Result<Options> {
    let mut options = Options {
        rounds: 40,
        data: std::env::temp_dir(),
        peer: None,
        neighbour: None,
        seed: 0,
        without: None,
    };
    let mut arguments = arguments.iter();
    while let Some(name) = arguments.next() {
        let value = arguments.next().with_context(|| format!("{name} needs a value"))?;
        match name.as_str() {
            "--rounds" => options.rounds = value.parse().context("--rounds needs a number")?,
            "--data" => options.data = PathBuf::from(value),
            "--peer" => options.peer = Some(value.clone()),
            "--seed" => options.seed = value.parse().context("--seed needs a number")?,
            "--without" => options.without = Some(value.clone()),
            "--neighbour" => {
                options.neighbour =
                    Some(Inside::by_name(value).with_context(|| format!("no neighbour `{value}`"))?);
            }
            _ => bail!("there is no option `{name}`"),
        }
    }
    Ok(options)
}
