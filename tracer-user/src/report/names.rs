//! What threads are called.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::model::ThreadName;
use crate::store::schema::{Process, Thread};

/// Looks threads up by their ids. An id that was used again means the thread that had it last.
#[derive(Clone, Debug, Default)]
pub struct Names {
    threads: HashMap<(i32, i32), (String, Option<String>)>,
    processes: HashMap<i32, String>,
    roles: BTreeMap<String, BTreeSet<i32>>,
}

impl Names {
    /// From the tables.
    #[must_use]
    pub fn new(processes: &[Process], threads: &[Thread]) -> Self {
        let mut names = Self::default();
        for process in processes {
            names.processes.insert(process.pid.0, process.comm.to_string());
        }
        for thread in threads {
            let role = thread.role.as_ref().map(ToString::to_string);
            if let Some(role) = &role {
                names.roles.entry(role.clone()).or_default().insert(thread.pid.0);
            }
            names.threads.insert((thread.pid.0, thread.tid.0), (thread.comm.to_string(), role));
        }
        names
    }

    /// The thread `tid` of process `pid`.
    #[must_use]
    pub fn thread(&self, pid: i32, tid: i32) -> ThreadName {
        let process = self.processes.get(&pid).cloned().unwrap_or_default();
        let (name, role) = self.threads.get(&(pid, tid)).cloned().unwrap_or_else(|| (process.clone(), None));
        ThreadName { pid, tid, name, process, role }
    }

    /// How many processes have a thread with that role.
    #[must_use]
    pub fn processes_with_role(&self, role: &str) -> u64 {
        self.roles.get(role).map_or(0, |pids| pids.len() as u64)
    }
}
