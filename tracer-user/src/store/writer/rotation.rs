//! Which parts go while a recording goes on, so that it never takes more room than its last stretch.
//!
//! A row is written when its interval has ended. So all rows of a part had ended when the part was sealed, and what overlaps
//! the stretch that is kept lies in parts sealed within it: a part goes when it was sealed before the stretch began,
//! whatever times its rows have.

use std::collections::VecDeque;

use crate::event::MonoNs;

/// Tables that are small and hold for the whole recording.
const KEPT: [&str; 4] = ["processes", "threads", "losses", "clocks"];

/// A sealed part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedPart {
    /// Its table.
    pub table: &'static str,
    /// Its file.
    pub name: String,
    /// Its rows.
    pub rows: u64,
}

/// Parts by the time at which they were sealed.
#[derive(Debug)]
pub struct Rotation {
    keep_ns: i64,
    /// Sealed since the last [`Self::turn`].
    fresh: Vec<SealedPart>,
    sealed: VecDeque<(MonoNs, SealedPart)>,
    /// Nothing that ended after this is gone.
    whole_from: Option<MonoNs>,
}

impl Rotation {
    /// Keeps at least the last `keep_ns`.
    pub fn new(keep_ns: i64) -> Self {
        Self { keep_ns, fresh: Vec::new(), sealed: VecDeque::new(), whole_from: None }
    }

    /// A part was sealed.
    pub fn sealed(&mut self, part: SealedPart) {
        if !KEPT.contains(&part.table) {
            self.fresh.push(part);
        }
    }

    /// Time has come to `now`, after every row of the parts that were sealed. Returns the parts that go.
    pub fn turn(&mut self, now: MonoNs) -> Vec<SealedPart> {
        self.sealed.extend(self.fresh.drain(..).map(|part| (now, part)));
        let mut gone = Vec::new();
        while let Some((sealed, _)) = self.sealed.front()
            && sealed.0 < now.0 - self.keep_ns
            && let Some((sealed, part)) = self.sealed.pop_front()
        {
            self.whole_from = Some(sealed);
            gone.push(part);
        }
        gone
    }

    /// From when on everything is there; `None`: nothing has gone.
    pub fn whole_from(&self) -> Option<MonoNs> {
        self.whole_from
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn part(table: &'static str, number: u64) -> SealedPart {
        SealedPart { table, name: number.to_string(), rows: number }
    }

    #[test]
    fn small_tables_stay() {
        let mut rotation = Rotation::new(10);
        rotation.sealed(part("threads", 1));
        rotation.sealed(part("gpu_ops", 2));
        assert_eq!(rotation.turn(MonoNs(0)), []);
        assert_eq!(rotation.turn(MonoNs(10)), []);
        assert_eq!(rotation.whole_from(), None);
        assert_eq!(rotation.turn(MonoNs(11)), [part("gpu_ops", 2)]);
        assert_eq!(rotation.whole_from(), Some(MonoNs(0)));
    }

    proptest! {
        /// Whatever is sealed when: what ended within the last `keep` is there.
        #[test]
        fn nothing_of_the_last_stretch_goes(keep in 1_i64..50, steps in proptest::collection::vec((0_i64..20, 0_usize..3), 1..60)) {
            let mut rotation = Rotation::new(keep);
            let (mut now, mut number) = (0, 0);
            let mut ends = Vec::new();
            for (step, parts) in steps {
                now += step;
                for _ in 0..parts {
                    // Its last row ended just now.
                    rotation.sealed(part("off_cpu", number));
                    ends.push(now);
                    number += 1;
                }
                now += 1;
                for gone in rotation.turn(MonoNs(now)) {
                    prop_assert!(ends[gone.rows as usize] < now - keep);
                    prop_assert!(rotation.whole_from().is_some_and(|from| from.0 > ends[gone.rows as usize]));
                }
                prop_assert!(rotation.whole_from().is_none_or(|from| from.0 < now - keep));
            }
        }
    }
}
