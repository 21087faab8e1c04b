//! Lays the simulated CUDA stack out in a folder and prints its path:
//! `sim-cuda-layout [FOLDER] [--cupti-version 12.4] [--without SYMBOL]…`.

use std::path::PathBuf;
use std::process::ExitCode;

use sim_cuda::Layout;

fn main() -> ExitCode {
    match run() {
        Ok(folder) => {
            println!("{}", folder.display());
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("sim-cuda-layout: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<PathBuf, String> {
    let mut layout = Layout::new().map_err(|e| e.to_string())?;
    let program = std::env::current_exe().map_err(|e| e.to_string())?;
    let mut folder = program.with_file_name("sim-cuda");
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
        match argument.as_str() {
            "--cupti-version" => layout = layout.cupti_version(&value()?),
            "--without" => layout = layout.without(&value()?),
            option if option.starts_with("--") => return Err(format!("no such option: {option}")),
            path => folder = PathBuf::from(path),
        }
    }
    layout.write(&folder).map_err(|e| e.to_string())?;
    folder.canonicalize().map_err(|e| e.to_string())
}
