//! The `gtrace` command.

use std::process::ExitCode;

use clap::Parser as _;
use gtrace::cli::{Cli, Failure, Ui};

fn main() -> ExitCode {
    // clap prints help and errors of usage itself, and exits with 0 or 2.
    let cli = Cli::parse();
    let ui = Ui::new(&cli.global);
    match cli.execute(&ui) {
        Ok(status) => status.into(),
        Err(error) => {
            ui.error(&error);
            Failure::of(&error).status.into()
        }
    }
}
