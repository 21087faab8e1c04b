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

/// A row of a group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Row {
    /// A GPU's gaps.
    Gaps,
    /// A counter, of a block device or of the group itself.
    Counter(Counter, Option<Text>),
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

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Counter {
    /// Share of the time in which a GPU worked at anything.
    Busy,
    /// Requests to a block device that are queued or in it.
    Depth,
    /// Bytes that a block device completed.
    Throughput,
}

impl Counter {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Busy => "GPU busy %",
            Self::Depth => "requests queued or in service",
            Self::Throughput => "bytes/s",
        }
    }

    /// Its unit.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Busy => "%",
            Self::Depth => "requests",
            Self::Throughput => "B/s",
        }
    }

    /// What it says.
    pub fn explained(self) -> &'static str {
        match self {
            Self::Busy => "Share of each step of time in which any kernel, copy or set ran.",
            Self::Depth => "Requests made and not completed, exact at every moment.",
            Self::Throughput => "Bytes of the requests that completed in each step of time.",
        }
    }
}

/// A track that is used for the first time.
pub struct NewTrack<'a> {
    /// The track.
    pub track: Track,
    /// Its group.
    pub group: Group,
    /// Its row.
    pub row: &'a Row,
    /// Its number in the row, from 0.
    pub lane: usize,
    /// The track of the thread whose state it shows.
    pub parent: Option<Track>,
    /// Its place in the group. Lanes of a row share it.
    pub rank: i32,
}

/// Something to be named before it is used.
pub enum Fresh {
    /// A group with the id of its process.
    Group(Group, i64),
    /// A track.
    Track {
        /// Its group.
        group: Group,
        /// Its row.
        row: Row,
        /// Its number in the row.
        lane: usize,
        /// The track.
        track: Track,
        /// The track of its thread's calls.
        parent: Option<Track>,
        /// Its place.
        rank: i32,
    },
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
    rows: BTreeMap<Group, BTreeMap<Row, Lanes>>,
    groups: BTreeMap<Group, i64>,
    threads: BTreeSet<i32>,
    ids: i64,
    /// What was used for the first time since [`Self::fresh`] was asked.
    fresh: Vec<Fresh>,
}

struct Lanes {
    rank: i32,
    lanes: Vec<Lane>,
}

struct Lane {
    track: Track,
    /// Ends of the slices around the current time, the innermost last.
    open: Vec<MonoNs>,
}

impl Tracks {
    /// The track for a slice `[start, end)`, which may lie in another one. Slices of a row come in order of their start, of
    /// equal starts the longer first.
    pub fn place(&mut self, group: Group, row: &Row, start: MonoNs, end: MonoNs) -> Track {
        self.place_if(group, row, start, end, |lane| lane.open.last().is_none_or(|&open| end <= open))
    }

    /// The same for a slice in which and around which no other one may lie.
    pub fn place_apart(&mut self, group: Group, row: &Row, start: MonoNs, end: MonoNs) -> Track {
        self.place_if(group, row, start, end, |lane| lane.open.is_empty())
    }

    fn place_if(
        &mut self,
        group: Group,
        row: &Row,
        start: MonoNs,
        end: MonoNs,
        fits: impl Fn(&Lane) -> bool,
    ) -> Track {
        if let Some(lanes) = self.lanes(group, row) {
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
        self.add(group, row, vec![end])
    }

    /// The first lane of a row, whether or not there is a slice.
    pub fn first(&mut self, group: Group, row: &Row) -> Track {
        if let Some(lane) = self.lanes(group, row).and_then(|lanes| lanes.first()) {
            return lane.track;
        }
        self.add(group, row, Vec::new())
    }

    /// Whether there is something to be named.
    pub fn has_fresh(&self) -> bool {
        !self.fresh.is_empty()
    }

    /// What is to be named now.
    pub fn fresh(&mut self) -> Vec<Fresh> {
        std::mem::take(&mut self.fresh)
    }

    fn lanes(&mut self, group: Group, row: &Row) -> Option<&mut Vec<Lane>> {
        self.rows.get_mut(&group)?.get_mut(row).map(|lanes| &mut lanes.lanes)
    }

    fn add(&mut self, group: Group, row: &Row, open: Vec<MonoNs>) -> Track {
        let pid = self.process(group);
        // A thread's states hang on the track of its calls.
        let parent = match row {
            Row::Thread { tid, calls: false } => {
                Some(self.first(group, &Row::Thread { tid: *tid, calls: true }))
            }
            _ => None,
        };
        let number = self.lanes(group, row).map_or(0, |lanes| lanes.len());
        let track = Track { pid, tid: self.thread(row, number) };
        let rows = self.rows.entry(group).or_default();
        let rank = rank(row, rows.len());
        let lanes = rows.entry(row.clone()).or_insert_with(|| Lanes { rank, lanes: Vec::new() });
        lanes.lanes.push(Lane { track, open });
        let parent = parent.or_else(|| {
            lanes
                .lanes
                .first()
                .map(|lane| lane.track)
                .filter(|first| *first != track && matches!(row, Row::Thread { .. }))
        });
        let rank = lanes.rank;
        self.fresh.push(Fresh::Track { group, row: row.clone(), lane: number, track, parent, rank });
        track
    }

    fn process(&mut self, group: Group) -> i64 {
        if let Some(&pid) = self.groups.get(&group) {
            return pid;
        }
        let pid = match group {
            Group::Process(pid) if (1..OURS).contains(&i64::from(pid)) => i64::from(pid),
            _ => self.id(),
        };
        self.groups.insert(group, pid);
        self.fresh.push(Fresh::Group(group, pid));
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
        self.id()
    }

    fn id(&mut self) -> i64 {
        self.ids += 1;
        OURS + self.ids
    }
}

/// A row's place in its group: `seen` rows were there before.
fn rank(row: &Row, seen: usize) -> i32 {
    let seen = i32::try_from(seen).unwrap_or(i32::MAX).min(900_000);
    match row {
        Row::Gaps => 0,
        Row::Counter(..) => 1 + seen,
        Row::Stream { .. } | Row::Device(_) | Row::Source(_) => 1_000_000 + seen,
        Row::Overhead => 2_000_000,
        Row::Thread { tid, calls } => {
            2_000_001_i32.saturating_add(tid.saturating_mul(2)).saturating_add((*calls).into())
        }
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
                let track = tracks.place(Group::Process(7), &Row::Overhead, MonoNs(start), MonoNs(end));
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
