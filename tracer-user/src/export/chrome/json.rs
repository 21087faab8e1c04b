//! JSON objects as text. What goes in comes from outside: every string is escaped and bounded.

use std::fmt::Write as _;

use crate::report::escape::escape;

/// Characters of one string at most: enough for a mangled kernel name or a path, and no more than a viewer can show.
const LONGEST: usize = 1024;

/// An object under construction.
#[derive(Clone, Debug, Default)]
pub struct Object(String);

impl Object {
    /// Adds a string.
    pub fn text(mut self, key: &str, value: &str) -> Self {
        self.key(key);
        push_string(&mut self.0, value);
        self
    }

    /// Adds a string, if there is one.
    pub fn text_if(self, key: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.text(key, value),
            None => self,
        }
    }

    /// Adds a whole number. Viewers read numbers as doubles: exact up to 2^53.
    pub fn integer(mut self, key: &str, value: i64) -> Self {
        self.key(key);
        // Writing to a string cannot fail.
        let _ = write!(self.0, "{value}");
        self
    }

    /// Adds a whole number, if there is one.
    pub fn integer_if(self, key: &str, value: Option<i64>) -> Self {
        match value {
            Some(value) => self.integer(key, value),
            None => self,
        }
    }

    /// Adds nanoseconds as microseconds with three decimals, exactly.
    pub fn micros(mut self, key: &str, ns: i128) -> Self {
        self.key(key);
        let sign = if ns < 0 { "-" } else { "" };
        let ns = ns.unsigned_abs();
        let _ = write!(self.0, "{sign}{}.{:03}", ns / 1000, ns % 1000);
        self
    }

    /// Adds a list of strings.
    pub fn list(mut self, key: &str, values: impl IntoIterator<Item = String>) -> Self {
        self.key(key);
        self.0.push('[');
        for (index, value) in values.into_iter().enumerate() {
            if index > 0 {
                self.0.push(',');
            }
            push_string(&mut self.0, &value);
        }
        self.0.push(']');
        self
    }

    /// Adds an object.
    #[allow(clippy::needless_pass_by_value, reason = "it reads as a chain of moves")]
    pub fn object(mut self, key: &str, value: Self) -> Self {
        self.key(key);
        self.0.push('{');
        self.0.push_str(&value.0);
        self.0.push('}');
        self
    }

    /// Its text.
    pub fn finish(self) -> String {
        format!("{{{}}}", self.0)
    }

    fn key(&mut self, key: &str) {
        if !self.0.is_empty() {
            self.0.push(',');
        }
        push_string(&mut self.0, key);
        self.0.push(':');
    }
}

fn push_string(out: &mut String, value: &str) {
    out.push('"');
    if value.len() <= LONGEST
        && value.bytes().all(|byte| matches!(byte, b' '..=b'~') && !b"\"\\<".contains(&byte))
    {
        out.push_str(value);
    } else {
        let cut = value.char_indices().nth(LONGEST).map(|(at, _)| at);
        // What would turn a viewer's text around, or break it, is made visible.
        for character in escape(&value[..cut.unwrap_or(value.len())]).chars() {
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
        if cut.is_some() {
            out.push('…');
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nanoseconds_are_exact() {
        let text = |ns| Object::default().micros("ts", ns).finish();
        assert_eq!(text(0), r#"{"ts":0.000}"#);
        assert_eq!(text(1), r#"{"ts":0.001}"#);
        assert_eq!(text(-1), r#"{"ts":-0.001}"#);
        assert_eq!(text(-1_000), r#"{"ts":-1.000}"#);
        assert_eq!(text(9_007_199_254_740_993), r#"{"ts":9007199254740.993}"#);
        assert_eq!(text(i128::from(i64::MIN) - i128::from(i64::MAX)), r#"{"ts":-18446744073709551.615}"#);
    }

    #[test]
    fn long_strings_are_cut() {
        let text = Object::default().text("a", &"é".repeat(5000)).finish();
        assert_eq!(text, format!(r#"{{"a":"{}…"}}"#, "é".repeat(LONGEST)));
    }

    proptest! {
        #[test]
        fn any_string_comes_back_escaped(value in any::<String>(), list in any::<Vec<String>>()) {
            let text = Object::default()
                .text("value", &value)
                .object("inner", Object::default().list("list", list.clone()).integer("n", 7))
                .finish();
            prop_assert!(!text.contains('<') && !text.chars().any(char::is_control));
            let parsed: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
            prop_assert_eq!(&parsed["value"], &serde_json::Value::from(escape(&value)));
            let escaped: Vec<String> = list.iter().map(|value| escape(value)).collect();
            prop_assert_eq!(&parsed["inner"]["list"], &serde_json::Value::from(escaped));
        }
    }
}
