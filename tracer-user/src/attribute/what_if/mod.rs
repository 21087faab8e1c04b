//! What if a cause were gone: how long the recording would then have taken, and what would hold it up next.
//!
//! Subtracting a cause's gap time would be wrong: behind a disk that reads there may be a decoder that is no faster, and two
//! causes can lie beside one another on different threads. So the recorded dependency graph is played again without the
//! time of that cause, on every thread and at every moment, whether the GPU happened to wait for it or not.

mod replay;
mod spans;

use std::collections::{BTreeMap, HashSet};

use foldhash::fast::RandomState;

use super::block::Block;
use super::cause::Cause;
use super::role::{Role, Roles};
use super::timeline::{Op, Timeline};
use crate::event::{DurationNs, Interval, MonoNs, Text};
use crate::store::schema;
use replay::Graph;

/// What can be taken out: the time of a cause on threads of one role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The cause.
    pub cause: Cause,
    /// What the threads are for; `None` for threads without a known role, and where it is the device's time.
    pub role: Option<Role>,
}

impl Key {
    /// The time of `cause` on a thread of this role. What the device or its queue takes is no thread's.
    #[must_use]
    pub fn of(cause: Cause, role: Option<Role>) -> Self {
        let role = role.filter(|_| !matches!(cause.family(), "copy" | "comm" | "gpu"));
        Self { cause, role }
    }

    /// Whether anybody could take it away.
    fn can_go(self) -> bool {
        !matches!(self.cause.family(), "unknown" | "app") && self.cause != Cause::GpuSubmitLatency
    }
}

/// What is taken out of a replay.
#[derive(Clone, Debug, Default)]
pub struct Removed(HashSet<Key, RandomState>);

impl Removed {
    fn has(&self, key: Key) -> bool {
        self.0.contains(&key)
    }
}

/// Gap time by what could be taken out.
#[derive(Clone, Debug, Default)]
pub struct Shares(BTreeMap<Key, DurationNs>);

impl Shares {
    /// Of a block's segments.
    #[must_use]
    pub fn of(block: &Block, timeline: &Timeline, roles: &Roles) -> Self {
        let mut shares = Self::default();
        let mut last = None;
        for segment in &block.segments {
            let thread = segment.thread(&block.paths);
            // Segments of one thread follow one another.
            let role = match last {
                Some((known, role)) if known == thread => role,
                _ => thread.and_then(|(pid, tid)| roles.get(timeline.find_thread(pid, tid)?)),
            };
            last = Some((thread, role));
            let share = shares.0.entry(Key::of(segment.cause, role)).or_default();
            *share = *share + segment.time.length();
        }
        shares
    }

    /// Adds another's.
    pub fn merge(&mut self, other: &Self) {
        for (&key, &time) in &other.0 {
            let share = self.0.entry(key).or_default();
            *share = *share + time;
        }
    }
}

/// The recording without one cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WhatIf {
    /// What is taken out.
    pub key: Key,
    /// Gap time that it has in the whole recording.
    pub gap: DurationNs,
    /// The part of the recording that was played.
    pub window: Interval,
    /// How long that would take without it.
    pub alone: DurationNs,
    /// How long it would take without it and all those before it in the list.
    pub together: DurationNs,
    /// What would hold it up most then, the devices' computing aside.
    pub next: Option<(Key, DurationNs)>,
}

/// A part of a recording that can be played again.
pub struct Player {
    window: Interval,
    graph: Graph,
}

impl Player {
    /// Of a whole recording, or of a part in the middle of a long one. `None`: there is no GPU work.
    #[must_use]
    pub fn new(timeline: &Timeline, roles: &Roles) -> Option<Self> {
        let window = window(timeline)?;
        let graph = Graph::new(timeline, &spans::of_threads(timeline, roles, window), window);
        Some(Self { window, graph })
    }

    /// What is played.
    #[must_use]
    pub fn window(&self) -> Interval {
        self.window
    }

    /// How long it would take without all of this.
    #[must_use]
    pub fn without(&self, keys: &[Key]) -> DurationNs {
        self.graph.replay(&Removed(keys.iter().copied().collect())).end() - self.window.start
    }
}

/// Rows of the host's tables that are played at most: some seconds of a busy program, and 100 MB.
const MOST_ROWS: usize = 1_000_000;
/// How many causes are tried.
const MOST_CAUSES: usize = 6;
/// A cause with less of the gap time is not tried.
const WORTH: f64 = 0.01;

/// Plays the recording without each of the causes that have most of the gap time, the most helpful first.
#[must_use]
pub fn what_if(timeline: &Timeline, roles: &Roles, shares: &Shares) -> Vec<WhatIf> {
    let Some(Player { window, graph }) = Player::new(timeline, roles) else { return Vec::new() };
    let total: i64 = shares.0.values().map(|time| time.0).sum();
    let mut keys: Vec<(Key, DurationNs)> = shares
        .0
        .iter()
        .map(|(&key, &time)| (key, time))
        .filter(|(key, time)| key.can_go() && time.0 as f64 >= WORTH * total as f64 && time.0 > 0)
        .collect();
    keys.sort_by_key(|&(key, time)| (std::cmp::Reverse(time), key));
    keys.truncate(MOST_CAUSES);
    let mut list: Vec<WhatIf> = keys
        .into_iter()
        .map(|(key, gap)| {
            let removed = Removed([key].into_iter().collect());
            let replay = graph.replay(&removed);
            let path = replay.critical_path();
            let next = path
                .into_iter()
                .filter(|&(other, time)| other != key && time > 0)
                .max_by_key(|&(other, time)| (time, std::cmp::Reverse(other)))
                .map(|(other, time)| (other, DurationNs(time)));
            let alone = replay.end() - window.start;
            WhatIf { key, gap, window, alone, together: alone, next }
        })
        // What waits for something unknown was taken as recorded, and holds everything to the recorded times: such a replay
        // says too little is won, and nothing is better than that.
        .filter(|what| what.next.is_none_or(|(key, _)| key.cause.family() != "unknown"))
        .collect();
    list.sort_by_key(|what| (what.alone, what.key));
    let mut removed = Removed::default();
    for what in &mut list {
        removed.0.insert(what.key);
        what.together = graph.replay(&removed).end() - window.start;
    }
    list
}

/// The ops as recorded and as they would be without these causes, whoever has them: for tests.
#[cfg(test)]
#[must_use]
pub fn replayed(timeline: &Timeline, causes: &[Cause]) -> Vec<(Interval, Interval)> {
    let Some(player) = Player::new(timeline, &super::role::find_roles(timeline)) else { return Vec::new() };
    let all_roles =
        [None, Some(Role::Main), Some(Role::Launcher), Some(Role::DataLoaderWorker), Some(Role::Kernel)];
    let keys = causes.iter().flat_map(|&cause| all_roles.map(|role| Key { cause, role }));
    let removed = Removed(keys.collect());
    player.graph.replay(&removed).ops().collect()
}

/// From the first op to the last; of a long recording, a part in its middle.
fn window(timeline: &Timeline) -> Option<Interval> {
    let start = timeline.ops.iter().map(Op::start).min()?;
    let end = timeline.ops.iter().map(Op::end).max()?;
    let rows = timeline.ops.len() + timeline.off_cpu.len() + timeline.syscalls.len() + timeline.api.len();
    let length = (end - start).0;
    let played =
        if rows <= MOST_ROWS { length } else { (length as f64 * MOST_ROWS as f64 / rows as f64) as i64 };
    let from = MonoNs(start.0 + (length - played) / 2);
    // What was still to be played at the end of the part is none of it.
    let whole = |op: &&Op| op.start() >= from && op.end().0 <= from.0 + played;
    let last = timeline.ops.iter().filter(whole).map(Op::end).max()?;
    Some(Interval::new(from, last)).filter(|window| !window.is_empty())
}

impl WhatIf {
    /// Its row in the table `what_if`.
    #[must_use]
    pub fn row(&self) -> schema::WhatIf {
        let role = |key: Key| key.role.map(|role| Text::fixed(role.as_str()));
        schema::WhatIf {
            cause: Text::fixed(self.key.cause.code()),
            role: role(self.key),
            gap_ns: self.gap,
            start_ns: self.window.start,
            end_ns: self.window.end,
            alone_ns: self.alone,
            together_ns: self.together,
            next_cause: self.next.map(|(key, _)| Text::fixed(key.cause.code())),
            next_role: self.next.and_then(|(key, _)| role(key)),
            next_ns: self.next.map(|(_, time)| time),
        }
    }
}
