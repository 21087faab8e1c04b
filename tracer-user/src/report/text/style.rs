//! Colours, where they are wanted.

use crate::event::DurationNs;

/// How a piece of text looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// A heading.
    Heading,
    /// What matters most in its line.
    Strong,
    /// Less important than its surroundings.
    Faint,
    /// Good news.
    Good,
    /// Something to be careful about.
    Careful,
    /// Bad news.
    Bad,
}

/// Whether there are colours, and how wide a line is.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// Escape sequences may be written.
    pub colors: bool,
    /// Columns of a line.
    pub columns: usize,
}

impl Style {
    /// The text with that look.
    #[must_use]
    pub fn paint(self, look: Look, text: &str) -> String {
        if !self.colors || text.is_empty() {
            return text.to_owned();
        }
        let code = match look {
            Look::Heading => "1;4",
            Look::Strong => "1",
            Look::Faint => "2",
            Look::Good => "32",
            Look::Careful => "33",
            Look::Bad => "31;1",
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }
}

/// A length of time with its unit.
#[must_use]
pub fn time(ns: i64) -> String {
    DurationNs(ns).to_string()
}

/// Bytes with their unit, powers of 1024.
#[must_use]
pub fn bytes(count: i64) -> String {
    let value = count as f64;
    match count.unsigned_abs() {
        0..1_024 => format!("{count} B"),
        1_024..1_048_576 => format!("{:.1} KiB", value / 1024.0),
        1_048_576..1_073_741_824 => format!("{:.1} MiB", value / 1_048_576.0),
        _ => format!("{:.1} GiB", value / 1_073_741_824.0),
    }
}

/// A count with thin groups of three: `1,204`.
#[must_use]
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// One or many: `1 gap`, `3 gaps`.
#[must_use]
pub fn plural(number: u64, one: &str) -> String {
    format!("{} {one}{}", count(number), if number == 1 { "" } else { "s" })
}

/// Words, broken into lines of at most `columns`, each line after the first indented.
#[must_use]
pub fn wrap(text: &str, columns: usize, indent: &str) -> String {
    let mut wrapped = String::new();
    let mut used = 0;
    for word in text.split(' ') {
        let width = super::super::escape::width(word);
        if used > 0 && used + 1 + width > columns {
            wrapped.push('\n');
            wrapped.push_str(indent);
            used = indent.len();
        } else if used > 0 {
            wrapped.push(' ');
            used += 1;
        }
        wrapped.push_str(word);
        used += width;
    }
    wrapped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_for_people() {
        assert_eq!(
            (count(0), count(999), count(1_204), count(1_234_567)),
            ("0".into(), "999".into(), "1,204".into(), "1,234,567".into())
        );
        assert_eq!((plural(1, "gap"), plural(1_204, "gap")), ("1 gap".into(), "1,204 gaps".into()));
        assert_eq!(
            (bytes(512), bytes(8 << 20), bytes(3 << 30)),
            ("512 B".into(), "8.0 MiB".into(), "3.0 GiB".into())
        );
    }

    #[test]
    fn lines_are_broken_between_words() {
        assert_eq!(wrap("one two three", 8, "  "), "one two\n  three");
    }
}
