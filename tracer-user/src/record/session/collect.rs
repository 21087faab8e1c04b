//! What is collected of the GPU side at each moment of a recording: as asked for, in windows, and less of it where collecting
//! slows the program down.

use std::time::Duration;

use tracer_abi::shim::Collection;

use crate::event::MonoNs;

/// Seconds in a row of slow launches before less is collected: a program's own pause is shorter, or no launch-bound loop.
const SLOW_SECONDS: u32 = 5;
/// Launches a second from which on a program is bound by them: below that, what a launch costs does not show.
const LAUNCH_BOUND: f64 = 2_000.0;
/// Share of the rate without CUPTI that is no slowdown.
const TOLERATED: f64 = 0.95;
/// What is left when even the light mode slows the program down.
const LAST_RESORT: Windows = Windows { on: Duration::from_secs(5), every: Duration::from_secs(60) };

/// Collecting now and then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    /// So long …
    pub on: Duration,
    /// … in each such time.
    pub every: Duration,
}

/// What is to be collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wish {
    /// While something is collected.
    pub collection: Collection,
    /// Not all the time.
    pub windows: Option<Windows>,
}

impl Default for Wish {
    fn default() -> Self {
        Self { collection: Collection::FULL, windows: None }
    }
}

/// Decides from second to second.
pub struct Plan {
    wish: Wish,
    /// When its windows are counted from.
    since: Option<MonoNs>,
    why: String,
    pace: Option<Pace>,
}

impl Default for Plan {
    fn default() -> Self {
        Self::new(Wish::default())
    }
}

impl Plan {
    /// By a wish.
    pub fn new(wish: Wish) -> Self {
        Self { wish, since: None, why: "as asked for".to_owned(), pace: None }
    }

    /// The program launched so much in a second before CUPTI was there.
    pub fn launches_before(&mut self, per_second: f64) {
        if per_second >= LAUNCH_BOUND {
            self.pace = Some(Pace { plain: per_second, slow: 0 });
        }
    }

    /// What is to be collected now, and why.
    pub fn now(&mut self, now: MonoNs) -> (Collection, &str) {
        let since = *self.since.get_or_insert(now);
        let inside = self.wish.windows.is_none_or(|windows| {
            let (on, every) = (windows.on.as_nanos() as i64, windows.every.as_nanos().max(1) as i64);
            (now - since).0.rem_euclid(every) < on
        });
        if inside {
            (self.wish.collection, &self.why)
        } else {
            (self.wish.collection.paused(), "outside the window")
        }
    }

    /// So many launches were counted in the last second while all of it was collected. Whether less is to be collected from
    /// now on, and why.
    pub fn second(&mut self, per_second: f64, now: MonoNs) -> Option<String> {
        let pace = self.pace.as_mut()?;
        if self.wish.windows.is_some() || !pace.is_slow(per_second) {
            return None;
        }
        let (before, step) = if self.wish.collection == Collection::LIGHT {
            self.wish.windows = Some(LAST_RESORT);
            self.since = Some(now);
            ("light", "5 s in each minute")
        } else {
            self.wish.collection = Collection::LIGHT;
            ("full", "the light mode")
        };
        self.why = format!(
            "stepped down: {per_second:.0} launches a second in the {before} mode, {:.0} before CUPTI came",
            pace.plain
        );
        Some(format!("{}; from now on {step}", self.why))
    }
}

/// How fast a program launches, against how fast it did without CUPTI.
struct Pace {
    plain: f64,
    slow: u32,
}

impl Pace {
    fn is_slow(&mut self, per_second: f64) -> bool {
        self.slow = if per_second < self.plain * TOLERATED { self.slow + 1 } else { 0 };
        let is_slow = self.slow >= SLOW_SECONDS;
        if is_slow {
            self.slow = 0;
        }
        is_slow
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    #[test]
    fn windows_open_and_close() {
        let windows = Some(Windows { on: Duration::from_secs(5), every: Duration::from_secs(60) });
        let mut plan = Plan::new(Wish { windows, ..Wish::default() });
        let open = |plan: &mut Plan, second| plan.now(MonoNs(second * SECOND + 7)).0 == Collection::FULL;
        let seen: Vec<i64> = (100..220).filter(|&second| open(&mut plan, second)).collect();
        assert_eq!(seen, [100, 101, 102, 103, 104, 160, 161, 162, 163, 164]);
    }

    #[test]
    fn a_program_that_launches_slower_is_given_less_and_less_to_carry() {
        let mut plan = Plan::new(Wish::default());
        plan.launches_before(10_000.0);
        let mut steps = Vec::new();
        for second in 0..30 {
            steps.extend(plan.second(9_000.0, MonoNs(second * SECOND)).map(|why| (second, why)));
        }
        assert_eq!(steps.len(), 2, "{steps:?}");
        assert!(steps[0].0 == 4 && steps[0].1.contains("the light mode") && steps[0].1.contains("9000"));
        assert!(steps[1].1.contains("5 s in each minute"), "{steps:?}");
        assert_eq!(plan.now(MonoNs(9 * SECOND)).0, Collection::LIGHT);
        assert_eq!(plan.now(MonoNs(20 * SECOND)).0, Collection::LIGHT.paused());
    }

    #[test]
    fn pauses_of_a_second_and_programs_that_launch_seldom_are_left_alone() {
        let mut plan = Plan::new(Wish::default());
        plan.launches_before(10_000.0);
        for second in 0..60 {
            let rate = if second % 5 == 0 { 10_000.0 } else { 1_000.0 };
            assert_eq!(plan.second(rate, MonoNs(second * SECOND)), None);
        }
        let mut plan = Plan::new(Wish::default());
        plan.launches_before(500.0);
        assert!((0..60).all(|second| plan.second(10.0, MonoNs(second * SECOND)).is_none()));
    }
}
