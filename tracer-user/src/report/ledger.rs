//! The ledger: gap time by cause, stage, object and thread.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

use super::model::{Cause, Share, Stage, Thread, ThreadShare};
use super::names::Names;
use super::wording;
use crate::attribute::frame::function_of_label;
use crate::event::Text;
use crate::store::schema::{Gap, GapSegment};

/// How many objects and threads of one cause the report names.
pub const MOST_OBJECTS: usize = 50;

/// Collects segments. Everything that the report says by some key is a sum over these cells, so that no two of its
/// tables can disagree.
#[derive(Debug, Default)]
pub struct LedgerTally {
    cells: HashMap<Key, Cell>,
    gaps: HashMap<i64, Cover>,
    broken: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    cause: Text,
    stage: Text,
    object: Option<Text>,
    thread: Option<(i32, i32)>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    ns: i64,
    exact_ns: i64,
    segments: u64,
}

/// How far the segments of a gap have covered it.
#[derive(Clone, Copy, Debug)]
struct Cover {
    reach: i64,
    end: i64,
    exact: bool,
}

impl LedgerTally {
    /// Expects the segments of a gap.
    pub fn gap(&mut self, gap: &Gap) {
        let cover = Cover { reach: gap.start_ns.0, end: gap.end_ns.0, exact: true };
        if self.gaps.insert(gap.gap_id.0, cover).is_some() {
            self.broken += 1;
        }
    }

    /// Counts a segment; those of one gap come in order of time.
    pub fn segment(&mut self, segment: &GapSegment) {
        let (start, end) = (segment.start_ns.0, segment.end_ns.0);
        match self.gaps.get_mut(&segment.gap_id.0) {
            Some(cover) => {
                cover.exact &= start == cover.reach && end >= start;
                cover.reach = end;
            }
            None => self.broken += 1,
        }
        let key = Key {
            cause: segment.cause.clone(),
            stage: segment.stage.clone(),
            object: grouped(&segment.cause, segment.object.as_ref()),
            thread: segment.pid.zip(segment.tid).map(|(pid, tid)| (pid.0, tid.0)),
        };
        let cell = self.cells.entry(key).or_default();
        cell.ns += end - start;
        cell.segments += 1;
        if &*segment.confidence == "exact" {
            cell.exact_ns += end - start;
        }
    }

    /// Gaps whose segments do not cover them exactly, and segments of no gap.
    #[must_use]
    pub fn uncovered(&self) -> u64 {
        let uncovered = self.gaps.values().filter(|cover| !cover.exact || cover.reach != cover.end).count();
        uncovered as u64 + self.broken
    }

    /// By cause, the largest first.
    #[must_use]
    pub fn causes(&self, names: &Names) -> Vec<Cause> {
        let mut by_cause: BTreeMap<&str, Vec<(&Key, &Cell)>> = BTreeMap::new();
        for (key, cell) in &self.cells {
            by_cause.entry(&key.cause).or_default().push((key, cell));
        }
        let mut causes: Vec<Cause> = by_cause
            .into_iter()
            .map(|(code, cells)| {
                let mut objects = sums(&cells, |key| key.object.as_deref());
                let object_count = objects.len() as u64;
                objects.truncate(MOST_OBJECTS);
                let threads = sums(&cells, |key| key.thread).into_iter().take(MOST_OBJECTS);
                Cause {
                    cause: code.to_owned(),
                    says: wording::cause(code).to_owned(),
                    ns: cells.iter().map(|(_, cell)| cell.ns).sum(),
                    exact_ns: cells.iter().map(|(_, cell)| cell.exact_ns).sum(),
                    segments: cells.iter().map(|(_, cell)| cell.segments).sum(),
                    stages: shares(sums(&cells, |key| Some(&*key.stage))),
                    objects: shares(objects),
                    object_count,
                    threads: threads
                        .map(|((pid, tid), ns)| ThreadShare { thread: names.thread(pid, tid), ns })
                        .collect(),
                    samples: 0,
                    functions: Vec::new(),
                }
            })
            .collect();
        causes.sort_by(|a, b| b.ns.cmp(&a.ns).then_with(|| a.cause.cmp(&b.cause)));
        causes
    }

    /// By stage, the largest first.
    #[must_use]
    pub fn stages(&self) -> Vec<Stage> {
        let cells: Vec<(&Key, &Cell)> = self.cells.iter().collect();
        sums(&cells, |key| Some(&*key.stage))
            .into_iter()
            .map(|(stage, ns)| {
                let of_stage = sums(&cells, |key| (*key.stage == *stage).then_some(&*key.cause));
                Stage { stage: stage.to_owned(), ns, causes: shares(of_stage) }
            })
            .collect()
    }

    /// By thread at the end of the chain, the largest first; and the time that ends in no thread.
    #[must_use]
    pub fn threads(&self, names: &Names) -> (Vec<Thread>, i64) {
        let mut by_thread: HashMap<(i32, i32), Vec<(&Key, &Cell)>> = HashMap::new();
        let mut threadless = 0;
        for (key, cell) in &self.cells {
            match key.thread {
                Some(thread) => by_thread.entry(thread).or_default().push((key, cell)),
                None => threadless += cell.ns,
            }
        }
        let mut threads: Vec<Thread> = by_thread
            .into_iter()
            .map(|((pid, tid), cells)| Thread {
                thread: names.thread(pid, tid),
                ns: cells.iter().map(|(_, cell)| cell.ns).sum(),
                on_cpu_ns: None,
                causes: shares(sums(&cells, |key| Some(&*key.cause))),
            })
            .collect();
        threads.sort_by(|a, b| b.ns.cmp(&a.ns).then_with(|| a.thread.cmp(&b.thread)));
        (threads, threadless)
    }

    /// By object of the causes that `belongs` picks, the largest first.
    #[must_use]
    pub fn objects(&self, belongs: impl Fn(&str) -> bool) -> Vec<Share> {
        let cells: Vec<(&Key, &Cell)> = self.cells.iter().collect();
        shares(sums(&cells, |key| if belongs(&key.cause) { key.object.as_deref() } else { None }))
    }

    /// Time that rests on recorded edges, and time that is inferred; unknown time is neither.
    #[must_use]
    pub fn confidence(&self) -> (i64, i64) {
        let known = self.cells.iter().filter(|(key, _)| !wording::is_prefix("unknown", &key.cause));
        known.fold((0, 0), |(exact, inferred), (_, cell)| {
            (exact + cell.exact_ns, inferred + cell.ns - cell.exact_ns)
        })
    }
}

/// Under which object a segment is counted: its own; of functions, whatever line they were in.
fn grouped(cause: &str, object: Option<&Text>) -> Option<Text> {
    match object {
        Some(object) if cause == "host.cpu.user" => {
            let function = function_of_label(object);
            Some(if function == object.as_str() { object.clone() } else { function.into() })
        }
        _ => object.cloned(),
    }
}

/// Sums cells by a key, the largest first, ties in order of the key.
fn sums<'a, K: Hash + Eq + Ord + Clone>(
    cells: &[(&'a Key, &Cell)],
    by: impl Fn(&'a Key) -> Option<K>,
) -> Vec<(K, i64)> {
    let mut sums: HashMap<K, i64> = HashMap::new();
    for (key, cell) in cells {
        if let Some(group) = by(key) {
            *sums.entry(group).or_default() += cell.ns;
        }
    }
    let mut sums: Vec<(K, i64)> = sums.into_iter().collect();
    sums.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    sums
}

fn shares(sums: Vec<(&str, i64)>) -> Vec<Share> {
    sums.into_iter().map(|(name, ns)| Share { name: name.to_owned(), ns }).collect()
}
