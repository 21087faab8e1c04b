//! Microseconds with a fraction, read exactly: `4458676522690.655` is 4458676522690655 ns, which no float could hold.

/// Digits after the microsecond's decimal point that are kept: femtoseconds. Three are written by all known versions.
const FRACTION: i32 = 9;

/// A time in 10⁻¹⁵ s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Micros {
    /// Whole nanoseconds, rounded towards zero.
    whole_ns: i64,
    /// The rest, in 10⁻¹⁵ s; of the same sign.
    rest: i32,
}

impl Micros {
    /// Reads a decimal number of microseconds. `None`: it is none, or above 2⁶² ns.
    #[inline]
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        // The common forms: digits, perhaps a point and at most three more.
        let mut value: i64 = 0;
        let mut fraction: Option<u32> = None;
        if matches!(text, [] | [b'.']) || text.len() > 18 {
            return Self::parse_any(text);
        }
        for &byte in text {
            match byte {
                b'0'..=b'9' => {
                    value = value * 10 + i64::from(byte - b'0');
                    if let Some(digits) = &mut fraction {
                        *digits += 1;
                    }
                }
                b'.' if fraction.is_none() => fraction = Some(0),
                _ => return Self::parse_any(text),
            }
        }
        let scale = match fraction.unwrap_or(0) {
            0 => 1_000,
            1 => 100,
            2 => 10,
            3 => 1,
            _ => return Self::parse_any(text),
        };
        Some(Self { whole_ns: value.checked_mul(scale).filter(|&ns| ns < 1 << 62)?, rest: 0 })
    }

    /// The same with a sign, an exponent, more digits.
    #[cold]
    fn parse_any(text: &[u8]) -> Option<Self> {
        let (negative, text) = match text {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            _ => (false, text),
        };
        let at = text.iter().position(|byte| matches!(byte, b'e' | b'E')).unwrap_or(text.len());
        let (mantissa, exponent) = text.split_at(at);
        let mut power = match exponent {
            [] => 0,
            [_, digits @ ..] => {
                std::str::from_utf8(digits).ok()?.parse::<i32>().ok().filter(|e| e.abs() < 64)?
            }
        } + FRACTION;
        let mut value: i128 = 0;
        let (mut digits, mut point) = (0, false);
        for &byte in mantissa {
            match byte {
                b'0'..=b'9' => {
                    digits += 1;
                    power -= i32::from(point);
                    // What is below the resolution is cut off, as all other rounding is.
                    if value < i128::MAX / 1_000 {
                        value = value * 10 + i128::from(byte - b'0');
                    } else {
                        power += 1;
                    }
                }
                b'.' if !point => point = true,
                _ => return None,
            }
        }
        if digits == 0 {
            return None;
        }
        while power > 0 && value != 0 {
            value = value.checked_mul(10)?;
            power -= 1;
        }
        while power < 0 && value != 0 {
            value /= 10;
            power += 1;
        }
        Self::of_femto(if negative { -value } else { value })
    }

    fn of_femto(value: i128) -> Option<Self> {
        let whole = i64::try_from(value / 1_000_000).ok().filter(|ns| ns.unsigned_abs() < 1 << 62)?;
        Some(Self { whole_ns: whole, rest: (value % 1_000_000) as i32 })
    }

    /// Its nanoseconds, the rest cut off.
    #[must_use]
    pub const fn ns(self) -> i64 {
        self.whole_ns
    }

    /// The sum in nanoseconds, the rest cut off after the addition. Both are below 2⁶² in size.
    #[must_use]
    pub fn plus_ns(self, other: Self) -> i64 {
        if self.rest == 0 && other.rest == 0 {
            return self.whole_ns + other.whole_ns;
        }
        let femto = |time: Self| i128::from(time.whole_ns) * 1_000_000 + i128::from(time.rest);
        ((femto(self) + femto(other)) / 1_000_000) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact() {
        for (text, ns) in [
            ("0", Some(0)),
            ("4458676522690.655", Some(4_458_676_522_690_655)),
            ("1712195495519689.047", Some(1_712_195_495_519_689_047)),
            ("1428625731622.25", Some(1_428_625_731_622_250)),
            ("1695835542514261", Some(1_695_835_542_514_261_000)),
            ("0.0019", Some(1)),
            ("-5.5", Some(-5_500)),
            ("1.7e3", Some(1_700_000)),
            ("17E-1", Some(1_700)),
            (".5", Some(500)),
            ("5.", Some(5_000)),
            ("9223372036854775807", None),
            ("1e30", None),
            ("1e999999999999", None),
            ("nan", None),
            ("", None),
            (".", None),
            ("1.2.3", None),
            ("12x", None),
        ] {
            assert_eq!(Micros::parse(text.as_bytes()).map(Micros::ns), ns, "{text}");
        }
    }

    #[test]
    fn a_sum_is_cut_off_after_the_addition() {
        let of = |text: &str| Micros::parse(text.as_bytes()).expect("a number");
        assert_eq!(of("1.0006").plus_ns(of("0.0006")), 1_001);
        assert_eq!(of("10.5").plus_ns(of("-0.25")), 10_250);
        assert_eq!(of("1712195495505582.988").plus_ns(of("4.928")), 1_712_195_495_505_587_916);
    }
}
