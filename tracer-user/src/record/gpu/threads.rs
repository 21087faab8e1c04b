//! Thread ids: from the process's own pid namespace to the recorder's.

use std::collections::HashMap;
use std::fs;
use std::time::{Duration, Instant};

use crate::event::{Pid, Tid};

/// The threads of one process.
pub(super) struct Threads {
    pid: Pid,
    nested: bool,
    known: HashMap<u32, Tid>,
    /// Not before this again.
    look_at: Option<Instant>,
}

/// Between two looks at `/proc` for a thread that is not known, at least; and so many times as long as a look takes.
const PAUSE: Duration = Duration::from_millis(200);
const PAUSE_FACTOR: u32 = 20;
/// Threads of a process that are kept.
const MOST: usize = 1 << 16;

impl Threads {
    /// The threads of `pid`; `nested`: it lives in a pid namespace below ours.
    pub(super) fn new(pid: Pid, nested: bool) -> Self {
        Self { pid, nested, known: HashMap::new(), look_at: None }
    }

    /// The thread in our namespace; 0 for one that ended before we looked.
    pub(super) fn resolve(&mut self, inner: u32) -> Tid {
        if !self.nested {
            return Tid(inner as i32);
        }
        if let Some(tid) = self.known.get(&inner) {
            return *tid;
        }
        let began = Instant::now();
        if self.look_at.is_none_or(|due| began >= due) {
            self.look();
            self.look_at = Some(began + PAUSE.max(began.elapsed() * PAUSE_FACTOR));
        }
        self.known.get(&inner).copied().unwrap_or(Tid(0))
    }

    fn look(&mut self) {
        let Ok(tasks) = fs::read_dir(format!("/proc/{}/task", self.pid)) else { return };
        for task in tasks.flatten().take(MOST) {
            let Some(tid) = task.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            let Ok(status) = fs::read_to_string(task.path().join("status")) else { continue };
            if let Some(&inner) = namespace_ids(&status).last() {
                self.known.insert(inner, Tid(tid));
            }
        }
    }
}

/// The ids of a task in each pid namespace from ours down to its own (`NSpid` of its status, Linux 4.1 and newer).
pub(super) fn namespace_ids(status: &str) -> Vec<u32> {
    let Some(line) = status.lines().find_map(|line| line.strip_prefix("NSpid:")) else { return Vec::new() };
    line.split_whitespace().filter_map(|id| id.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespace_ids_go_from_ours_to_its_own() {
        assert_eq!(namespace_ids("Name:\tx\nNSpid:\t4711\t12\t1\nx"), [4711, 12, 1]);
        assert!(namespace_ids("Name:\tx\n").is_empty());
    }

    #[test]
    fn without_a_namespace_nothing_is_looked_up() {
        assert_eq!(Threads::new(Pid(1), false).resolve(77), Tid(77));
    }

    #[test]
    fn our_own_threads_are_found_by_their_inner_id() {
        let own = std::process::id();
        let mut threads = Threads::new(Pid(own as i32), true);
        let status = fs::read_to_string("/proc/thread-self/status").expect("procfs is there");
        let inner = *namespace_ids(&status).last().expect("the kernel is newer than 4.1");
        assert_ne!(threads.resolve(inner), Tid(0));
        assert_eq!(threads.resolve(u32::MAX), Tid(0));
    }
}
