//! A client under recording.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use gtrace::event::{Pid, Text};
use gtrace::record::gpu::{GpuRow, GpuSide};
use gtrace::store::schema::{Collective, CudaApi, CudaOverhead, CudaSync, GpuOp, Loss, Marker};

use super::client::WORK;

/// The CUDA versions whose CUPTI is simulated.
pub const VERSIONS: [&str; 17] = [
    "11.7", "11.8", "12.0", "12.1", "12.2", "12.3", "12.4", "12.5", "12.6", "12.8", "12.9", "13.0", "13.1",
    "13.2", "13.3", "13.4", "13.5",
];

/// A client process.
pub struct Target {
    pub child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
    folder: tempfile::TempDir,
}

/// The shim that cargo built for this test.
pub fn shim() -> PathBuf {
    let mut path = std::env::current_exe().unwrap();
    path.set_file_name("libgtrace_cupti.so");
    assert!(path.exists(), "cargo builds {} for this test", path.display());
    path
}

impl Target {
    /// Starts a client on the simulated stack of this CUDA version, with these variables.
    pub fn start(work: &str, cuda: &str, variables: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        sim_cuda::Layout::new().unwrap().cupti_version(cuda).write(folder.path()).unwrap();
        let (major, minor) = cuda.split_once('.').unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .env(WORK, work)
            .env("LD_LIBRARY_PATH", folder.path())
            .env("CUDA_INJECTION64_PATH", shim())
            .env("SIMCUDA_CUPTI_VERSION", cuda)
            // The stack has libcupti.so.12 and .13; a driver runs CUPTIs that are older than itself.
            .env(
                "SIMCUDA_DRIVER_VERSION",
                if major == "11" { "12000".into() } else { format!("{major}0{minor}0") },
            )
            .envs(variables.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Self { child, input, lines, folder }
    }

    pub fn pid(&self) -> Pid {
        Pid(self.child.id() as i32)
    }

    /// Where its CUDA is.
    pub fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    /// Lets a client that waits for a line go on.
    pub fn go_on(&mut self) {
        writeln!(self.input, "go").unwrap();
    }

    /// Its next line, within ten seconds; `None` at its end.
    pub fn line(&self) -> Option<String> {
        match self.lines.recv_timeout(Duration::from_secs(10)) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("the client is silent"),
        }
    }

    /// The lines up to its end.
    pub fn lines_to_end(&self) -> Vec<String> {
        std::iter::from_fn(|| self.line()).collect()
    }

    /// The lines that are there by now.
    pub fn lines_by_now(&self) -> Vec<String> {
        self.lines.try_iter().collect()
    }

    /// Waits for a line.
    pub fn expect(&self, wanted: &str) {
        while let Some(line) = self.line() {
            if line == wanted {
                return;
            }
        }
        panic!("the client ended before \"{wanted}\"");
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What came.
#[derive(Default)]
pub struct Rows {
    pub ops: Vec<GpuOp>,
    pub calls: Vec<CudaApi>,
    pub syncs: Vec<CudaSync>,
    pub overheads: Vec<CudaOverhead>,
    pub losses: Vec<Loss>,
    pub clocks: usize,
    pub markers: Vec<Marker>,
    pub collectives: Vec<Collective>,
}

impl Rows {
    pub fn take(&mut self, row: GpuRow) {
        match row {
            GpuRow::Op(row) => self.ops.push(row),
            GpuRow::Api(row) => self.calls.push(row),
            GpuRow::Sync(row) => self.syncs.push(row),
            GpuRow::Overhead(row) => self.overheads.push(row),
            GpuRow::Loss(row) => self.losses.push(row),
            GpuRow::Clock(_) => self.clocks += 1,
            GpuRow::Marker(row) => self.markers.push(row),
            GpuRow::Collective(row) => self.collectives.push(row),
        }
    }

    pub fn kernels(&self) -> impl Iterator<Item = &GpuOp> {
        self.ops.iter().filter(|op| op.kind == Text::from("kernel"))
    }

    pub fn of_kind(&self, kind: &str) -> usize {
        self.ops.iter().filter(|op| &*op.kind == kind).count()
    }

    pub fn named(&self, name: &str) -> impl Iterator<Item = &CudaApi> {
        self.calls.iter().filter(move |call| &*call.name == name)
    }

    /// Length of the losses of a source, in ns.
    pub fn lost_time(&self, source: &str) -> i64 {
        let of_source = self.losses.iter().filter(|loss| &*loss.source == source);
        of_source.map(|loss| loss.end_ns.0 - loss.start_ns.0).sum()
    }

    /// Sum of the losses of a source.
    pub fn lost(&self, source: &str) -> i64 {
        self.losses.iter().filter(|loss| &*loss.source == source).map(|loss| loss.count).sum()
    }
}

/// Drains until `enough`, at most so long.
pub fn drain_until(
    side: &mut GpuSide,
    rows: &mut Rows,
    seconds: u64,
    mut enough: impl FnMut(&GpuSide, &Rows) -> bool,
) -> bool {
    let deadline = Instant::now() + Duration::from_secs(seconds);
    while Instant::now() < deadline {
        side.drain(&mut |row| rows.take(row));
        if enough(side, rows) {
            return true;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    false
}

/// Finds the ring of a client.
pub fn find(side: &mut GpuSide, target: &Target) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while side.processes().iter().all(|process| process.pid != target.pid().0) {
        assert!(Instant::now() < deadline, "no ring in process {}", target.pid());
        side.scan([target.pid()]);
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Records a client to its end.
pub fn record(target: &mut Target) -> (GpuSide, Rows) {
    let (mut side, mut rows) = (GpuSide::new(), Rows::default());
    find(&mut side, target);
    drain_until(&mut side, &mut rows, 60, |_, _| target.child.try_wait().unwrap().is_some());
    side.finish(Duration::from_secs(2), &mut |row| rows.take(row));
    (side, rows)
}
