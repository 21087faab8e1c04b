//! JSON for programs that a person may also look at.
//!
//! Names come from the recorded program. In JSON, every character that could move a terminal's cursor or reorder its text
//! is written as `\u…`: the same string to a program, harmless to a terminal.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{CharEscape, Formatter, PrettyFormatter, Serializer};

use super::escape::is_harmless;

/// `value` as JSON with line breaks and indentation, and a line break at its end.
///
/// # Errors
/// A value cannot be written as JSON.
pub fn pretty(value: &impl Serialize) -> serde_json::Result<String> {
    let mut text = Vec::new();
    value.serialize(&mut Serializer::with_formatter(&mut text, Escaping(PrettyFormatter::new())))?;
    text.push(b'\n');
    // The writer below only adds ASCII to what was valid.
    Ok(String::from_utf8_lossy(&text).into_owned())
}

struct Escaping<'a>(PrettyFormatter<'a>);

impl Formatter for Escaping<'_> {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        let mut units = [0; 2];
        let mut from = 0;
        for (at, character) in fragment.char_indices().filter(|(_, character)| !is_harmless(*character)) {
            writer.write_all(&fragment.as_bytes()[from..at])?;
            for unit in character.encode_utf16(&mut units) {
                write!(writer, "\\u{unit:04x}")?;
            }
            from = at + character.len_utf8();
        }
        writer.write_all(&fragment.as_bytes()[from..])
    }

    fn write_char_escape<W: ?Sized + Write>(&mut self, writer: &mut W, escape: CharEscape) -> io::Result<()> {
        self.0.write_char_escape(writer, escape)
    }

    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_array(writer)
    }

    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_array(writer)
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_array_value(writer, first)
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_array_value(writer)
    }

    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_object(writer)
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_object(writer)
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_object_key(writer, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_object_value(writer)
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_object_value(writer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_reorders_text_is_visible_and_the_same_to_a_program() {
        let name = "a\u{9b}31m\u{202e}b\u{e0041}\u{1b}\"\\ träin\n";
        let text = pretty(&vec![name]).expect("JSON");
        assert_eq!(text, "[\n  \"a\\u009b31m\\u202eb\\udb40\\udc41\\u001b\\\"\\\\ träin\\n\"\n]\n");
        assert_eq!(serde_json::from_str::<Vec<String>>(&text).expect("JSON"), [name]);
    }

    proptest! {
        #[test]
        fn every_string_comes_back(text in any::<String>()) {
            let json = pretty(&text).expect("JSON");
            prop_assert!(json.trim_end().chars().all(is_harmless));
            prop_assert_eq!(serde_json::from_str::<String>(&json).expect("JSON"), text);
        }
    }
}
