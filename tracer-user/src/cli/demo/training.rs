//! The demo's training loop: its program, what it needs, and running it.

use std::ffi::OsString;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde::Deserialize;

use crate::cli::{Failure, OrFail as _, Result, Ui};

/// The program of the demo: file name and text.
const PROGRAM: [(&str, &str); 4] = [
    ("train.py", include_str!("../../../assets/demo/train.py")),
    ("loader.py", include_str!("../../../assets/demo/loader.py")),
    ("dataset.py", include_str!("../../../assets/demo/dataset.py")),
    ("cuda.py", include_str!("../../../assets/demo/cuda.py")),
];

/// The program with all that it needs.
pub struct Training {
    python: PathBuf,
    program: PathBuf,
    /// Its data set.
    data: PathBuf,
    /// Where it writes how fast it was.
    result: PathBuf,
    /// The folder of the simulated CUDA stack, where there is no GPU.
    simulated: Option<PathBuf>,
}

/// How fast the loop went.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Pace {
    /// Steps, without the first.
    pub steps: u64,
    /// The time that they took.
    pub seconds: f64,
}

impl Pace {
    /// Steps per second.
    pub fn rate(self) -> f64 {
        self.steps as f64 / self.seconds
    }
}

impl Training {
    /// Writes the program to the folder and finds the GPU, or the simulated one.
    pub fn set_up(folder: &Path, ui: &Ui) -> Result<Self> {
        let program = write_program(folder)?;
        on_a_disk(folder)?;
        let python = python()?;
        let simulated = if has_gpu(&python, &program) {
            ui.say("demo: recording the training loop on this machine's GPU");
            None
        } else {
            let simulated = simulated_gpu()?;
            let place = simulated.display();
            ui.say(&format!("demo: no GPU here, so the training loop runs on a simulated one ({place})"));
            ui.say("demo: everything else is real: files, processes, and what the kernel did");
            Some(simulated)
        };
        let (data, result) = (folder.join("data"), folder.join("result.json"));
        Ok(Self { python, program, data, result, simulated })
    }

    /// Makes the data set where it is not there yet, and measures what this machine does with it. Its words go to stderr.
    pub fn prepare(&self) -> Result<()> {
        let mut command = Command::new(&self.python);
        command.arg(&self.program).arg("--prepare").arg("--data").arg(&self.data).stdout(std::io::stderr());
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

    /// The loop for so long, as a command line.
    pub fn command_line(&self, time: Duration) -> Vec<OsString> {
        let mut line: Vec<OsString> = vec![];
        if let Some(simulated) = &self.simulated {
            line.extend(["env".into(), library_path(simulated)]);
        }
        line.extend([self.python.clone().into(), self.program.clone().into()]);
        line.extend(["--data".into(), self.data.clone().into()]);
        line.extend(["--seconds".into(), time.as_secs_f64().to_string().into()]);
        line.extend(["--result".into(), self.result.clone().into()]);
        line
    }

    /// Runs the loop for so long, unrecorded and without a word.
    pub fn run(&self, time: Duration) -> Result<Pace> {
        let line = self.command_line(time);
        let (program, arguments) = line.split_first().expect("the interpreter is in it");
        let what = "cannot run the demo's training loop";
        let remedy = "run it by itself: the program is beside the data set";
        let output = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .output()
            .or_fail(what, remedy)?;
        if let (true, Some(pace)) = (output.status.success(), self.result()) {
            return Ok(pace);
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let last = said.trim_end().lines().next_back().unwrap_or("it said nothing");
        Err(Failure::new(what)
            .because(format!("it ended with {}: {last}", output.status))
            .try_this(remedy)
            .into())
    }

    /// How fast the loop went that ended last. Reading takes it away.
    pub fn result(&self) -> Option<Pace> {
        let mut text = String::new();
        std::fs::File::open(&self.result).ok()?.take(4096).read_to_string(&mut text).ok()?;
        std::fs::remove_file(&self.result).ok()?;
        let pace: Pace = serde_json::from_str(&text).ok()?;
        (pace.steps > 0 && pace.seconds > 0.0).then_some(pace)
    }
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

/// Files in memory are never waited for.
fn on_a_disk(folder: &Path) -> Result<()> {
    use nix::sys::statfs::{TMPFS_MAGIC, statfs};
    if !statfs(folder).is_ok_and(|stat| stat.filesystem_type() == TMPFS_MAGIC) {
        return Ok(());
    }
    Err(Failure::new("cannot run the demo")
        .because(format!("{} lies in memory, and its point is to wait for a disk", folder.display()))
        .try_this("name a folder on a disk with --data")
        .wrong_usage()
        .into())
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
