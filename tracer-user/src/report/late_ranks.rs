//! Which ranks came late to collectives, by how much, and why. A ledger by cause alone does not say so: what the late rank
//! did is the cause, and the rank a hop on the way there.

use std::collections::BTreeMap;

use super::model::{LateRank, Share};
use crate::attribute::path::LATE_RANK;
use crate::collective::{NOISE, meetings};
use crate::event::DurationNs;
use crate::store::schema::{Collective, GapSegment};

/// Collectives that are looked at: a recording of days has more than fit into memory.
const MOST_ROWS: usize = 1 << 20;
/// Ranks and causes that are named.
const MOST_NAMED: usize = 10;

/// Collects segments and collectives.
#[derive(Debug, Default)]
pub struct LateRankTally {
    rows: Vec<Collective>,
    waits: BTreeMap<String, BTreeMap<String, i64>>,
}

/// Of one rank: how often it was last, and by how much in sum.
#[derive(Default)]
struct Last {
    times: usize,
    behind: i64,
}

impl LateRankTally {
    /// Counts a segment if its chain goes over a late rank.
    pub fn segment(&mut self, segment: &GapSegment) {
        let late = segment.path.iter().rfind(|hop| hop.edge.as_deref() == Some(LATE_RANK));
        let Some(rank) = late.and_then(|hop| hop.object.as_ref()) else { return };
        let causes = self.waits.entry(rank.to_string()).or_default();
        *causes.entry(segment.cause.to_string()).or_default() += (segment.end_ns - segment.start_ns).0;
    }

    /// Takes a collective.
    pub fn collective(&mut self, row: Collective) {
        if self.rows.len() < MOST_ROWS {
            self.rows.push(row);
        }
    }

    /// What was found, the rank first for which most was waited. `residual`: error of the GPUs' clocks.
    #[must_use]
    pub fn finish(self, residual: DurationNs) -> Vec<LateRank> {
        let met = meetings(&self.rows, residual);
        let mut last: BTreeMap<String, Last> = BTreeMap::new();
        for meeting in &met {
            let row = &self.rows[meeting.last];
            let first = meeting.members.iter().map(|&member| self.rows[member].start_ns).min();
            let behind = first.map_or(DurationNs(0), |first| row.start_ns - first);
            if behind > NOISE {
                let name =
                    row.rank.map_or_else(|| format!("GPU {}", row.device), |rank| format!("rank {rank}"));
                let entry = last.entry(name).or_default();
                entry.times += 1;
                entry.behind += behind.0;
            }
        }
        let mut ranks: Vec<LateRank> = self
            .waits
            .into_iter()
            .map(|(rank, causes)| {
                let found = last.remove(&rank).unwrap_or_default();
                let mut causes: Vec<Share> =
                    causes.into_iter().map(|(name, ns)| Share { name, ns }).collect();
                causes.sort_by(|a, b| (b.ns, &a.name).cmp(&(a.ns, &b.name)));
                let ns = causes.iter().map(|share| share.ns).sum();
                causes.truncate(MOST_NAMED);
                LateRank {
                    rank,
                    last: found.times,
                    collectives: met.len(),
                    behind_ns: found.behind / found.times.max(1) as i64,
                    ns,
                    causes,
                }
            })
            .collect();
        ranks.sort_by(|a, b| (b.ns, &a.rank).cmp(&(a.ns, &b.rank)));
        ranks.truncate(MOST_NAMED);
        ranks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::tests::ranked as row;
    use crate::event::{GapId, MonoNs, Pid, Text, Tid};
    use crate::store::schema::Hop;

    fn segment(cause: &str, us: i64, edge: Option<&str>) -> GapSegment {
        GapSegment {
            gap_id: GapId(0),
            seq: 0,
            start_ns: MonoNs(0),
            end_ns: MonoNs(us * 1_000),
            cause: cause.into(),
            stage: "other".into(),
            object: None,
            pid: None,
            tid: None,
            path: vec![Hop {
                pid: Pid(0),
                tid: Tid(0),
                thread: "GPU 0".into(),
                state: "device".into(),
                call: None,
                object: Some("rank 1".into()),
                edge: edge.map(Text::from),
            }],
            evidence: Vec::new(),
            confidence: "exact".into(),
        }
    }

    #[test]
    fn a_late_rank_has_its_share_its_delay_and_its_causes() {
        let mut tally = LateRankTally::default();
        for at in [row(0, 0, 100, 500), row(1, 0, 480, 500), row(0, 1, 600, 1_000), row(1, 1, 960, 1_000)] {
            tally.collective(at);
        }
        // The third began at once on both.
        tally.collective(row(0, 2, 2_000, 2_100));
        tally.collective(row(1, 2, 2_001, 2_100));
        tally.segment(&segment("storage.read.device", 600, Some(LATE_RANK)));
        tally.segment(&segment("host.cpu.user", 140, Some(LATE_RANK)));
        tally.segment(&segment("host.cpu.user", 9_000, Some("woken by task")));
        let ranks = tally.finish(DurationNs(0));
        let [rank] = ranks.as_slice() else { panic!("{ranks:?}") };
        assert_eq!((rank.rank.as_str(), rank.last, rank.collectives), ("rank 1", 2, 3));
        assert_eq!((rank.behind_ns, rank.ns), (370_000, 740_000));
        assert_eq!((rank.causes[0].name.as_str(), rank.causes[0].ns), ("storage.read.device", 600_000));
    }
}
