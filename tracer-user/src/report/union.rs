//! Lengths of unions of intervals that arrive in order of their starts.

/// Sums up the union of half-open intervals.
#[derive(Clone, Copy, Debug, Default)]
pub struct Union {
    total: i64,
    open: Option<(i64, i64)>,
}

impl Union {
    /// Adds `[start, end)`; `start` is not before that of an earlier call. (One that is counts from where the union
    /// already reaches.)
    pub fn add(&mut self, start: i64, end: i64) {
        match &mut self.open {
            Some((_, reach)) if start <= *reach => *reach = (*reach).max(end),
            open => {
                if let Some((from, to)) = open.replace((start, end.max(start))) {
                    self.total += to - from;
                }
            }
        }
    }

    /// The length of the union so far.
    #[must_use]
    pub fn length(&self) -> i64 {
        self.total + self.open.map_or(0, |(from, to)| to - from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn equals_a_count_of_the_nanoseconds(mut intervals in proptest::collection::vec((0_i64..200, 0_i64..40), 0..40)) {
            intervals.sort_unstable();
            let mut union = Union::default();
            let mut seconds = [false; 300];
            for (start, length) in &intervals {
                union.add(*start, start + length);
                seconds[*start as usize..(start + length) as usize].fill(true);
            }
            prop_assert_eq!(union.length(), seconds.iter().filter(|set| **set).count() as i64);
        }
    }
}
