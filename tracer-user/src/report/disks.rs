//! What the block devices did, and how much gap time rests on each.

use std::collections::{BTreeMap, HashMap};

use super::histogram::Histogram;
use super::model::{Disk, Share};
use super::wording::is_prefix;
use crate::store::schema::{BlockIo, GapSegment};

/// Collects requests.
#[derive(Debug, Default)]
pub struct DiskTally {
    disks: BTreeMap<String, Entry>,
    /// Gap time that rests on a request.
    waited_for: HashMap<i64, i64>,
    waited: BTreeMap<String, i64>,
}

#[derive(Debug, Default)]
struct Entry {
    disk: Disk,
    latency: Histogram,
    /// `[issued, completed)` of every request; requests come in order of queueing, which is not that of issue.
    busy: Vec<(i64, i64)>,
}

/// Intervals kept per device before they are merged: bounds the memory, whatever the length of the recording.
const UNMERGED: usize = 1 << 16;

impl DiskTally {
    /// Notes the request that a segment rests on (the last, if it names several). All segments come before all requests.
    pub fn segment(&mut self, segment: &GapSegment) {
        let storage = is_prefix("storage", &segment.cause) || is_prefix("memory", &segment.cause);
        if !storage {
            return;
        }
        if let Some(request) = segment.evidence.iter().rev().find(|evidence| &*evidence.table == "block_io") {
            *self.waited_for.entry(request.row.0).or_default() += (segment.end_ns - segment.start_ns).0;
        }
    }

    /// Counts a request.
    pub fn request(&mut self, request: &BlockIo) {
        if let Some(ns) = self.waited_for.get(&request.request_id.0) {
            *self.waited.entry(request.device.to_string()).or_default() += ns;
        }
        if !self.disks.contains_key(&*request.device) {
            let disk = Disk { device: request.device.to_string(), ..Disk::default() };
            self.disks.insert(request.device.to_string(), Entry { disk, ..Entry::default() });
        }
        let Some(entry) = self.disks.get_mut(&*request.device) else { return };
        match &*request.op {
            "read" => {
                entry.disk.reads += 1;
                entry.disk.read_bytes += request.bytes.max(0);
            }
            "write" => {
                entry.disk.writes += 1;
                entry.disk.written_bytes += request.bytes.max(0);
            }
            _ => return,
        }
        entry.latency.add((request.completed_ns - request.issued_ns).0);
        entry.disk.queue_ns += (request.issued_ns - request.queued_ns).0.max(0);
        entry.busy.push((request.issued_ns.0, request.completed_ns.0));
        if entry.busy.len() >= UNMERGED {
            merge(&mut entry.busy);
        }
    }

    /// The devices in order of their names, and the gap time that rests on each, the largest first.
    #[must_use]
    pub fn finish(self) -> (Vec<Disk>, Vec<Share>) {
        let disks = self.disks.into_values().filter(|entry| entry.disk.reads + entry.disk.writes > 0);
        let disks = disks.map(|mut entry| {
            merge(&mut entry.busy);
            Disk {
                busy_ns: entry.busy.iter().map(|(start, end)| end - start).sum(),
                median_ns: entry.latency.quantile(0.5),
                p99_ns: entry.latency.quantile(0.99),
                ..entry.disk
            }
        });
        let mut waited: Vec<Share> = self.waited.into_iter().map(|(name, ns)| Share { name, ns }).collect();
        waited.sort_by_key(|share| std::cmp::Reverse(share.ns));
        (disks.collect(), waited)
    }
}

/// Sorts intervals and joins those that touch.
fn merge(intervals: &mut Vec<(i64, i64)>) {
    intervals.sort_unstable();
    let mut merged: Vec<(i64, i64)> = Vec::new();
    for (start, end) in intervals.drain(..) {
        match merged.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => merged.push((start, end.max(start))),
        }
    }
    *intervals = merged;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_requests_count_once() {
        let mut intervals = vec![(10, 20), (0, 5), (15, 30), (30, 31), (40, 35)];
        merge(&mut intervals);
        assert_eq!(intervals, [(0, 5), (10, 31), (40, 40)]);
    }
}
