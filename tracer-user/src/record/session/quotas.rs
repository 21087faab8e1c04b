//! Which recorded control groups a CPU quota held back while they were recorded.

use std::collections::BTreeMap;

use crate::event::{DurationNs, Text};
use crate::record::procfs::CpuGroups;
use crate::store::schema::Process;

/// Most groups that are watched: a tree that makes more is not a job under a quota.
const MAX_GROUPS: usize = 256;

/// The groups of the recorded processes, with their counters when they were first seen.
#[derive(Debug, Default)]
pub struct Quotas {
    /// By `processes.cgroup`; of the topmost group that is empty.
    groups: BTreeMap<Text, (CpuGroups, Vec<DurationNs>)>,
}

impl Quotas {
    /// Begins to watch the groups of these processes.
    pub fn watch(&mut self, processes: &[Process]) {
        for process in processes.iter().filter(|process| !process.outside && !process.kernel) {
            let name = process.cgroup.clone().unwrap_or_default();
            if self.groups.contains_key(&name) || self.groups.len() >= MAX_GROUPS {
                continue;
            }
            let groups = CpuGroups::of(process.pid);
            let before = groups.throttled();
            if !before.is_empty() {
                self.groups.insert(name, (groups, before));
            }
        }
    }

    /// For how long each group was held back since then, by itself or by a group above it. Groups that were not are
    /// left out.
    pub fn throttled(&self) -> BTreeMap<String, i64> {
        let grown = |(groups, before): &(CpuGroups, Vec<DurationNs>)| {
            groups.throttled().iter().zip(before).map(|(now, before)| now.0 - before.0).max().unwrap_or(0)
        };
        self.groups
            .iter()
            .map(|(name, group)| (name.to_string(), grown(group)))
            .filter(|&(_, ns)| ns > 0)
            .collect()
    }
}
