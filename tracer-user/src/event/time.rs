//! Time on the master clock.

use std::fmt;
use std::ops::{Add, Sub};

/// A moment: nanoseconds of `CLOCK_MONOTONIC` of the recorded host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MonoNs(pub i64);

/// How far times of a device and of the host may be apart beside the measured residual: their clocks agree to about a
/// microsecond at best.
pub const CLOCK_NOISE: DurationNs = DurationNs(1_000);

/// A length of time in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DurationNs(pub i64);

impl MonoNs {
    /// Before every event.
    pub const MIN: Self = Self(i64::MIN);
    /// After every event.
    pub const MAX: Self = Self(i64::MAX);
}

impl Sub for MonoNs {
    type Output = DurationNs;
    fn sub(self, earlier: Self) -> DurationNs {
        DurationNs(self.0 - earlier.0)
    }
}

impl Add<DurationNs> for MonoNs {
    type Output = Self;
    fn add(self, length: DurationNs) -> Self {
        Self(self.0 + length.0)
    }
}

impl Add for DurationNs {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl std::iter::Sum for DurationNs {
    fn sum<I: Iterator<Item = Self>>(lengths: I) -> Self {
        Self(lengths.map(|length| length.0).sum())
    }
}

impl fmt::Display for DurationNs {
    /// With the unit that fits: `812 ns`, `41.3 µs`, `3.10 ms`, `12.4 s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0 as f64;
        match self.0.unsigned_abs() {
            0..1_000 => write!(f, "{} ns", self.0),
            1_000..1_000_000 => write!(f, "{:.1} µs", ns / 1e3),
            1_000_000..1_000_000_000 => write!(f, "{:.2} ms", ns / 1e6),
            _ => write!(f, "{:.2} s", ns / 1e9),
        }
    }
}

/// A half-open interval `[start, end)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Interval {
    /// First nanosecond inside.
    pub start: MonoNs,
    /// First nanosecond after.
    pub end: MonoNs,
}

impl Interval {
    /// `[start, end)`; an end before its start makes an empty interval at `start`.
    #[must_use]
    pub fn new(start: MonoNs, end: MonoNs) -> Self {
        Self { start, end: end.max(start) }
    }

    /// Its length.
    #[must_use]
    pub fn length(self) -> DurationNs {
        self.end - self.start
    }

    /// Whether it holds no nanosecond.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.end <= self.start
    }

    /// The common part, empty if there is none.
    #[must_use]
    pub fn intersect(self, other: Self) -> Self {
        Self::new(self.start.max(other.start), self.end.min(other.end))
    }
}
