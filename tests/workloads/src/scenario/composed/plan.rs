//! What a composed scenario consists of: all of it follows from a number.

use crate::cpu::xorshift;

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// Sleeps.
    Sleep,
    /// Computes.
    Compute,
    /// Reads a cold file.
    ColdRead,
    /// Writes to a file and makes it durable.
    Fsync,
    /// Copies pageable memory to the device: the launching thread itself.
    Copy,
}

impl Deed {
    /// Every deed.
    pub const ALL: [Self; 5] = [Self::Sleep, Self::Compute, Self::ColdRead, Self::Fsync, Self::Copy];

    /// Its name: what `--without` takes.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sleep => "sleep",
            Self::Compute => "compute",
            Self::ColdRead => "cold-read",
            Self::Fsync => "fsync",
            Self::Copy => "copy",
        }
    }
}

/// How one station of a chain asks the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hop {
    /// A thread of the same process, over a channel.
    Thread,
    /// Another process, over pipes.
    Process,
}

/// One cause, at the end of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// What is done.
    pub deed: Deed,
    /// Stations between the launching thread and whoever does it.
    pub hops: Vec<Hop>,
    /// How long it takes, or how much it moves: from 2 to 12.
    pub size: u64,
    /// In how many of a hundred rounds.
    pub chance: u64,
}

/// A scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// GPUs.
    pub devices: u32,
    /// How long each works in a round.
    pub work_us: u64,
    /// Two to five causes, each with another deed.
    pub causes: Vec<Cause>,
}

/// Most stations between the launching thread and the deed.
const MOST_HOPS: u64 = 5;

impl Plan {
    /// The scenario of this number.
    #[must_use]
    pub fn of_seed(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let mut deeds = Deed::ALL.to_vec();
        let count = dice.between(2, 5) as usize;
        let causes = (0..count)
            .map(|_| {
                let deed = deeds.swap_remove(dice.between(0, deeds.len() as u64 - 1) as usize);
                let hops = if deed == Deed::Copy { 0 } else { dice.between(0, MOST_HOPS) };
                let hop = |dice: &mut Dice| if dice.between(0, 1) == 0 { Hop::Thread } else { Hop::Process };
                let hops = (0..hops).map(|_| hop(&mut dice)).collect();
                Cause { deed, hops, size: dice.between(2, 12), chance: dice.between(30, 90) }
            })
            .collect();
        Self { devices: dice.between(1, 4) as u32, work_us: dice.between(1_000, 4_000), causes }
    }
}

/// Pseudo-random numbers.
pub struct Dice(u64);

impl Dice {
    /// The dice of this number.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        // Neighbouring seeds shall not begin alike, and the generator must not begin with 0.
        Self(xorshift(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1, 16))
    }

    /// The next number from `low` to `high`.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        self.0 = xorshift(self.0, 1);
        low + (self.0 >> 11) % (high - low + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_a_scenario_within_bounds() {
        let mut deepest = 0;
        for seed in 0..200 {
            let plan = Plan::of_seed(seed);
            assert_eq!(plan, Plan::of_seed(seed));
            assert!((1..=4).contains(&plan.devices) && (2..=5).contains(&plan.causes.len()), "{plan:?}");
            for (index, cause) in plan.causes.iter().enumerate() {
                assert!(plan.causes[..index].iter().all(|other| other.deed != cause.deed), "{plan:?}");
                assert!((30..=90).contains(&cause.chance) && (2..=12).contains(&cause.size), "{plan:?}");
                deepest = deepest.max(cause.hops.len() as u64);
            }
        }
        assert_eq!(deepest, MOST_HOPS);
        assert_ne!(Plan::of_seed(1), Plan::of_seed(2));
    }
}
