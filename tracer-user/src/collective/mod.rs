//! Collectives across ranks: who came late.
//!
//! The kernel of a collective begins on each rank when that rank arrives and ends on all of them when the last has arrived
//! and the data has moved. So the shortest of its kernels is that of the last rank to arrive, and by as much as another
//! rank's is longer, that rank waited. Lengths are enough for this: clocks of different hosts need not agree ([`match_ranks`]).
//! Where all ranks are in one recording, their begins tell when each arrived ([`meetings`]).

mod kernel;
mod meeting;

use std::collections::BTreeMap;

pub use kernel::{of_kernel, operation};
pub use meeting::{Meeting, meetings};

use crate::event::{DurationNs, Text};
use crate::store::schema::Collective;

/// Differences below this are the wire's and the clock's, and nobody's delay: kernels do not begin in the same nanosecond.
pub const NOISE: DurationNs = DurationNs(20_000);

/// What one rank's collectives say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RankTime {
    /// The rank.
    pub rank: i32,
    /// Time in kernels of collectives.
    pub in_collectives: DurationNs,
    /// Of it, waiting for ranks that came later.
    pub waited: DurationNs,
    /// Time that other ranks waited for this one, summed over them.
    pub waited_for: DurationNs,
    /// Collectives to which it came last, by more than the noise.
    pub last: usize,
}

/// What the collectives of all ranks say together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranks {
    /// By rank.
    pub ranks: Vec<RankTime>,
    /// Collectives that were found on every rank.
    pub matched: usize,
    /// Kernels of collectives that have no counterpart on some rank.
    pub unmatched: usize,
    /// Whether the traces say which communicator each belongs to; otherwise it is taken that all ranks take part in all.
    pub named: bool,
}

impl Ranks {
    /// Ranks for which others waited at least a fifth of all waiting, the worst first.
    #[must_use]
    pub fn late(&self) -> Vec<RankTime> {
        let all: i64 = self.ranks.iter().map(|rank| rank.waited_for.0).sum();
        let mut late: Vec<RankTime> = self
            .ranks
            .iter()
            .copied()
            .filter(|rank| rank.waited_for.0 > 0 && rank.waited_for.0 * 5 >= all)
            .collect();
        late.sort_by_key(|rank| std::cmp::Reverse(rank.waited_for));
        late
    }
}

/// Matches the collectives of `ranks`, each with its rows, in the order in which each rank ran those of one communicator and
/// operation.
#[must_use]
pub fn match_ranks(ranks: &[(i32, Vec<Collective>)]) -> Ranks {
    type Key = (Option<Text>, Text);
    let mut groups: BTreeMap<Key, Vec<Vec<&Collective>>> = BTreeMap::new();
    for (place, (_, rows)) in ranks.iter().enumerate() {
        for row in rows {
            let key = (row.communicator.clone(), row.op.clone());
            groups.entry(key).or_insert_with(|| vec![Vec::new(); ranks.len()])[place].push(row);
        }
    }
    let mut result = Ranks {
        ranks: ranks
            .iter()
            .map(|(rank, rows)| RankTime {
                rank: *rank,
                in_collectives: rows.iter().map(length).sum(),
                ..RankTime::default()
            })
            .collect(),
        named: !groups.is_empty() && groups.keys().all(|(communicator, _)| communicator.is_some()),
        ..Ranks::default()
    };
    for group in groups.values_mut() {
        let count = group[0].len();
        // Another number on one rank: which of them belong together cannot be told.
        if ranks.len() < 2 || group.iter().any(|rows| rows.len() != count) {
            result.unmatched += group.iter().map(Vec::len).sum::<usize>();
            continue;
        }
        for rows in group.iter_mut() {
            rows.sort_by_key(|row| (row.start_ns, row.op_id));
        }
        for index in 0..count {
            let lengths: Vec<DurationNs> = group.iter().map(|rows| length(rows[index])).collect();
            result.add(&lengths);
        }
    }
    result
}

impl Ranks {
    fn add(&mut self, lengths: &[DurationNs]) {
        self.matched += 1;
        let Some((last, &shortest)) = lengths.iter().enumerate().min_by_key(|&(_, length)| *length) else {
            return;
        };
        let mut waited = DurationNs(0);
        for (rank, length) in self.ranks.iter_mut().zip(lengths) {
            let wait = DurationNs(length.0 - shortest.0);
            if wait > NOISE {
                rank.waited = rank.waited + wait;
                waited = waited + wait;
            }
        }
        if waited > DurationNs(0) {
            self.ranks[last].waited_for = self.ranks[last].waited_for + waited;
            self.ranks[last].last += 1;
        }
    }
}

fn length(row: &Collective) -> DurationNs {
    row.end_ns - row.start_ns
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::event::{DeviceId, MonoNs, OpId, Pid, StreamId};

    pub(crate) fn collective(start_us: i64, length_us: i64, op: &str) -> Collective {
        Collective {
            op_id: OpId(start_us),
            pid: Pid(1),
            device: DeviceId(0),
            stream: StreamId(7),
            op: Text::from(op),
            communicator: None,
            rank: None,
            ranks: None,
            sequence: 0,
            count: None,
            data_type: None,
            bytes: None,
            start_ns: MonoNs(start_us * 1_000),
            end_ns: MonoNs((start_us + length_us) * 1_000),
        }
    }

    /// The same of a rank of two.
    pub(crate) fn ranked(rank: i32, sequence: i64, start_us: i64, end_us: i64) -> Collective {
        Collective {
            device: DeviceId(rank),
            communicator: Some(Text::from("c0")),
            rank: Some(rank),
            ranks: Some(2),
            sequence,
            ..collective(start_us, end_us - start_us, "allreduce")
        }
    }

    #[test]
    fn the_last_to_arrive_has_the_shortest_kernel() {
        // Clocks that do not agree at all, and rows in no order.
        let ranks = match_ranks(&[
            (0, vec![collective(900, 100, "allreduce"), collective(100, 500, "allreduce")]),
            (1, vec![collective(77_000, 90, "allreduce"), collective(70_500, 100, "allreduce")]),
            (2, vec![collective(10, 510, "allreduce"), collective(800, 1_090, "allreduce")]),
        ]);
        assert_eq!((ranks.matched, ranks.unmatched, ranks.named), (2, 0, false));
        let us = |us: i64| DurationNs(us * 1_000);
        let [zero, one, two] = ranks.ranks[..] else { panic!("three ranks") };
        assert_eq!((one.waited, one.waited_for, one.last), (us(0), us(400 + 410 + 1_000), 2));
        assert_eq!((zero.waited, two.waited), (us(400), us(410 + 1_000)));
        assert_eq!(zero.in_collectives, us(600));
        assert_eq!(ranks.late().iter().map(|rank| rank.rank).collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn what_has_no_counterpart_blames_nobody() {
        let ranks = match_ranks(&[
            (0, vec![collective(1, 500, "allreduce"), collective(600, 9, "broadcast")]),
            (1, vec![collective(1, 10, "allreduce"), collective(30, 10, "allreduce")]),
        ]);
        assert_eq!((ranks.matched, ranks.unmatched), (0, 4));
        assert!(ranks.late().is_empty());
        assert_eq!(match_ranks(&[]).ranks, []);
        assert_eq!(match_ranks(&[(0, vec![collective(1, 5, "allreduce")])]).unmatched, 1);
    }

    #[test]
    fn small_differences_are_noise() {
        let ranks = match_ranks(&[(0, vec![collective(1, 110, "a")]), (1, vec![collective(1, 100, "a")])]);
        assert!(ranks.late().is_empty());
    }
}
