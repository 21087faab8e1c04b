//! Sets of nanoseconds.

/// A set of nanoseconds as disjoint half-open intervals in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Intervals(Vec<(i64, i64)>);

impl Intervals {
    /// The union of intervals, which may overlap and come in any order. Empty ones are left out.
    pub fn union(intervals: impl IntoIterator<Item = (i64, i64)>) -> Self {
        let mut sorted: Vec<(i64, i64)> = intervals.into_iter().filter(|(start, end)| start < end).collect();
        sorted.sort_unstable();
        let mut merged: Vec<(i64, i64)> = Vec::with_capacity(sorted.len());
        for (start, end) in sorted {
            match merged.last_mut() {
                Some(last) if start <= last.1 => last.1 = last.1.max(end),
                _ => merged.push((start, end)),
            }
        }
        Self(merged)
    }

    /// How many nanoseconds.
    pub fn length(&self) -> i64 {
        self.0.iter().map(|(start, end)| end - start).sum()
    }

    /// How many of its nanoseconds lie in `[start, end)`.
    pub fn inside(&self, start: i64, end: i64) -> i64 {
        let first = self.0.partition_point(|(_, own_end)| *own_end <= start);
        let overlapping = self.0[first..].iter().take_while(|(own_start, _)| *own_start < end);
        overlapping.map(|(own_start, own_end)| end.min(*own_end) - start.max(*own_start)).sum()
    }

    /// The parts of `[start, end)` that it does not have.
    pub fn gaps_in(&self, start: i64, end: i64) -> impl Iterator<Item = (i64, i64)> {
        let first = self.0.partition_point(|(_, own_end)| *own_end <= start);
        let inside = self.0[first..].iter().take_while(move |(own_start, _)| *own_start < end);
        let mut cursor = start;
        inside.copied().chain([(end, end)]).filter_map(move |(own_start, own_end)| {
            let part = (cursor, own_start);
            cursor = own_end;
            (part.0 < part.1).then_some(part)
        })
    }

    /// What both have.
    pub fn intersect(&self, other: &Self) -> Self {
        let mut both = Vec::new();
        let (mut left, mut right) = (0, 0);
        while let (Some(&(a0, a1)), Some(&(b0, b1))) = (self.0.get(left), other.0.get(right)) {
            let (start, end) = (a0.max(b0), a1.min(b1));
            if start < end {
                both.push((start, end));
            }
            if a1 <= b1 {
                left += 1;
            } else {
                right += 1;
            }
        }
        Self(both)
    }
}

#[cfg(test)]
mod tests {
    use super::Intervals;

    #[test]
    fn a_union_merges_what_overlaps_or_touches() {
        let set = Intervals::union([(5, 7), (0, 2), (2, 3), (6, 9), (20, 20)]);
        assert_eq!(set, Intervals(vec![(0, 3), (5, 9)]));
        assert_eq!(set.length(), 7);
    }

    #[test]
    fn what_lies_inside_is_counted() {
        let set = Intervals::union([(0, 10), (20, 30), (40, 50)]);
        assert_eq!(set.inside(5, 45), 20);
        assert_eq!(set.inside(10, 20), 0);
        assert_eq!(set.inside(-5, 100), 30);
        assert_eq!(set.inside(22, 23), 1);
    }

    #[test]
    fn what_is_not_there_is_found() {
        let set = Intervals::union([(0, 10), (20, 30), (40, 50)]);
        let gaps = |start, end| set.gaps_in(start, end).collect::<Vec<_>>();
        assert_eq!(gaps(5, 45), [(10, 20), (30, 40)]);
        assert_eq!(gaps(-5, 60), [(-5, 0), (10, 20), (30, 40), (50, 60)]);
        assert_eq!(gaps(22, 25), []);
        assert_eq!(gaps(12, 15), [(12, 15)]);
    }

    #[test]
    fn an_intersection_has_what_both_have() {
        let left = Intervals::union([(0, 10), (20, 30)]);
        let right = Intervals::union([(5, 22), (25, 26), (29, 40)]);
        assert_eq!(left.intersect(&right), Intervals(vec![(5, 10), (20, 22), (25, 26), (29, 30)]));
        assert_eq!(right.intersect(&left), left.intersect(&right));
        assert_eq!(left.intersect(&Intervals::default()).length(), 0);
    }
}
