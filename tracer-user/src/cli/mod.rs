//! The command line: one file a command. A command parses nothing and decides nothing about its subject; it checks its
//! arguments, calls the library, and words the outcome for a person.

mod exit;
mod failure;
mod ui;
mod unfinished;
mod value;

pub mod analyze;
#[cfg(feature = "record")]
pub mod attach;
#[cfg(feature = "record")]
pub mod collect;
pub mod completions;
#[cfg(feature = "record")]
pub mod demo;
#[cfg(feature = "record")]
pub mod doctor;
pub mod explain;
pub mod export;
pub mod import;
#[cfg(feature = "record")]
mod recording;
pub mod report;
#[cfg(feature = "record")]
pub mod run;
#[cfg(feature = "record")]
pub mod top;

use clap::{Args, Parser, Subcommand};

pub use exit::ExitStatus;
pub use failure::{Failure, OrFail};
pub use ui::{Color, Progress, Ui};
use unfinished::Unfinished;
pub use value::{Moment, parse_bytes, parse_duration};

/// What a command returns: how it ended, or the error that ended it.
pub type Result<T> = anyhow::Result<T>;

/// Why did this GPU not go on working?
///
/// gtrace records a program on its host (scheduler, system calls, disks, network) and on its GPUs (kernels, copies,
/// synchronisation), and gives every nanosecond in which a GPU did no compute one exact cause, or says why it cannot.
#[derive(Debug, Parser)]
#[command(name = "gtrace", version, propagate_version = true, max_term_width = 100, after_help = EXIT_STATUSES)]
pub struct Cli {
    /// Options that every command has.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const EXIT_STATUSES: &str = "Exit status: 0 done; 1 failed; 2 wrong usage; 3 recorded, but incomplete (more than 0.1 % of \
the events were lost, or the GPU side never came up). `gtrace run` ends with the status of the command that it ran.";

/// Options that every command has.
#[derive(Clone, Debug, Default, Args)]
pub struct Global {
    /// Say nothing on stderr but warnings and errors.
    #[arg(long, short, global = true, conflicts_with = "verbose", help_heading = "Global options")]
    pub quiet: bool,
    /// Say more on stderr; twice: everything.
    #[arg(long, short, global = true, action = clap::ArgAction::Count, help_heading = "Global options")]
    pub verbose: u8,
    /// Use colours: when writing to a terminal (and `NO_COLOR` is not set), always, or never.
    #[arg(long, value_name = "WHEN", default_value = "auto", global = true, help_heading = "Global options")]
    pub color: Color,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Record a command from its start, then analyse it and print the report.
    #[cfg(feature = "record")]
    Run(run::RunArgs),
    /// Record a running process and all its descendants, then analyse them and print the report.
    #[cfg(feature = "record")]
    Attach(attach::AttachArgs),
    /// Show what the GPUs of a running process wait for, while it happens.
    #[cfg(feature = "record")]
    Top(top::TopArgs),
    /// Work the gaps and their causes out again from the raw tables of a recording.
    Analyze(analyze::AnalyzeArgs),
    /// Say what the GPUs waited for: by cause, stage, thread, file and peer, and what to change.
    Report(report::ReportArgs),
    /// Show one gap: its causal chain hop by hop, with the rows that it rests on.
    Explain(explain::ExplainArgs),
    /// Write a recording for a trace viewer.
    Export(export::ExportArgs),
    /// Turn recordings of the PyTorch profiler and of Nsight Systems into gtrace's own, analyse them and print the report.
    Import(import::ImportArgs),
    /// Check what this machine can and cannot record, each with its remedy.
    #[cfg(feature = "record")]
    Doctor(doctor::DoctorArgs),
    /// Record a small training loop, on the simulated GPU where there is no real one, and print its report.
    #[cfg(feature = "record")]
    Demo(demo::DemoArgs),
    /// Print a shell's completions of this command line.
    Completions(completions::CompletionsArgs),
    /// Write the manual pages of this command line into a folder.
    Man(completions::ManArgs),
}

impl Cli {
    /// Does what was asked.
    ///
    /// # Errors
    /// Whatever ended the command; [`Failure`] where the words for it are known.
    pub fn execute(self, ui: &Ui) -> Result<ExitStatus> {
        match self.command {
            #[cfg(feature = "record")]
            Command::Run(args) => run::run(&args, ui),
            #[cfg(feature = "record")]
            Command::Attach(args) => attach::run(&args, ui),
            #[cfg(feature = "record")]
            Command::Top(args) => top::run(&args, ui),
            Command::Analyze(args) => analyze::run(&args, ui),
            Command::Report(args) => report::run(&args, ui),
            Command::Explain(args) => explain::run(&args, ui),
            Command::Export(args) => export::run(&args, ui),
            Command::Import(args) => import::run(&args, ui),
            #[cfg(feature = "record")]
            Command::Doctor(args) => doctor::run(&args, ui),
            #[cfg(feature = "record")]
            Command::Demo(args) => demo::run(&args, ui),
            Command::Completions(args) => completions::completions(&args, ui),
            Command::Man(args) => completions::man(&args, ui),
        }
    }
}
