//! Running the built program, and programs to record.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use gtrace::store::{Bundle, Table};

/// The program under test.
pub fn gtrace() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gtrace"));
    // Whatever called the tests with sudo: bundles stay root's, so that they can be read here.
    command.env_remove("SUDO_UID").env_remove("SUDO_GID");
    command
}

/// Its output, with everything it said if it did not end with `status`.
pub fn expect_status(output: &Output, status: i32) {
    assert_eq!(
        output.status.code(),
        Some(status),
        "stdout: {}\nstderr: {}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Python itself, not a script that looks for it: what is recorded is then the program of the test alone.
pub fn python() -> PathBuf {
    let output = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output().unwrap();
    PathBuf::from(String::from_utf8(output.stdout).unwrap().trim())
}

/// Records a Python program under `gtrace run`.
pub fn run_python(folder: &Path, program: &str, arguments: &[&str]) -> (PathBuf, Output) {
    let bundle = folder.join("run.gtrace");
    let output = gtrace()
        .args(["run", "--no-report", "-o"])
        .arg(&bundle)
        .arg("--")
        .arg(python())
        .args(["-c", program])
        .args(arguments)
        .output()
        .unwrap();
    (bundle, output)
}

/// The rows of a table.
pub fn rows<T: Table>(bundle: &Path) -> Vec<T> {
    Bundle::open(bundle).unwrap().read::<T>().unwrap()
}

/// A program that lives while a test looks at it, and no longer.
pub struct Target(pub Child);

impl Target {
    /// Starts a Python program and waits for its first line.
    pub fn python(program: &str) -> Self {
        use std::io::BufRead as _;
        let mut child = Command::new(python()).args(["-c", program]).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        std::io::BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Self(child)
    }

    pub fn pid(&self) -> i32 {
        self.0.id() as i32
    }

    pub fn lives(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until something is true.
pub fn wait_until(what: &str, mut check: impl FnMut() -> bool) {
    let began = Instant::now();
    while !check() {
        assert!(began.elapsed() < Duration::from_secs(60), "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
