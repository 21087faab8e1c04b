//! Text from outside, made fit for a terminal.
//!
//! Names of processes, files, kernels and peers come from the recorded program, which is not trusted: a thread may be
//! called `\x1b]0;…`, a path may hold a right-to-left override that turns the rest of the line around, or be a megabyte
//! long.

use unicode_width::UnicodeWidthChar as _;

/// The longest name that is printed whole, in columns.
pub const LONGEST_NAME: usize = 120;

/// The text with every character that could move the cursor, change its look, hide or reorder text replaced by a
/// visible `\u{…}`.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        push_escaped(&mut escaped, character);
    }
    escaped
}

/// The same for a whole message: line breaks become spaces, and it is cut at a length that no message of ours has.
#[must_use]
pub fn escape_line(text: &str) -> String {
    let text = text.replace(['\n', '\r', '\t'], " ");
    shorten_end(&escape(&text), 2_000)
}

/// A name, escaped and cut to at most `columns` columns in the middle, where paths and C++ names say the least.
#[must_use]
pub fn name(text: &str, columns: usize) -> String {
    shorten_middle(&escape(text), columns)
}

/// How many columns a text takes on a terminal.
#[must_use]
pub fn width(text: &str) -> usize {
    unicode_width::UnicodeWidthStr::width(text)
}

/// Cuts the end off.
#[must_use]
pub fn shorten_end(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut kept = take_columns(text.chars(), columns.saturating_sub(1));
    kept.push('…');
    kept
}

/// Cuts the middle out.
#[must_use]
pub fn shorten_middle(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let room = columns.saturating_sub(1);
    let head = take_columns(text.chars(), room / 3);
    let tail = take_columns(text.chars().rev(), room - room / 3);
    format!("{head}…{}", tail.chars().rev().collect::<String>())
}

fn take_columns(characters: impl Iterator<Item = char>, columns: usize) -> String {
    let mut taken = String::new();
    let mut used = 0;
    for character in characters {
        used += character.width().unwrap_or(0);
        if used > columns {
            break;
        }
        taken.push(character);
    }
    taken
}

fn push_escaped(escaped: &mut String, character: char) {
    use std::fmt::Write as _;
    if is_harmless(character) {
        escaped.push(character);
    } else {
        // Writing to a String cannot fail.
        let _ = write!(escaped, "\\u{{{:x}}}", character as u32);
    }
}

/// Not a control character, not one that reorders text, and not invisible.
#[must_use]
pub fn is_harmless(character: char) -> bool {
    if character.is_control() {
        return false;
    }
    !matches!(character,
        '\u{00ad}'                  // soft hyphen
        | '\u{034f}'                // combining grapheme joiner
        | '\u{061c}'                // Arabic letter mark
        | '\u{115f}' | '\u{1160}'   // Hangul fillers
        | '\u{17b4}' | '\u{17b5}'   // Khmer vowels inherent, invisible
        | '\u{180b}'..='\u{180e}'   // Mongolian selectors and separator
        | '\u{200b}'..='\u{200f}'   // zero width, direction marks
        | '\u{2028}'..='\u{202e}'   // separators, embeddings, overrides
        | '\u{2060}'..='\u{206f}'   // joiners, isolates, deprecated formats
        | '\u{3164}'                // Hangul filler
        | '\u{fe00}'..='\u{fe0f}'   // variation selectors
        | '\u{feff}'                // zero width no-break space
        | '\u{ffa0}'                // Hangul filler, half width
        | '\u{fff9}'..='\u{fffb}'   // interlinear annotation
        | '\u{1bca0}'..='\u{1bca3}' // shorthand controls
        | '\u{1d173}'..='\u{1d17a}' // musical controls
        | '\u{e0000}'..='\u{e0fff}' // tags, variation selectors
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn terminal_controls_become_visible() {
        assert_eq!(escape("a\u{1b}[31mb\n"), "a\\u{1b}[31mb\\u{a}");
        assert_eq!(escape("exe\u{202e}gpj.py"), "exe\\u{202e}gpj.py");
        assert_eq!(escape("\u{9b}31m\u{7f}"), "\\u{9b}31m\\u{7f}");
        assert_eq!(escape("/数据/träin.py"), "/数据/träin.py");
    }

    #[test]
    fn the_middle_goes_first() {
        assert_eq!(name("/data/imagenet/train/n01440764/x.jpg", 20), "/data/…1440764/x.jpg");
        assert_eq!(name("short", 20), "short");
    }

    proptest! {
        #[test]
        fn no_name_breaks_its_column(text in "\\PC*|.*", columns in 1_usize..60) {
            let shown = name(&text, columns);
            prop_assert!(width(&shown) <= columns);
            prop_assert!(!shown.chars().any(char::is_control));
        }
    }
}
