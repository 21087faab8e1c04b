//! Values of arguments: durations, sizes, moments.

use std::time::Duration;

use crate::event::{DurationNs, MonoNs};

/// Reads `30s`, `1.5m`, `250ms`, `2h`; a bare number is seconds.
///
/// # Errors
/// It is no duration, or not above zero.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = split_unit(text);
    let seconds_per_unit = match unit {
        "" | "s" => 1.0,
        "ms" => 1e-3,
        "us" | "µs" => 1e-6,
        "ns" => 1e-9,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(format!("`{unit}` is no unit of time; use ns, us, ms, s, m or h")),
    };
    let value: f64 =
        number.parse().map_err(|_| "give a number with a unit, such as 30s or 250ms".to_owned())?;
    Duration::try_from_secs_f64(value * seconds_per_unit)
        .ok()
        .filter(|duration| !duration.is_zero())
        .ok_or_else(|| "the duration must be above zero and below some centuries".to_owned())
}

/// Reads `200M`, `1.5G`, `4096`; powers of 1024, as `ls -h` and `du` use them.
///
/// # Errors
/// It is no size, or not above zero.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let (number, unit) = split_unit(text);
    let factor = match unit.trim_end_matches("iB").trim_end_matches('B').to_ascii_lowercase().as_str() {
        "" => 1.0,
        "k" => 1024.0,
        "m" => 1024.0 * 1024.0,
        "g" => 1024.0 * 1024.0 * 1024.0,
        _ => return Err(format!("`{unit}` is no unit of size; use K, M or G")),
    };
    let value: f64 = number.parse().map_err(|_| "give a number with a unit, such as 200M".to_owned())?;
    let bytes = value * factor;
    if bytes.is_finite() && (1.0..9e18).contains(&bytes) {
        Ok(bytes as u64)
    } else {
        Err("the size must be at least one byte".to_owned())
    }
}

/// A moment of a recording, as a person names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// So long after the beginning of the recording.
    SinceStart(DurationNs),
    /// A value of the `*_ns` columns.
    Monotonic(MonoNs),
}

impl Moment {
    /// Where it lies on the clock of the tables.
    #[must_use]
    pub fn resolve(self, started: MonoNs) -> MonoNs {
        match self {
            Self::SinceStart(length) => MonoNs(started.0.saturating_add(length.0)),
            Self::Monotonic(moment) => moment,
        }
    }
}

impl std::str::FromStr for Moment {
    type Err = String;

    /// `12.5s`, `340ms` (since the beginning of the recording) or a bare integer (a value of the `*_ns` columns).
    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(ns) = text.parse() {
            return Ok(Self::Monotonic(MonoNs(ns)));
        }
        let length = parse_duration(text.trim_start_matches('+'))?;
        Ok(Self::SinceStart(DurationNs(i64::try_from(length.as_nanos()).map_err(|_| "too large")?)))
    }
}

fn split_unit(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    (&text[..end], text[end..].trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        assert_eq!(parse_duration("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(parse_duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(parse_duration("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(parse_duration("2"), Ok(Duration::from_secs(2)));
        for bad in ["", "s", "-1s", "0s", "3 parsecs", "1e3s", "nan", "inf"] {
            assert!(parse_duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn sizes() {
        assert_eq!(parse_bytes("200M"), Ok(200 << 20));
        assert_eq!(parse_bytes("1.5GiB"), Ok(3 << 29));
        assert_eq!(parse_bytes("64kB"), Ok(64 << 10));
        assert_eq!(parse_bytes("77"), Ok(77));
        for bad in ["", "0", "M", "-5", "7T7", "9999999999999999999999G"] {
            assert!(parse_bytes(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn moments() {
        assert_eq!("12.5s".parse(), Ok(Moment::SinceStart(DurationNs(12_500_000_000))));
        assert_eq!("+3ms".parse(), Ok(Moment::SinceStart(DurationNs(3_000_000))));
        assert_eq!("8123456789".parse(), Ok(Moment::Monotonic(MonoNs(8_123_456_789))));
        assert_eq!(Moment::SinceStart(DurationNs(5)).resolve(MonoNs(100)), MonoNs(105));
        assert!("noon".parse::<Moment>().is_err());
    }
}
