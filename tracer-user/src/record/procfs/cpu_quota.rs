//! For how long a CPU quota held control groups back: the counters of their CPU controller.

use std::path::{Component, Path, PathBuf};

use super::mounts::{Mount, mounts};
use super::read::read_bounded;
use crate::event::{DurationNs, Pid};

/// Deepest group that is looked at; the kernel's own default limit (`cgroup.max.depth`) is higher, real trees are not.
const MAX_DEPTH: usize = 32;
const CGROUP_BYTES: usize = 16 << 10;
const STAT_BYTES: usize = 4 << 10;

/// The control group that limits a process's CPU time, with those above it: each can have a quota.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuGroups {
    /// Their folders, the process's own group first.
    folders: Vec<PathBuf>,
}

impl CpuGroups {
    /// The groups of a process; none if it is gone, or if no CPU controller is mounted.
    #[must_use]
    pub fn of(pid: Pid) -> Self {
        let Ok(bytes) = read_bounded(format!("/proc/{pid}/cgroup"), CGROUP_BYTES) else {
            return Self::default();
        };
        let own_mounts = mounts(Pid(std::process::id() as i32));
        let text = String::from_utf8_lossy(&bytes);
        // With v1 the controller has a hierarchy of its own, which then is not in v2's.
        let v1 = text.lines().find_map(|line| path_of(line, |of| of.split(',').any(|name| name == "cpu")));
        let place = match v1 {
            Some(path) => {
                folder(&own_mounts, "cgroup", path, |point| point.join("cpu.cfs_quota_us").exists())
            }
            None => text
                .lines()
                .find_map(|line| path_of(line, str::is_empty))
                .and_then(|path| folder(&own_mounts, "cgroup2", path, |_| true)),
        };
        let Some((point, folder)) = place else { return Self::default() };
        let folders = folder
            .ancestors()
            .take_while(|above| above.starts_with(&point))
            .take(MAX_DEPTH)
            .map(Path::to_owned)
            .collect();
        Self { folders }
    }

    /// For how long each of them has been held back since it was made; 0 for one that never had a quota.
    #[must_use]
    pub fn throttled(&self) -> Vec<DurationNs> {
        let read = |folder: &PathBuf| read_bounded(folder.join("cpu.stat"), STAT_BYTES).ok();
        self.folders
            .iter()
            .map(|folder| read(folder).map_or(DurationNs(0), |bytes| throttled(&bytes)))
            .collect()
    }
}

/// The path of a line `hierarchy:controllers:path`.
fn path_of(line: &str, controllers: impl Fn(&str) -> bool) -> Option<&str> {
    let mut fields = line.splitn(3, ':').skip(1);
    fields.next().filter(|&found| controllers(found))?;
    fields.next()
}

/// The mount point and the folder of a group. A group outside what is mounted (`/../x`) has none.
fn folder(
    mounts: &[Mount],
    fs_type: &str,
    path: &str,
    is_it: impl Fn(&Path) -> bool,
) -> Option<(PathBuf, PathBuf)> {
    use std::os::unix::ffi::OsStrExt as _;
    let path = Path::new(path);
    if path.components().any(|part| part == Component::ParentDir) {
        return None;
    }
    mounts.iter().filter(|mount| mount.fs_type.as_str() == fs_type).find_map(|mount| {
        let below = path.strip_prefix(std::ffi::OsStr::from_bytes(&mount.root)).ok()?;
        let point = PathBuf::from(std::ffi::OsStr::from_bytes(&mount.point));
        is_it(&point)
            .then(|| (point.clone(), if below.as_os_str().is_empty() { point } else { point.join(below) }))
    })
}

/// From `cpu.stat`: `throttled_usec` of v2, `throttled_time` (in ns) of v1.
fn throttled(stat: &[u8]) -> DurationNs {
    let text = String::from_utf8_lossy(stat);
    let field = |name: &str| {
        text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse::<i64>().ok())
    };
    let nanoseconds =
        field("throttled_time").or_else(|| field("throttled_usec").map(|micros| micros.saturating_mul(1000)));
    DurationNs(nanoseconds.unwrap_or(0).max(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Text;

    #[test]
    fn the_counters_of_both_versions_are_read() {
        let v2 = b"usage_usec 5\nnr_periods 7\nnr_throttled 3\nthrottled_usec 1500\nnr_bursts 0\n";
        assert_eq!(throttled(v2), DurationNs(1_500_000));
        assert_eq!(throttled(b"nr_periods 7\nnr_throttled 3\nthrottled_time 1500\n"), DurationNs(1500));
        assert_eq!(throttled(b"usage_usec 5\n"), DurationNs(0));
        assert_eq!(throttled(b"throttled_time -1\nthrottled_usec x\n"), DurationNs(0));
    }

    #[test]
    fn a_group_is_found_below_its_mount() {
        let mount = |root: &str, point: &str, fs_type: &str| Mount {
            device: 0,
            root: root.into(),
            point: point.into(),
            fs_type: Text::from(fs_type),
        };
        let table = [
            mount("/", "/", "ext4"),
            mount("/", "/sys/fs/cgroup", "cgroup2"),
            mount("/pod", "/inner", "cgroup"),
        ];
        let found = |fs_type, path| folder(&table, fs_type, path, |_| true).map(|(_, folder)| folder);
        assert_eq!(found("cgroup2", "/a/b"), Some("/sys/fs/cgroup/a/b".into()));
        assert_eq!(found("cgroup2", "/"), Some("/sys/fs/cgroup".into()));
        assert_eq!(found("cgroup", "/pod/x"), Some("/inner/x".into()));
        assert_eq!(found("cgroup", "/other"), None);
        assert_eq!(found("cgroup2", "/../a"), None);
        assert_eq!(path_of("4:cpu,cpuacct:/a:b", |of| of.split(',').any(|name| name == "cpu")), Some("/a:b"));
        assert_eq!(path_of("5:cpuset:/a", |of| of.split(',').any(|name| name == "cpu")), None);
        assert_eq!(path_of("0::/a", str::is_empty), Some("/a"));
    }

    #[test]
    fn this_process_has_a_counter_for_each_group() {
        let groups = CpuGroups::of(Pid(std::process::id() as i32));
        assert_eq!(groups.throttled().len(), groups.folders.len());
        assert_eq!(CpuGroups::of(Pid(0)), CpuGroups::default());
    }
}
