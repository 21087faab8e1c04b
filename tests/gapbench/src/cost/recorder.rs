//! A gtrace that records while something is measured.

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use gtrace::store::{Bundle, Meta};

use crate::place::Place;

/// How long it may take to come up.
const PATIENCE: Duration = Duration::from_secs(20);

/// `gtrace attach` under way.
pub struct Recorder {
    child: Child,
    bundle: PathBuf,
}

impl Recorder {
    /// Attaches to a process with some more options, and waits until it records.
    ///
    /// # Errors
    /// It cannot be started or does not come up.
    pub fn attach(place: &Place, pid: u32, bundle: &Path, options: &[&str]) -> Result<Self> {
        if bundle.exists() {
            std::fs::remove_dir_all(bundle)
                .with_context(|| format!("cannot remove the old {}", bundle.display()))?;
        }
        let log = bundle.with_extension("log");
        let file = std::fs::File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let mut gtrace = place.program("gtrace");
        gtrace.arg("attach").arg(pid.to_string()).arg("-o").arg(bundle).arg("--no-report").args(options);
        gtrace.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
        let mut child = gtrace.spawn().context("cannot start gtrace")?;
        let began = Instant::now();
        while !bundle.join("meta.json").exists() {
            if let Some(status) = child.try_wait()? {
                let text = std::fs::read_to_string(&log).unwrap_or_default();
                bail!("gtrace ended with {status} before it recorded: {}", text.trim());
            }
            if began.elapsed() > PATIENCE {
                let _ = child.kill();
                bail!("gtrace does not record after {} s", PATIENCE.as_secs());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        // The bundle is made when the probes are attached; let the first snapshot of the process pass.
        std::thread::sleep(Duration::from_millis(300));
        Ok(Self { child, bundle: bundle.to_owned() })
    }

    /// The most memory that it has had, in bytes.
    pub fn peak_memory(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        line.trim().trim_end_matches(" kB").parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
    }

    /// Ends the recording. What the bundle says.
    ///
    /// # Errors
    /// The bundle cannot be read.
    pub fn end(mut self) -> Result<Meta> {
        // SAFETY: the child is not yet waited for, so its pid is its own.
        unsafe { libc::kill(self.child.id().cast_signed(), libc::SIGINT) };
        self.child.wait().context("cannot wait for gtrace")?;
        Ok(Bundle::open(&self.bundle)?.meta().clone())
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
