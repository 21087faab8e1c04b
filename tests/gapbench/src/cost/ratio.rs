//! Ratios of paired measurements. A machine's speed drifts; two measurements that follow each other share most of it, so
//! the ratio is taken within each pair, and the median over the pairs.

/// Median, least and greatest of some ratios.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// The median.
    pub median: f64,
    /// The least.
    pub min: f64,
    /// The greatest.
    pub max: f64,
}

impl Ratio {
    /// Of pairs `(with, without)`. Nothing without pairs, or where a measurement is not positive.
    pub fn of(pairs: &[(f64, f64)]) -> Option<Self> {
        if pairs.is_empty() || pairs.iter().any(|(with, without)| !(*with > 0.0 && *without > 0.0)) {
            return None;
        }
        let mut ratios: Vec<f64> = pairs.iter().map(|(with, without)| with / without).collect();
        ratios.sort_by(f64::total_cmp);
        let median = median(&ratios);
        Some(Self { median, min: ratios[0], max: ratios[ratios.len() - 1] })
    }

    /// `1.03 [1.01–1.07]`.
    pub fn show(&self) -> String {
        format!("{:.2} [{:.2}–{:.2}]", self.median, self.min, self.max)
    }
}

/// The median of sorted values; of an even number, the mean of the two in the middle.
pub fn median(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        length if length % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

#[cfg(test)]
mod tests {
    use super::{Ratio, median};

    #[test]
    fn the_median_is_of_the_pairs_ratios() {
        // The machine slows down by half between the pairs; the ratio does not.
        let ratio = Ratio::of(&[(11.0, 10.0), (24.0, 20.0), (13.0, 10.0)]).expect("three pairs");
        assert!(
            (ratio.median - 1.2).abs() < 1e-9
                && (ratio.min - 1.1).abs() < 1e-9
                && (ratio.max - 1.3).abs() < 1e-9
        );
        assert_eq!(ratio.show(), "1.20 [1.10–1.30]");
        assert_eq!(Ratio::of(&[]), None);
        assert_eq!(Ratio::of(&[(1.0, 0.0)]), None);
    }

    #[test]
    fn an_even_number_has_its_median_between() {
        assert!((median(&[1.0, 2.0, 4.0, 9.0]) - 3.0).abs() < 1e-9);
    }
}
