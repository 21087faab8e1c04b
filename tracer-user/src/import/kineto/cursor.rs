//! JSON, read where it lies: tokens are slices of the buffer, nothing is allocated.
//!
//! More is accepted than the grammar of JSON allows, because real traces hold it: escapes that do not exist (`\W` of a
//! Windows path), raw control characters inside strings, bytes that are no UTF-8, `nan`, a missing value, a comma before
//! the closing bracket. What cannot be told apart any more, such as an unescaped quote inside a string, is
//! [`Stop::Malformed`].

/// Why a token could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The buffer ends before the token does.
    More,
    /// It is no JSON.
    Malformed,
}

/// A value where it lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Raw<'a> {
    /// There is none.
    Absent,
    /// The inside of a string, escapes and all.
    Text(&'a [u8]),
    /// A number, `true`, `null`, or something alike without quotes.
    Bare(&'a [u8]),
    /// An object or a list with its brackets.
    Nested(&'a [u8]),
}

impl<'a> Raw<'a> {
    /// The characters of a number, with or without quotes.
    #[must_use]
    pub fn scalar(self) -> &'a [u8] {
        match self {
            Self::Text(bytes) | Self::Bare(bytes) => bytes,
            Self::Absent | Self::Nested(_) => b"",
        }
    }

    /// An integer: `7`, `"7"`, `stream 7`.
    #[must_use]
    pub fn integer(self) -> Option<i64> {
        let bytes = self.scalar();
        let bytes = bytes.strip_prefix(b"stream ").unwrap_or(bytes);
        let (negative, digits) = match bytes.strip_prefix(b"-") {
            Some(digits) => (true, digits),
            None => (false, bytes),
        };
        if digits.is_empty() || digits.len() > 20 {
            return None;
        }
        let mut value: u64 = 0;
        for &digit in digits {
            let digit = digit.wrapping_sub(b'0');
            if digit > 9 {
                return None;
            }
            value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
        }
        // Handles above 2⁶³ keep their bits; a number of such a size below zero is none.
        if negative { i64::try_from(value).ok().map(|value| -value) } else { Some(value.cast_signed()) }
    }
}

/// A place in a buffer.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    /// At the beginning of `bytes`.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// How far it has come.
    #[must_use]
    pub fn at(&self) -> usize {
        self.at
    }

    /// The next byte that is no white space.
    #[inline]
    pub fn peek(&mut self) -> Result<u8, Stop> {
        while let Some(&byte) = self.bytes.get(self.at) {
            if byte > b' ' {
                return Ok(byte);
            }
            self.at += 1;
        }
        Err(Stop::More)
    }

    /// Steps over the byte that was peeked at.
    #[inline]
    pub fn step(&mut self) {
        self.at += 1;
    }

    /// Steps over `byte` if it is the next.
    #[inline]
    pub fn take(&mut self, byte: u8) -> Result<bool, Stop> {
        let found = self.peek()? == byte;
        self.at += usize::from(found);
        Ok(found)
    }

    /// The inside of the string that begins here.
    #[inline]
    pub fn text(&mut self) -> Result<&'a [u8], Stop> {
        if self.peek()? != b'"' {
            return Err(Stop::Malformed);
        }
        let start = self.at + 1;
        let end = self.end_of_text(start)?;
        self.at = end + 1;
        Ok(&self.bytes[start..end])
    }

    /// Where the string whose inside begins at `start` has its closing quote.
    #[inline]
    fn end_of_text(&self, start: usize) -> Result<usize, Stop> {
        let mut from = start;
        // Most strings are short keys; a search with vector instructions pays off later.
        for (index, &byte) in self.bytes.iter().enumerate().skip(start).take(16) {
            match byte {
                b'"' => return Ok(index),
                b'\\' => break,
                _ => from = index + 1,
            }
        }
        loop {
            let rest = self.bytes.get(from..).ok_or(Stop::More)?;
            let found = from + memchr::memchr2(b'"', b'\\', rest).ok_or(Stop::More)?;
            if self.bytes[found] == b'"' {
                return Ok(found);
            }
            from = found + 2;
        }
    }

    /// The value that begins here.
    #[inline]
    pub fn value(&mut self) -> Result<Raw<'a>, Stop> {
        match self.peek()? {
            b'"' => self.text().map(Raw::Text),
            b'{' | b'[' => self.nested().map(Raw::Nested),
            b':' => Err(Stop::Malformed),
            _ => {
                let start = self.at;
                let rest = &self.bytes[start..];
                let end = rest
                    .iter()
                    .position(|byte| {
                        matches!(byte, b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t' | b'"' | b':')
                    })
                    .ok_or(Stop::More)?;
                self.at = start + end;
                Ok(Raw::Bare(&rest[..end]))
            }
        }
    }

    /// The object or list that begins here, with its brackets. Depth costs no stack.
    fn nested(&mut self) -> Result<&'a [u8], Stop> {
        let start = self.at;
        let mut depth = 0_usize;
        let mut at = start;
        while let Some(&byte) = self.bytes.get(at) {
            match byte {
                b'"' => at = self.end_of_text(at + 1)?,
                b'{' | b'[' => depth += 1,
                b'}' | b']' => {
                    depth -= 1;
                    if depth == 0 {
                        self.at = at + 1;
                        return Ok(&self.bytes[start..=at]);
                    }
                }
                _ => {}
            }
            at += 1;
        }
        Err(Stop::More)
    }

    /// Reads the object that begins here, and gives each of its members to `member`.
    #[inline]
    pub fn members(&mut self, mut member: impl FnMut(&'a [u8], Raw<'a>)) -> Result<(), Stop> {
        if !self.take(b'{')? {
            return Err(Stop::Malformed);
        }
        loop {
            if self.take(b'}')? {
                return Ok(());
            }
            let key = self.text()?;
            if !self.take(b':')? {
                return Err(Stop::Malformed);
            }
            let value = self.value()?;
            member(key, value);
            if !self.take(b',')? && self.peek()? != b'}' {
                return Err(Stop::Malformed);
            }
        }
    }
}

/// The integers of a short list: `[8, 16, 5]`.
#[must_use]
pub fn three_integers(list: Raw<'_>) -> [Option<i32>; 3] {
    let Raw::Nested(bytes) = list else { return [None; 3] };
    let inner =
        bytes.trim_ascii().strip_prefix(b"[").and_then(|rest| rest.strip_suffix(b"]")).unwrap_or_default();
    let mut numbers = inner
        .split(|&byte| byte == b',')
        .map(|part| Raw::Bare(part.trim_ascii()).integer().and_then(|number| i32::try_from(number).ok()));
    std::array::from_fn(|_| numbers.next().flatten())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(text: &str) -> Result<Vec<(String, Raw<'_>)>, Stop> {
        let mut found = Vec::new();
        Cursor::new(text.as_bytes())
            .members(|key, value| found.push((String::from_utf8_lossy(key).into_owned(), value)))?;
        Ok(found)
    }

    #[test]
    fn what_real_traces_hold_is_read() {
        let found = members(r#" { "a" : 1.5,"b":"x\"\\", "c":[1,{"]":"}"}], "d": , "e":nan, "f":"\W", }"#)
            .expect("read");
        let values: Vec<Raw> = found.iter().map(|(_, value)| *value).collect();
        assert_eq!(
            values,
            [
                Raw::Bare(b"1.5"),
                Raw::Text(br#"x\"\\"#),
                Raw::Nested(br#"[1,{"]":"}"}]"#),
                Raw::Bare(b""),
                Raw::Bare(b"nan"),
                Raw::Text(br"\W"),
            ]
        );
    }

    #[test]
    fn an_unescaped_quote_is_malformed_and_an_end_asks_for_more() {
        assert_eq!(members(r#"{"a":"b"c", "d":1}"#), Err(Stop::Malformed));
        let whole = r#"{"a":"b\"", "d":[1,2], "e":12}"#;
        for end in 0..whole.len() {
            assert_eq!(members(&whole[..end]), Err(Stop::More), "{}", &whole[..end]);
        }
    }

    #[test]
    fn depth_costs_no_stack() {
        let deep = format!("{}{}", "[".repeat(1_000_000), "]".repeat(1_000_000));
        let text = format!("{{\"a\":{deep}}}");
        assert_eq!(members(&text).expect("read")[0].1, Raw::Nested(deep.as_bytes()));
    }

    #[test]
    fn integers() {
        for (text, value) in [
            ("7", Some(7)),
            ("-1", Some(-1)),
            ("stream 7", Some(7)),
            ("18446744073709551615", Some(-1)),
            ("18446744073709551616", None),
            ("7.5", None),
            ("", None),
            ("-", None),
        ] {
            assert_eq!(Raw::Text(text.as_bytes()).integer(), value, "{text}");
        }
        assert_eq!(three_integers(Raw::Nested(b"[8, 16,x]")), [Some(8), Some(16), None]);
    }
}
