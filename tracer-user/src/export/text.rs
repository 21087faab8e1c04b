//! Strings of a trace. They come from outside: every one is escaped and bounded.

use std::borrow::Cow;

use crate::report::escape::escape;

/// Characters of one string at most: enough for a mangled kernel name or a path, and no more than a viewer can show.
pub const LONGEST: usize = 1024;

/// The text as viewers get it: what would turn their text around, or break it, made visible; the rest cut off.
pub fn bounded(value: &str) -> Cow<'_, str> {
    if value.len() <= LONGEST && value.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return Cow::Borrowed(value);
    }
    let cut = value.char_indices().nth(LONGEST).map(|(at, _)| at);
    let mut text = escape(&value[..cut.unwrap_or(value.len())]);
    if cut.is_some() {
        text.push('…');
    }
    Cow::Owned(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_stays_and_long_text_is_cut() {
        assert!(matches!(bounded("a \"b\" <c>"), Cow::Borrowed(_)));
        assert_eq!(bounded(&"é".repeat(5000)), format!("{}…", "é".repeat(LONGEST)));
        assert!(!bounded("a\u{202e}\n\u{1f}").contains(['\u{202e}', '\n', '\u{1f}']));
    }
}
