//! Tracks: which process and thread of the trace a slice goes to.
//!
//! A viewer knows processes and threads, and takes the slices of one thread for a stack of calls: two that overlap without
//! one lying in the other are drawn wrongly. So a track that holds such slices is split into lanes, each a thread of its own.

use std::collections::{BTreeMap, BTreeSet};

use crate::event::{MonoNs, Text};

/// A process of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// A GPU.
    Gpu(i32),
    /// A process of the recording.
    Process(i32),
    /// All block devices.
    BlockDevices,
    /// What was lost.
    Losses,
}

/// A row of a group, in the order in which they are shown.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Row {
    /// A GPU's gaps.
    Gaps,
    /// A stream of a process.
    Stream {
        /// The process.
        pid: i32,
        /// The context.
        context: i64,
        /// The stream.
        stream: i64,
    },
    /// A thread: its state, then its calls.
    Thread {
        /// The thread.
        tid: i32,
        /// Its calls, or its states.
        calls: bool,
    },
    /// What CUPTI and the driver needed for themselves in a process.
    Overhead,
    /// A block device.
    Device(Text),
    /// A source of losses.
    Source(Text),
}

/// A thread of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Track {
    /// Its process.
    pub pid: i64,
    /// The thread. Unique over all processes, as some viewers want it.
    pub tid: i64,
}

/// Ids from here on belong to no process or thread: Linux has none above 2^22.
const OURS: i64 = 1 << 24;

/// The tracks in use.
#[derive(Default)]
pub struct Tracks {
    rows: BTreeMap<(Group, Row), Vec<Lane>>,
    groups: BTreeMap<Group, i64>,
    threads: BTreeSet<i32>,
    ids: i64,
}

struct Lane {
    track: Track,
    /// Ends of the slices around the current time, the innermost last.
    open: Vec<MonoNs>,
}

impl Tracks {
    /// The track for a slice `[start, end)`, which may lie in another one. Slices of a row come in order of their start, of
    /// equal starts the longer first.
    pub fn place(&mut self, group: Group, row: Row, start: MonoNs, end: MonoNs) -> Track {
        self.place_if(group, row, start, end, |lane| lane.open.last().is_none_or(|&open| end <= open))
    }

    /// The same for a slice in which and around which no other one may lie.
    pub fn place_apart(&mut self, group: Group, row: Row, start: MonoNs, end: MonoNs) -> Track {
        self.place_if(group, row, start, end, |lane| lane.open.is_empty())
    }

    fn place_if(
        &mut self,
        group: Group,
        row: Row,
        start: MonoNs,
        end: MonoNs,
        fits: impl Fn(&Lane) -> bool,
    ) -> Track {
        let key = (group, row);
        if let Some(lanes) = self.rows.get_mut(&key) {
            for lane in lanes.iter_mut() {
                while lane.open.last().is_some_and(|&open| open <= start) {
                    lane.open.pop();
                }
                if fits(lane) {
                    lane.open.push(end);
                    return lane.track;
                }
            }
        }
        let lanes = self.rows.get(&key).map_or(0, Vec::len);
        let track = Track { pid: self.process(group), tid: self.thread(&key.1, lanes) };
        self.rows.entry(key).or_default().push(Lane { track, open: vec![end] });
        track
    }

    /// The first lane of a row, whether or not there is a slice.
    pub fn first(&mut self, group: Group, row: Row) -> Track {
        let key = (group, row);
        if let Some(lane) = self.rows.get(&key).and_then(|lanes| lanes.first()) {
            return lane.track;
        }
        let track = Track { pid: self.process(group), tid: self.thread(&key.1, 0) };
        self.rows.entry(key).or_default().push(Lane { track, open: Vec::new() });
        track
    }

    /// The groups in use, each with the id of its process.
    pub fn groups(&self) -> impl Iterator<Item = (Group, i64)> {
        self.groups.iter().map(|(group, pid)| (*group, *pid))
    }

    /// The tracks in use, by group and row, with the number of the lane.
    pub fn tracks(&self) -> impl Iterator<Item = (Group, &Row, usize, Track)> {
        self.rows.iter().flat_map(|((group, row), lanes)| {
            lanes.iter().enumerate().map(move |(lane, state)| (*group, row, lane, state.track))
        })
    }

    fn process(&mut self, group: Group) -> i64 {
        if let Some(&pid) = self.groups.get(&group) {
            return pid;
        }
        let pid = match group {
            Group::Process(pid) if (1..OURS).contains(&i64::from(pid)) => i64::from(pid),
            _ => self.fresh(),
        };
        self.groups.insert(group, pid);
        pid
    }

    fn thread(&mut self, row: &Row, lane: usize) -> i64 {
        // A thread's own id leads to its calls, unless it is another process's, too.
        if let Row::Thread { tid, calls: true } = row
            && lane == 0
            && (1..OURS).contains(&i64::from(*tid))
            && self.threads.insert(*tid)
        {
            return i64::from(*tid);
        }
        self.fresh()
    }

    fn fresh(&mut self) -> i64 {
        self.ids += 1;
        OURS + self.ids
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// In no lane do two slices overlap without one lying in the other.
        #[test]
        fn lanes_nest(mut slices in prop::collection::vec((0_i64..50, 0_i64..30), 0..60)) {
            slices.sort_by_key(|(start, length)| (*start, -length));
            let mut tracks = Tracks::default();
            let mut placed: Vec<(i64, i64, i64)> = Vec::new();
            for (start, length) in slices {
                let end = start + length;
                let track = tracks.place(Group::Process(7), Row::Overhead, MonoNs(start), MonoNs(end));
                for &(other_start, other_end, other) in &placed {
                    let apart = other_end <= start;
                    let inside = other_start <= start && end <= other_end;
                    prop_assert!(other != track.tid || apart || inside);
                }
                placed.push((start, end, track.tid));
            }
        }
    }
}
