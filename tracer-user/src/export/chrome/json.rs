//! JSON objects as text. What goes in comes from outside: every string is escaped and bounded.

use std::fmt::Write as _;

use crate::export::sink::{Describe, Details};
use crate::export::text::{LONGEST, bounded};

/// An object under construction, at the end of a text.
pub struct Object<'a> {
    out: &'a mut String,
    empty: bool,
}

impl<'a> Object<'a> {
    /// Begins an object.
    pub fn begin(out: &'a mut String) -> Self {
        out.push('{');
        Self { out, empty: true }
    }

    /// Adds a string of ours, in which nothing is to be escaped.
    pub fn word(&mut self, key: &'static str, value: &'static str) {
        self.key(key);
        self.out.push('"');
        self.out.push_str(value);
        self.out.push('"');
    }

    /// Adds nanoseconds as microseconds with three decimals, exactly.
    pub fn micros(&mut self, key: &'static str, ns: i128) {
        self.key(key);
        if ns < 0 {
            self.out.push('-');
        }
        let ns = ns.unsigned_abs();
        match u64::try_from(ns) {
            Ok(ns) => {
                push_number(self.out, ns / 1000);
                self.out.push('.');
                for unit in [100, 10, 1] {
                    self.out.push(char::from(b'0' + (ns / unit % 10) as u8));
                }
            }
            // Only where a file holds times that are none. Writing to a string cannot fail.
            Err(_) => drop(write!(self.out, "{}.{:03}", ns / 1000, ns % 1000)),
        }
    }

    /// Adds what a row says of itself.
    pub fn details(&mut self, key: &'static str, details: &dyn Describe) {
        self.key(key);
        let mut inner = Object::begin(self.out);
        details.describe(&mut inner);
        inner.end();
    }

    /// Adds an object.
    pub fn object(&mut self, key: &'static str) -> Object<'_> {
        self.key(key);
        Object::begin(self.out)
    }

    /// Ends it.
    pub fn end(self) {
        self.out.push('}');
    }

    /// A key of ours, in which nothing is to be escaped.
    fn key(&mut self, key: &'static str) {
        self.comma();
        self.out.push('"');
        self.out.push_str(key);
        self.out.push_str("\":");
    }

    fn comma(&mut self) {
        if !self.empty {
            self.out.push(',');
        }
        self.empty = false;
    }
}

impl Details for Object<'_> {
    fn text(&mut self, key: &'static str, value: &str) {
        self.key(key);
        push_string(self.out, value);
    }

    /// Viewers read numbers as doubles: exact up to 2^53.
    fn integer(&mut self, key: &'static str, value: i64) {
        self.key(key);
        if value < 0 {
            self.out.push('-');
        }
        push_number(self.out, value.unsigned_abs());
    }

    fn named(&mut self, name: &str, value: i64) {
        self.comma();
        push_string(self.out, name);
        let _ = write!(self.out, ":{value}");
    }

    fn list(&mut self, key: &'static str, values: &mut dyn Iterator<Item = String>) {
        self.key(key);
        self.out.push('[');
        for (index, value) in values.enumerate() {
            if index > 0 {
                self.out.push(',');
            }
            push_string(self.out, &value);
        }
        self.out.push(']');
    }

    fn group(&mut self, key: &'static str, details: &dyn Describe) {
        self.details(key, details);
    }
}

/// Digits, without the detours of formatting: half of what is written is numbers.
fn push_number(out: &mut String, mut value: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    out.push_str(std::str::from_utf8(&digits[at..]).unwrap_or_default());
}

fn push_string(out: &mut String, value: &str) {
    out.push('"');
    let plain = |byte: u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\' | b'<');
    if value.len() <= LONGEST && value.bytes().all(plain) {
        out.push_str(value);
    } else {
        push_escaped(out, &bounded(value));
    }
    out.push('"');
}

fn push_escaped(out: &mut String, value: &str) {
    for character in value.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            // So that the trace may stand inside a web page's script.
            '<' => out.push_str("\\u003c"),
            // None is left; but whatever is, JSON allows no control character.
            control @ '\0'..='\u{1f}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(control));
            }
            other => out.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::escape::escape;
    use proptest::prelude::*;

    fn object(fill: impl FnOnce(&mut Object<'_>)) -> String {
        let mut text = String::new();
        let mut object = Object::begin(&mut text);
        fill(&mut object);
        object.end();
        text
    }

    #[test]
    fn nanoseconds_are_exact() {
        let text = |ns| object(|object| object.micros("ts", ns));
        assert_eq!(text(0), r#"{"ts":0.000}"#);
        assert_eq!(text(1), r#"{"ts":0.001}"#);
        assert_eq!(text(-1), r#"{"ts":-0.001}"#);
        assert_eq!(text(-1_000), r#"{"ts":-1.000}"#);
        assert_eq!(text(9_007_199_254_740_993), r#"{"ts":9007199254740.993}"#);
        assert_eq!(text(i128::from(i64::MIN) - i128::from(i64::MAX)), r#"{"ts":-18446744073709551.615}"#);
    }

    proptest! {
        #[test]
        fn numbers_are_what_they_were(value in any::<i64>(), ns in any::<i64>()) {
            let text = object(|object| {
                object.integer("value", value);
                object.micros("ts", ns.into());
            });
            let (sign, size) = (if ns < 0 { "-" } else { "" }, ns.unsigned_abs());
            prop_assert_eq!(text, format!(r#"{{"value":{value},"ts":{sign}{}.{:03}}}"#, size / 1000, size % 1000));
        }

        #[test]
        fn any_string_comes_back_escaped(value in any::<String>(), list in any::<Vec<String>>()) {
            let text = object(|object| {
                object.text("value", &value);
                let mut inner = object.object("inner");
                inner.list("list", &mut list.iter().cloned());
                inner.integer("n", 7);
                inner.end();
            });
            prop_assert!(!text.contains('<') && !text.chars().any(char::is_control));
            let parsed: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
            prop_assert_eq!(&parsed["value"], &serde_json::Value::from(escape(&value)));
            let escaped: Vec<String> = list.iter().map(|value| escape(value)).collect();
            prop_assert_eq!(&parsed["inner"]["list"], &serde_json::Value::from(escaped));
        }
    }
}
