//! Attribution with a known answer, and what recording costs. Run by `cargo xtask gapbench` and `cargo xtask bench`.

mod accuracy;
mod beside;
mod case;
mod composed;
mod cost;
mod docs;
mod intervals;
mod place;
mod record;
mod score;
mod table;
mod truth;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Runs the workloads under gtrace.
#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Scores the causes that gtrace finds against what the workloads planted
    Score(accuracy::Args),
    /// Scores random scenarios of several causes, and checks what would be without one by leaving it out
    Composed(composed::Args),
    /// Measures what recording costs, as ratios within one run
    Cost(cost::Args),
    /// Sends records through the shim, for valgrind
    #[command(hide = true)]
    ShimLoop,
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Score(args) => accuracy::run(&args),
        Command::Composed(args) => composed::run(&args),
        Command::Cost(args) => cost::run(&args),
        Command::ShimLoop => cost::shim_loop().map(|()| ExitCode::SUCCESS),
    };
    result.unwrap_or_else(|error| {
        eprintln!("gapbench: {error:#}");
        ExitCode::FAILURE
    })
}
