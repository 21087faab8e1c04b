//! `gtrace demo`: a small training loop, recorded and reported. It lies in the program, so that a machine with nothing
//! but gtrace and Python can show what a report looks like.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::Args;

use super::run::{self, RunArgs};
use super::{ExitStatus, Failure, OrFail as _, Result, Ui};
use crate::record::CALLS_OVER;

/// The program of the demo: file name and text.
const PROGRAM: [(&str, &str); 3] = [
    ("train.py", include_str!("../../assets/demo/train.py")),
    ("loader.py", include_str!("../../assets/demo/loader.py")),
    ("cuda.py", include_str!("../../assets/demo/cuda.py")),
];

/// Arguments of `gtrace demo`.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Where to write the recording [default: demo.gtrace in the working directory].
    #[arg(long, short, visible_alias = "out", value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// How many training steps.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    pub steps: u32,
    /// Where the demo keeps its program and its data set, about 400 MB on a real disk [default:
    /// ~/.cache/gtrace/demo].
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
}

/// Records the demo and reports it.
///
/// # Errors
/// The demo cannot be started or recorded.
pub fn run(args: &DemoArgs, ui: &Ui) -> Result<ExitStatus> {
    let folder = args.data.clone().map_or_else(default_folder, Ok)?;
    let program = write_program(&folder)?;
    let python = python()?;
    let mut command: Vec<OsString> = vec![];
    if has_gpu(&python, &program) {
        ui.say("demo: recording the training loop on this machine's GPU");
    } else {
        let simulated = simulated_gpu()?;
        ui.say(&format!(
            "demo: no GPU here, so the training loop runs on a simulated one ({})",
            simulated.display()
        ));
        ui.say("demo: everything else is real: files, processes, and what the kernel did");
        command.extend(["env".into(), library_path(&simulated)]);
    }
    prepare(&python, &program, &folder)?;
    command.push(python.into());
    command.push(program.into());
    command.extend([
        "--data".into(),
        folder.join("data").into(),
        "--steps".into(),
        args.steps.to_string().into(),
    ]);
    let output = args.output.clone().unwrap_or_else(|| "demo.gtrace".into());
    run::run(
        &RunArgs { output: Some(output), duration: None, calls_over: CALLS_OVER, no_report: false, command },
        ui,
    )
}

/// The user's own cache: nobody else can have put anything there, and it lies on a disk.
fn default_folder() -> Result<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|folder| folder.is_absolute());
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let cache = cache.or_else(home).ok_or_else(|| {
        Failure::new("cannot find a place for the demo's data")
            .because("neither XDG_CACHE_HOME nor HOME is set")
            .try_this("name a folder with --data")
            .wrong_usage()
    })?;
    Ok(cache.join("gtrace").join("demo"))
}

/// Writes the demo's program into its folder. The path of its main file.
fn write_program(folder: &Path) -> Result<PathBuf> {
    let program = folder.join("program");
    let what = || format!("cannot write the demo's program to {}", program.display());
    let remedy = "name a folder that you can write with --data";
    std::fs::create_dir_all(&program).or_fail(what(), remedy)?;
    for (name, text) in PROGRAM {
        std::fs::write(program.join(name), text).or_fail(what(), remedy)?;
    }
    Ok(program.join(PROGRAM[0].0))
}

/// The interpreter itself: `python3` on PATH may be a script that looks for it.
fn python() -> Result<PathBuf> {
    let output = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output();
    let path = output.ok().filter(|output| output.status.success()).and_then(|output| {
        let path = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
        path.is_file().then_some(path)
    });
    let missing = || {
        Failure::new("cannot run the demo")
            .because("its training loop needs Python, and `python3` cannot be run")
            .try_this("install python3, version 3.8 or later")
    };
    Ok(path.ok_or_else(missing)?)
}

/// Whether the CUDA driver is there and has a device.
fn has_gpu(python: &Path, program: &Path) -> bool {
    let probe = Command::new(python).arg(program).arg("--probe").stderr(Stdio::null()).output();
    probe.is_ok_and(|output| {
        let devices = String::from_utf8_lossy(&output.stdout).trim().parse::<u32>();
        output.status.success() && devices.is_ok_and(|devices| devices > 0)
    })
}

/// The folder of the simulated CUDA stack: beside the build's programs, or where a package puts it.
fn simulated_gpu() -> Result<PathBuf> {
    let named = std::env::var_os("GTRACE_SIM_PATH").map(PathBuf::from);
    let program = std::env::current_exe().ok();
    let beside = program.as_deref().and_then(Path::parent).map(Path::to_path_buf);
    let places = named.into_iter().chain(
        beside.into_iter().flat_map(|folder| [folder.join("../sim"), folder.join("../lib/gtrace/sim")]),
    );
    let found = places
        .filter_map(|place| place.canonicalize().ok())
        .find(|place| place.join("libcuda.so.1").exists());
    let missing = || {
        Failure::new("cannot run the demo")
            .because("this machine has no GPU that CUDA can use, and the simulated one is not installed beside gtrace")
            .try_this("run `cargo xtask build` in gtrace's source, or name the simulation's folder in GTRACE_SIM_PATH")
    };
    Ok(found.ok_or_else(missing)?)
}

/// `LD_LIBRARY_PATH=…` with the simulation before what is set already.
fn library_path(simulated: &Path) -> OsString {
    let mut assignment = OsString::from("LD_LIBRARY_PATH=");
    assignment.push(simulated);
    if let Some(present) = std::env::var_os("LD_LIBRARY_PATH").filter(|present| !present.is_empty()) {
        assignment.push(":");
        assignment.push(present);
    }
    assignment
}

/// Makes the data set, outside the recording.
fn prepare(python: &Path, program: &Path, folder: &Path) -> Result<()> {
    let mut command = Command::new(python);
    command.arg(program).arg("--prepare").arg("--data").arg(folder.join("data")).stdout(std::io::stderr());
    let remedy = "free some space, or name another folder with --data";
    let status =
        command.status().or_fail("cannot start the demo's preparation", "check that python3 runs")?;
    if status.success() {
        return Ok(());
    }
    Err(Failure::new("cannot make the demo's data set")
        .because(format!("its preparation ended with {status}"))
        .try_this(remedy)
        .into())
}
