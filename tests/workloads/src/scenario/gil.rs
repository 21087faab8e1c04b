//! A Python program whose main thread wants the interpreter lock while another thread computes and holds it. The program
//! takes this one's place, so that it has the process, its environment and its descriptors.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

use anyhow::{Result, anyhow};

use crate::neighbour::Inside;
use crate::stage::Options;

const CUDA: &str = include_str!("../../../../tracer-user/assets/demo/cuda.py");
const PROGRAM: &str = include_str!("gil.py");

pub fn run(options: &Options) -> Result<()> {
    let mut command = Command::new("python3");
    command.args(["-c", &format!("{CUDA}\n{PROGRAM}")]).arg(options.rounds.to_string());
    if options.neighbour == Some(Inside::Native) {
        command.arg("native");
    }
    Err(anyhow!("cannot start python3: {}", command.exec()))
}
