//! Whether an id was seen before, in little memory: ids count up, so a bit for each is enough.

/// Ids beyond the first by more than this are not checked: 16 MiB of bits.
const RANGE: u64 = 1 << 27;

/// The ids of two domains.
#[derive(Debug, Default)]
pub struct Correlations {
    domains: [Bits; 2],
}

#[derive(Debug, Default)]
struct Bits {
    first: Option<u64>,
    bits: Vec<u64>,
}

impl Correlations {
    /// Notes `id` of a domain and says whether it was there.
    #[inline]
    pub fn repeats(&mut self, driver: bool, id: i64) -> bool {
        let domain = &mut self.domains[usize::from(driver)];
        let id = id.cast_unsigned();
        // Room for ids that come out of order.
        let first = *domain.first.get_or_insert(id.saturating_sub(RANGE / 2) & !63);
        let Some(place) = id.checked_sub(first).filter(|&place| place < RANGE) else { return false };
        let (word, bit) = ((place / 64) as usize, 1_u64 << (place % 64));
        if word >= domain.bits.len() {
            domain.bits.resize(word + 1, 0);
        }
        let there = domain.bits[word] & bit != 0;
        domain.bits[word] |= bit;
        there
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_repeats_within_its_domain() {
        let mut seen = Correlations::default();
        assert!(!seen.repeats(false, 1_000_000));
        assert!(!seen.repeats(true, 1_000_000));
        assert!(!seen.repeats(false, 5));
        assert!(!seen.repeats(false, i64::MAX));
        assert!(!seen.repeats(false, i64::MAX), "out of range: not checked");
        assert!(seen.repeats(false, 5));
        assert!(seen.repeats(false, 1_000_000));
        assert!(!seen.repeats(false, -1));
    }
}
