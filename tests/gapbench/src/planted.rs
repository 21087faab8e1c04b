//! The truth, laid out so that a recording of tens of thousands of gaps is scored in a moment.

use crate::truth::Planted;

/// The lines of a truth by time.
pub struct PlantedIndex<'a> {
    by_start: Vec<&'a Planted>,
    /// Length of the longest line: one that reaches into an interval starts at most so long before it.
    longest: i64,
    /// One line for each distinct cause and object.
    labels: Vec<&'a Planted>,
}

impl<'a> PlantedIndex<'a> {
    /// Orders the lines.
    pub fn new(truth: &'a [Planted]) -> Self {
        let mut by_start: Vec<&Planted> = truth.iter().collect();
        by_start.sort_by_key(|line| line.start_ns);
        let longest = truth.iter().map(|line| line.end_ns - line.start_ns).max().unwrap_or(0).max(0);
        let mut labels: Vec<&Planted> = Vec::new();
        for line in truth {
            if !labels.iter().any(|label| label.cause == line.cause && label.object == line.object) {
                labels.push(line);
            }
        }
        Self { by_start, longest, labels }
    }

    /// The lines that share a nanosecond with `[start, end)`.
    pub fn within(&self, start: i64, end: i64) -> impl Iterator<Item = &'a Planted> {
        let first = self.by_start.partition_point(|line| line.start_ns < start.saturating_sub(self.longest));
        let reach = self.by_start[first..].iter().take_while(move |line| line.start_ns < end);
        reach.copied().filter(move |line| start < line.end_ns && start < end)
    }

    /// One line for each label that is planted anywhere.
    pub fn labels(&self) -> impl Iterator<Item = &'a Planted> {
        self.labels.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::PlantedIndex;
    use crate::truth::{Causes, Planted};

    fn line(start_ns: i64, end_ns: i64, cause: &str) -> Planted {
        let cause = Causes::One(cause.into());
        Planted { start_ns, end_ns, cause, object: None, enabler: None, pid: 1, tid: 1 }
    }

    #[test]
    fn lines_are_found_by_time_whatever_their_order_and_length() {
        let truth = [line(50, 60, "b"), line(0, 100, "a"), line(70, 80, "b"), line(10, 20, "a")];
        let index = PlantedIndex::new(&truth);
        let starts = |from, to| index.within(from, to).map(|line| line.start_ns).collect::<Vec<_>>();
        assert_eq!(starts(55, 71), [0, 50, 70]);
        assert_eq!(starts(20, 50), [0]);
        assert_eq!(starts(100, 200), [0; 0]);
        assert_eq!(index.labels().count(), 2);
    }
}
