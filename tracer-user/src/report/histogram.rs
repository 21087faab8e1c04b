//! Percentiles of many lengths in little memory.

/// Counts lengths in buckets of an eighth of a power of two: a percentile is at most 12.5 % too small.
#[derive(Clone, Debug)]
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
}

const PER_OCTAVE: u32 = 8;

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: vec![0; (64 * PER_OCTAVE) as usize], total: 0 }
    }
}

impl Histogram {
    /// Counts one length.
    pub fn add(&mut self, ns: i64) {
        self.counts[bucket(ns.max(0) as u64)] += 1;
        self.total += 1;
    }

    /// The length that `share` (0 to 1) of them do not exceed, rounded down to its bucket; 0 if there are none.
    #[must_use]
    pub fn quantile(&self, share: f64) -> i64 {
        let rank = ((self.total as f64 * share).ceil() as u64).clamp(1, self.total.max(1));
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return lower_bound(index as u32);
            }
        }
        0
    }
}

fn bucket(value: u64) -> usize {
    if value < u64::from(PER_OCTAVE) {
        return value as usize;
    }
    let exponent = value.ilog2();
    let within = (value >> (exponent - PER_OCTAVE.ilog2())) as u32 - PER_OCTAVE;
    ((exponent - PER_OCTAVE.ilog2() + 1) * PER_OCTAVE + within) as usize
}

fn lower_bound(bucket: u32) -> i64 {
    if bucket < PER_OCTAVE {
        return i64::from(bucket);
    }
    let exponent = bucket / PER_OCTAVE - 1;
    (i64::from(bucket % PER_OCTAVE + PER_OCTAVE)) << exponent
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_empty_one_says_zero() {
        assert_eq!(Histogram::default().quantile(0.5), 0);
    }

    proptest! {
        #[test]
        fn percentiles_are_at_most_an_eighth_too_small(mut lengths in proptest::collection::vec(0_i64..i64::MAX / 2, 1..200), share in 0.01_f64..1.0) {
            let mut histogram = Histogram::default();
            for length in &lengths {
                histogram.add(*length);
            }
            lengths.sort_unstable();
            let rank = ((lengths.len() as f64 * share).ceil() as usize).clamp(1, lengths.len());
            let exact = lengths[rank - 1];
            let found = histogram.quantile(share);
            prop_assert!(found <= exact && exact - found <= exact / 8, "{found} for {exact}");
        }
    }
}
