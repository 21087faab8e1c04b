//! What developers and CI run: `cargo xtask <command>`.

mod build;
mod delegate;
mod host;
mod package;
mod process;
mod setup;
mod sim_path;
mod test;
mod toolchain;
mod workspace;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// What developers and CI run.
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Finds or installs what building and testing need, and says what it does
    Setup,
    /// Builds everything in release mode: eBPF object, shim, simulated CUDA, workloads, gtrace
    Build,
    /// Runs every check: format, lints, unit tests, root tests, end to end, the demo, a quick gapbench
    Test(test::Args),
    /// Records the demo's training loop and prints its report: the same as `gtrace demo`
    #[command(disable_help_flag = true)]
    Demo {
        /// Arguments of `gtrace demo`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
    /// Makes a tarball and a Debian package in target/package
    Package(package::Args),
    /// Attribution with a known answer: scenarios that plant stalls, recorded and scored
    #[command(disable_help_flag = true)]
    Gapbench {
        /// Arguments of gapbench: names of scenarios, --json, --quick, …
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
    /// Prints the folder with the simulated libcuda and libcupti, for LD_LIBRARY_PATH
    SimPath,
    /// Measures what recording costs, as ratios within one run, and writes docs/performance.md
    #[command(disable_help_flag = true)]
    Bench {
        /// Arguments of the measurement: names of parts, --pairs N, …
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Setup => setup::run().map(|()| ExitCode::SUCCESS),
        Command::Build => build::run().map(|()| ExitCode::SUCCESS),
        Command::Test(args) => test::run(&args),
        Command::Package(args) => package::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Demo { args } => delegate::demo(&args),
        Command::Gapbench { args } => delegate::gapbench(&args),
        Command::SimPath => sim_path::run().map(|()| ExitCode::SUCCESS),
        Command::Bench { args } => delegate::bench(&args),
    };
    result.unwrap_or_else(|error| {
        eprintln!("xtask: {error:#}");
        ExitCode::FAILURE
    })
}
