//! How far apart two means may be by chance.

/// Fewer parts of a recording say nothing about how much they differ.
const FEWEST: usize = 5;

/// One value in each part of a recording, per unit of run.
#[derive(Clone, Debug)]
pub struct Samples {
    values: Vec<f64>,
    mean: f64,
}

impl Samples {
    /// From sums and the units that each is a sum over. The mean is that of the whole, not of the parts' means.
    pub fn new(sums: &[(f64, f64)]) -> Self {
        let whole = sums.iter().fold((0.0, 0.0), |all, part| (all.0 + part.0, all.1 + part.1));
        let values = sums.iter().filter(|(_, units)| *units > 0.0).map(|(sum, units)| sum / units);
        Self { values: values.collect(), mean: if whole.1 > 0.0 { whole.0 / whole.1 } else { 0.0 } }
    }

    /// The mean.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// Variance of the mean, as far as the parts are independent.
    fn variance_of_mean(&self) -> f64 {
        let count = self.values.len() as f64;
        let mean = self.values.iter().sum::<f64>() / count;
        let squares: f64 = self.values.iter().map(|value| (value - mean).powi(2)).sum();
        squares / (count - 1.0) / count
    }
}

/// Half of the 99 % interval of the difference between two means (Welch's: the two may vary differently). `None`: one of them
/// has too few parts.
pub fn half_width(before: &Samples, after: &Samples) -> Option<f64> {
    if before.values.len() < FEWEST || after.values.len() < FEWEST {
        return None;
    }
    let (a, b) = (before.variance_of_mean(), after.variance_of_mean());
    let freedom =
        |variance: f64, samples: &Samples| variance * variance / (samples.values.len() as f64 - 1.0);
    let denominator = freedom(a, before) + freedom(b, after);
    let freedom = if denominator > 0.0 { (a + b).powi(2) / denominator } else { f64::INFINITY };
    Some(t99(freedom) * (a + b).sqrt())
}

/// Quantile 0.995 of Student's t, between the tabulated degrees of freedom as a line in their inverse.
fn t99(freedom: f64) -> f64 {
    const TABLE: [(f64, f64); 10] = [
        (3.0, 5.841),
        (4.0, 4.604),
        (5.0, 4.032),
        (6.0, 3.707),
        (8.0, 3.355),
        (10.0, 3.169),
        (15.0, 2.947),
        (20.0, 2.845),
        (40.0, 2.704),
        (120.0, 2.617),
    ];
    const LIMIT: f64 = 2.576;
    let inverse = 1.0 / freedom.max(TABLE[0].0);
    let mut lower = (0.0, LIMIT);
    for (at, t) in TABLE.iter().rev().map(|(freedom, t)| (1.0 / freedom, *t)) {
        if inverse <= at {
            return lower.1 + (t - lower.1) * (inverse - lower.0) / (at - lower.0);
        }
        lower = (at, t);
    }
    TABLE[0].1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quantiles_are_students() {
        for (freedom, t) in
            [(5.0, 4.032), (7.0, 3.499), (12.0, 3.055), (30.0, 2.750), (60.0, 2.660), (1e9, 2.576)]
        {
            assert!((t99(freedom) - t).abs() < 0.02, "{freedom}: {}", t99(freedom));
        }
    }

    #[test]
    fn too_few_parts_say_nothing() {
        let few = Samples::new(&[(1.0, 1.0); 4]);
        let enough = Samples::new(&[(1.0, 1.0); 5]);
        assert_eq!(half_width(&few, &enough), None);
        assert_eq!(half_width(&enough, &enough), Some(0.0));
    }

    #[test]
    fn the_mean_is_of_the_whole() {
        let samples = Samples::new(&[(10.0, 1.0), (2.0, 3.0), (0.0, 0.0)]);
        assert!((samples.mean() - 3.0).abs() < 1e-12);
        assert_eq!(samples.values.len(), 2);
    }

    /// A small generator, so that the test is the same each time.
    fn uniform(state: &mut u64) -> f64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 11) as f64 / (1_u64 << 53) as f64
    }

    #[test]
    fn what_does_not_differ_is_rarely_said_to_differ() {
        let mut state = 7;
        let mut wrong = 0;
        for _ in 0..2_000 {
            let mut samples =
                || Samples::new(&(0..20).map(|_| (uniform(&mut state), 1.0)).collect::<Vec<_>>());
            let (a, b) = (samples(), samples());
            let noise = half_width(&a, &b).expect("there are enough");
            wrong += usize::from((a.mean() - b.mean()).abs() > noise);
        }
        // One of a hundred is expected.
        assert!((5..=40).contains(&wrong), "{wrong} of 2000");
    }

    proptest! {
        #[test]
        fn scale_does_not_matter(values in proptest::collection::vec(0.0_f64..1e9, 10..40), scale in 0.001_f64..1000.0) {
            let (a, b) = values.split_at(values.len() / 2);
            let samples = |list: &[f64], scale: f64| Samples::new(&list.iter().map(|v| (v * scale, 1.0)).collect::<Vec<_>>());
            let plain = half_width(&samples(a, 1.0), &samples(b, 1.0)).expect("enough");
            let scaled = half_width(&samples(a, scale), &samples(b, scale)).expect("enough");
            prop_assert!((plain * scale - scaled).abs() <= 1e-6 * scaled.max(1.0));
        }
    }
}
