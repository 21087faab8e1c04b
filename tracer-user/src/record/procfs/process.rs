//! Processes and threads: names, parents, states.

use std::fs;
use std::os::unix::ffi::OsStrExt;

use super::read::{bounded_text, read_bounded};
use crate::event::{Pid, Text, Tid};

/// `PF_KTHREAD` of `task_struct.flags`, field 9 of `stat`.
const PF_KTHREAD: u64 = 0x0020_0000;
/// Longest command line kept.
const CMDLINE_BYTES: usize = 4096;
/// Longest path kept of `exe` and of a control group.
const PATH_BYTES: usize = 1024;
/// Most tasks read out of one folder: `pid_max` is at most 4 Mi, and nothing sensible comes near.
const MAX_TASKS: usize = 1 << 20;

/// The fields of `/proc/<pid>/stat` that the recorder needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskStat {
    /// The task's id: of the process, or of the thread.
    pub id: i32,
    /// Its name, at most 15 bytes.
    pub comm: Text,
    /// `R` running or runnable, `S`, `D`, `T`, `t`, `Z`, `X`, `I`.
    pub state: u8,
    /// Its parent process, 0 if it has none.
    pub parent: i32,
    /// When it began, in clock ticks since boot: with the id, an identity that reuse of ids cannot fake.
    pub start_ticks: u64,
    /// A kernel thread.
    pub kernel: bool,
}

/// What is worth knowing of a process once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessDetails {
    /// Its program.
    pub exe: Option<Text>,
    /// Its arguments, joined by spaces.
    pub cmdline: Option<Text>,
    /// Its control group: the v2 path, or of v1 the longest of any controller.
    pub cgroup: Option<Text>,
    /// The container's id where the control group shows one.
    pub container: Option<Text>,
}

fn parse_stat(bytes: &[u8]) -> Option<TaskStat> {
    // The name may hold spaces and parentheses; the last `)` ends it, since all that follows is numbers.
    let open = bytes.iter().position(|&byte| byte == b'(')?;
    let close = bytes.iter().rposition(|&byte| byte == b')')?;
    let id = std::str::from_utf8(bytes.get(..open)?).ok()?.trim().parse().ok()?;
    let comm = bounded_text(bytes.get(open + 1..close)?, 64);
    let rest = std::str::from_utf8(bytes.get(close + 1..)?).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = *fields.next()?.as_bytes().first()?;
    let parent = fields.next()?.parse().ok()?;
    let flags: u64 = fields.nth(4)?.parse().ok()?; // field 9
    let start_ticks = fields.nth(12)?.parse().ok()?; // field 22
    Some(TaskStat { id, comm, state, parent, start_ticks, kernel: flags & PF_KTHREAD != 0 })
}

/// A process; `None` if it is gone.
#[must_use]
pub fn stat(pid: Pid) -> Option<TaskStat> {
    parse_stat(&read_bounded(format!("/proc/{pid}/stat"), 4096).ok()?)
}

/// A thread; `None` if it is gone.
#[must_use]
pub fn thread_stat(pid: Pid, tid: Tid) -> Option<TaskStat> {
    parse_stat(&read_bounded(format!("/proc/{pid}/task/{tid}/stat"), 4096).ok()?)
}

fn numbered_entries(folder: &str) -> Vec<i32> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    entries.take(MAX_TASKS).filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// All processes, each with its parent.
#[must_use]
pub fn all_processes() -> Vec<TaskStat> {
    numbered_entries("/proc").into_iter().filter_map(|pid| stat(Pid(pid))).collect()
}

/// The threads of a process; empty if it is gone.
#[must_use]
pub fn threads(pid: Pid) -> Vec<Tid> {
    numbered_entries(&format!("/proc/{pid}/task")).into_iter().map(Tid).collect()
}

/// Program, arguments and control group of a process, as far as they can still be read.
#[must_use]
pub fn details(pid: Pid) -> ProcessDetails {
    let exe = fs::read_link(format!("/proc/{pid}/exe")).ok();
    let cgroup =
        read_bounded(format!("/proc/{pid}/cgroup"), 16 << 10).ok().and_then(|bytes| control_group(&bytes));
    let container = cgroup.as_deref().and_then(container_id);
    ProcessDetails {
        exe: exe.map(|path| bounded_text(path.as_os_str().as_bytes(), PATH_BYTES)),
        cmdline: read_bounded(format!("/proc/{pid}/cmdline"), CMDLINE_BYTES + 1)
            .ok()
            .and_then(|bytes| command_line(&bytes)),
        cgroup,
        container,
    }
}

fn command_line(bytes: &[u8]) -> Option<Text> {
    let end = bytes.iter().rposition(|&byte| byte != 0)? + 1;
    let joined: Vec<u8> = bytes[..end].iter().map(|&byte| if byte == 0 { b' ' } else { byte }).collect();
    Some(bounded_text(&joined, CMDLINE_BYTES))
}

/// The path of `/proc/<pid>/cgroup` that says the most: with v2 there is one (`0::/path`); with v1 each controller has
/// its own, and a job or container is in the longest.
fn control_group(bytes: &[u8]) -> Option<Text> {
    let text = String::from_utf8_lossy(bytes);
    let path = text.lines().filter_map(|line| line.splitn(3, ':').nth(2)).max_by_key(|path| path.len())?;
    (path != "/").then(|| bounded_text(path.as_bytes(), PATH_BYTES))
}

/// The 64 hex digits by which Docker, containerd, CRI-O and Podman name a container's control group.
fn container_id(cgroup: &str) -> Option<Text> {
    cgroup
        .split(|character: char| !character.is_ascii_hexdigit())
        .rfind(|word| word.len() == 64)
        .map(Text::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_look_like_the_rest_of_the_line() {
        let line = b"42 (a) R 1 (x) S 7 42 42 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 99887 100 200 18446744073709551615 0";
        let stat = parse_stat(line).expect("a line of stat");
        assert_eq!((stat.id, stat.comm.as_str(), stat.state, stat.parent), (42, "a) R 1 (x", b'S', 7));
        assert_eq!((stat.start_ticks, stat.kernel), (99887, false));
        assert_eq!(
            parse_stat(b"42 (kworker/0:1) I 2 0 0 0 -1 69238880 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0")
                .map(|s| s.kernel),
            Some(true)
        );
    }

    #[test]
    fn broken_lines_are_no_task() {
        for line in [&b""[..], b"42", b"42 (", b"42 (a", b"42 (a)", b"42 )a( S 1", b"x (a) S 1 2 3 4 5 6"] {
            assert_eq!(parse_stat(line), None, "{}", String::from_utf8_lossy(line));
        }
    }

    #[test]
    fn own_process_is_read() {
        let own = Pid(std::process::id() as i32);
        let stat = stat(own).expect("own stat");
        assert_eq!(stat.id, own.0);
        assert!(!stat.kernel);
        assert!(threads(own).contains(&Tid(own.0)));
        let details = details(own);
        let exe = std::env::current_exe().expect("own program");
        assert_eq!(details.exe.as_deref(), exe.to_str());
        assert!(details.cmdline.is_some_and(|line| !line.contains('\0')));
    }

    #[test]
    fn containers_are_seen_in_either_hierarchy() {
        let id = "a1".repeat(32);
        let v1 = format!("12:memory:/docker/{id}\n1:cpu:/\n0::/\n");
        assert_eq!(
            control_group(v1.as_bytes()).as_deref().and_then(container_id).as_deref(),
            Some(id.as_str())
        );
        let v2 = format!("0::/kubepods.slice/pod7/cri-containerd-{id}.scope\n");
        assert_eq!(
            control_group(v2.as_bytes()).as_deref().and_then(container_id).as_deref(),
            Some(id.as_str())
        );
        assert_eq!(control_group(b"0::/\n"), None);
        assert_eq!(container_id("/user.slice/user-1000.slice"), None);
    }
}
