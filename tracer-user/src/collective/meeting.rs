//! Collectives of which all ranks are in one recording, on one clock.

use std::collections::BTreeMap;

use crate::event::{CLOCK_NOISE, DurationNs};
use crate::store::schema::Collective;

/// A collective that was found on all of its ranks. Rows are indices into what [`meetings`] was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meeting {
    /// One row for each rank.
    pub members: Vec<usize>,
    /// The rank whose kernel began last: for it the others waited.
    pub last: usize,
}

/// Finds the collectives that were recorded on all of their ranks: those of one communicator that have the same number on
/// each. Nothing is matched on trust: there have to be as many as the communicator has ranks, all of the same operation, on
/// different devices or in different processes, and their kernels must have run at the same time, since none can end before
/// all have begun. `residual`: error of the conversion of the GPUs' clocks.
#[must_use]
pub fn meetings(rows: &[Collective], residual: DurationNs) -> Vec<Meeting> {
    let mut groups: BTreeMap<(&str, i64), Vec<usize>> = BTreeMap::new();
    for (index, row) in rows.iter().enumerate() {
        if let (Some(communicator), Some(2..), 0..) = (&row.communicator, row.ranks, row.sequence) {
            groups.entry((communicator, row.sequence)).or_default().push(index);
        }
    }
    groups.into_values().filter_map(|members| meeting(rows, members, residual)).collect()
}

fn meeting(rows: &[Collective], members: Vec<usize>, residual: DurationNs) -> Option<Meeting> {
    let first = &rows[members[0]];
    let ranks = usize::try_from(first.ranks?).ok()?;
    let mut places: Vec<_> = members.iter().map(|&row| (rows[row].pid, rows[row].device)).collect();
    places.sort_unstable();
    places.dedup();
    let agree = members.iter().all(|&row| (&rows[row].op, rows[row].ranks) == (&first.op, first.ranks));
    if members.len() != ranks || places.len() != ranks || !agree {
        return None;
    }
    let last = members.iter().copied().max_by_key(|&row| (rows[row].start_ns, row))?;
    let ended = members.iter().map(|&row| rows[row].end_ns).min()?;
    (rows[last].start_ns <= ended + residual + CLOCK_NOISE).then_some(Meeting { members, last })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::tests::ranked as row;
    use crate::event::Text;

    fn found(rows: &[Collective]) -> Vec<Meeting> {
        meetings(rows, DurationNs(0))
    }

    #[test]
    fn the_last_to_begin_is_who_the_others_waited_for() {
        let rows = [row(0, 0, 10, 110), row(0, 1, 120, 220), row(1, 0, 100, 110), row(1, 1, 121, 220)];
        let meetings = found(&rows);
        assert_eq!(meetings.iter().map(|meeting| meeting.last).collect::<Vec<_>>(), [2, 3]);
        assert_eq!(meetings[0].members, [0, 2]);
    }

    #[test]
    fn what_does_not_fit_is_not_matched() {
        assert_eq!(found(&[row(0, 0, 10, 110)]), [], "a rank is missing");
        assert_eq!(found(&[row(0, 0, 10, 110), row(0, 0, 100, 110)]), [], "twice the same rank");
        assert_eq!(found(&[row(0, 0, 10, 110), row(1, 0, 150, 250)]), [], "one ended before the other began");
        let other = Collective { op: Text::from("allgather"), ..row(1, 0, 100, 110) };
        assert_eq!(found(&[row(0, 0, 10, 110), other]), [], "different operations");
        let unnamed = Collective { communicator: None, ..row(1, 0, 100, 110) };
        assert_eq!(found(&[row(0, 0, 10, 110), unnamed]), []);
        let many = Collective { ranks: Some(3), ..row(1, 0, 100, 110) };
        assert_eq!(found(&[row(0, 0, 10, 110), many]), []);
    }
}
