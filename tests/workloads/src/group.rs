//! A control group with a limit, for what a host can be made to hold back. Needs root.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Where the controllers are mounted.
const ROOT: &str = "/sys/fs/cgroup";

/// A group, removed when it is no longer needed: whoever joined it must have ended.
pub struct Group(PathBuf);

impl Group {
    /// One whose members read at most so many bytes a second from the device of a file system.
    ///
    /// # Errors
    /// There is no such controller, or this is not allowed.
    pub fn of_slow_reads(file: &Path, bytes_a_second: u64) -> Result<Self> {
        use std::os::unix::fs::MetadataExt as _;
        let device = file.metadata().with_context(|| format!("cannot look at {}", file.display()))?.dev();
        let device = format!("{}:{}", libc::major(device), libc::minor(device));
        let root = Path::new(ROOT);
        let v1 = root.join("blkio");
        if v1.join("cgroup.procs").exists() {
            let limit = format!("{device} {bytes_a_second}");
            return Self::make(&v1, "blkio.throttle.read_bps_device", &limit);
        }
        // Fails where it is on already, or not allowed: then the limit cannot be written.
        let _ = std::fs::write(root.join("cgroup.subtree_control"), "+io");
        Self::make(root, "io.max", &format!("{device} rbps={bytes_a_second}"))
    }

    fn make(root: &Path, file: &str, limit: &str) -> Result<Self> {
        let folder = root.join(format!("gtrace-workload-{}", std::process::id()));
        std::fs::create_dir(&folder)
            .with_context(|| format!("cannot make {} (as root?)", folder.display()))?;
        let group = Self(folder);
        let path = group.0.join(file);
        std::fs::write(&path, limit)
            .with_context(|| format!("cannot write {limit} to {}", path.display()))?;
        Ok(group)
    }

    /// Its folder.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Puts this process into the group with this folder.
    ///
    /// # Errors
    /// It is not there, or this is not allowed.
    pub fn join(folder: &Path) -> Result<()> {
        let path = folder.join("cgroup.procs");
        std::fs::write(&path, std::process::id().to_string())
            .with_context(|| format!("cannot join {}", path.display()))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // A group can be removed a moment after its last member has ended.
        for _ in 0..50 {
            if std::fs::remove_dir(&self.0).is_ok() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}
