//! Steps from the sequence of a device's work: the shortest piece of it that repeats and makes up most of it.
//!
//! A training step launches the same ops in the same order each time, whatever time it takes. For each symbol that comes
//! often enough, the sequence is cut before each of its occurrences; where most of the ops lie in pieces that are alike,
//! that symbol marks a step. Layers within a step are alike too, but what is around them is not, so that their pieces make
//! up less of the whole. Hashes of pieces come from prefixes, so that all symbols together cost one pass.

use std::collections::HashMap;

use foldhash::fast::RandomState;

/// Fewer repetitions say nothing.
const FEWEST: usize = 3;
/// So much of the sequence lies in pieces that are alike. The rest is evaluation, checkpoints, the first step.
const ALIKE: f64 = 0.6;
/// Odd, without pattern: the base of the hash, which is taken modulo 2⁶⁴.
const BASE: u64 = 0x9E37_79B9_7F4A_7C15;

/// An element of the sequence.
#[derive(Clone, Copy, Debug)]
pub struct Element {
    /// What it is: equal for equal work.
    pub symbol: u64,
    /// For how long the device had nothing to do before it, in ns: where steps begin, it tends to.
    pub idle: i64,
}

/// So much of a sequence shows what repeats in it.
pub const SHOWS: usize = 200_000;

/// Where the steps begin: positions in the sequence, the last one being the end of the last step. `beginning` is the sequence
/// or its first part, and `symbols` are all of it.
#[must_use]
pub fn find_steps(beginning: &[Element], symbols: impl Iterator<Item = u64>) -> Vec<usize> {
    let Some(period) = find_period(beginning) else { return Vec::new() };
    let mut whole = 0;
    let mut places: Vec<usize> = symbols
        .inspect(|_| whole += 1)
        .enumerate()
        .filter_map(|(place, symbol)| (symbol == period.symbol).then_some(place))
        .collect();
    // The last piece has no successor that ends it. It is a step if it is as long as the others.
    if let Some(&last) = places.last()
        && last + period.length <= whole
    {
        places.push(last + period.length);
    }
    places
}

/// What repeats.
struct Period {
    /// With what a step begins.
    symbol: u64,
    /// Elements of a step.
    length: usize,
}

fn find_period(sequence: &[Element]) -> Option<Period> {
    let prefixes = Prefixes::new(sequence);
    let mut places: HashMap<u64, Vec<usize>, RandomState> = HashMap::default();
    for (place, element) in sequence.iter().enumerate() {
        places.entry(element.symbol).or_default().push(place);
    }
    places
        .into_iter()
        .filter(|(_, places)| places.len() > FEWEST)
        .filter_map(|(symbol, places)| {
            let length = alike(&prefixes, &places, sequence.len())?;
            let idle: i64 = places.iter().map(|&place| sequence[place].idle).sum();
            Some((length, std::cmp::Reverse(idle), places[0], symbol))
        })
        // Of several symbols of a step, the one before which the device waits; of equals, the first.
        .min()
        .map(|(length, _, _, symbol)| Period { symbol, length })
}

/// The length of the pieces between `places` that are alike, if those make up enough of the sequence.
fn alike(prefixes: &Prefixes, places: &[usize], whole: usize) -> Option<usize> {
    let mut pieces: HashMap<(usize, u64), usize, RandomState> = HashMap::default();
    for pair in places.windows(2) {
        *pieces.entry((pair[1] - pair[0], prefixes.hash(pair[0], pair[1]))).or_default() += 1;
    }
    let ((length, _), count) =
        pieces.into_iter().max_by_key(|((length, hash), count)| (count * length, *length, *hash))?;
    // One and the same op over and over shows no steps.
    // Nor do pieces that are alike among more that are not: the rest of a step behind its last layer.
    let enough = length > 1
        && count >= FEWEST
        && 2 * count >= places.len() - 1
        && (count * length) as f64 >= ALIKE * whole as f64;
    enough.then_some(length)
}

/// Hashes of all prefixes, from which that of any piece follows.
struct Prefixes {
    hashes: Vec<u64>,
    powers: Vec<u64>,
}

impl Prefixes {
    fn new(sequence: &[Element]) -> Self {
        let (mut hash, mut power) = (0_u64, 1_u64);
        let mut all = Self { hashes: vec![0], powers: vec![1] };
        for element in sequence {
            // Symbols are small numbers: spread over all bits, so that none is a multiple of another.
            let mixed = (element.symbol ^ 0x5851_F42D_4C95_7F2D).wrapping_mul(0xD6E8_FEB8_6659_FD93);
            hash = hash.wrapping_mul(BASE).wrapping_add(mixed ^ (mixed >> 32));
            power = power.wrapping_mul(BASE);
            all.hashes.push(hash);
            all.powers.push(power);
        }
        all
    }

    fn hash(&self, from: usize, to: usize) -> u64 {
        self.hashes[to].wrapping_sub(self.hashes[from].wrapping_mul(self.powers[to - from]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(text: &str) -> Vec<usize> {
        let sequence = sequence(text);
        find_steps(&sequence, sequence.iter().map(|element| element.symbol))
    }

    fn sequence(text: &str) -> Vec<Element> {
        // A capital letter: the device waited before it.
        let element = |c: char| Element {
            symbol: u64::from(c.to_ascii_lowercase()),
            idle: i64::from(c.is_ascii_uppercase()),
        };
        text.chars().map(element).collect()
    }

    #[test]
    fn the_shortest_repetition_that_covers_most_is_the_step() {
        assert_eq!(steps("abcabcabcabcabc"), [0, 3, 6, 9, 12, 15]);
        // Every fourth step does more; the warm-up is none.
        assert_eq!(steps("xxyabcdabcdabcdabcdxabcdabcdabcd"), [3, 7, 11, 15, 20, 24, 28, 32]);
    }

    #[test]
    fn layers_are_no_steps() {
        // Three alike layers forward and three back, then the optimizer.
        let text = "efgfgfghijijijk".repeat(6);
        assert_eq!(steps(&text)[..3], [0, 15, 30]);
    }

    #[test]
    fn steps_begin_where_the_device_waits() {
        assert_eq!(steps(&"abCd".repeat(5)), [2, 6, 10, 14, 18]);
    }

    #[test]
    fn what_does_not_repeat_has_no_steps() {
        assert_eq!(steps("aaaaaaaaaaaa"), [0_usize; 0]);
        assert_eq!(steps("abcdefghijklm"), [0_usize; 0]);
        assert_eq!(steps("abab"), [0_usize; 0]);
        assert_eq!(steps(""), [0_usize; 0]);
    }
}
