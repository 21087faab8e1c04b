//! Bounded reading.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::event::Text;

/// Reads at most `limit` bytes. `/proc` makes its contents while it is read, so a length cannot be asked for.
///
/// # Errors
/// The file cannot be opened or read (`NotFound` and `ESRCH`: the task is gone).
pub fn read_bounded(path: impl AsRef<Path>, limit: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(limit as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Valid UTF-8 of at most `limit` bytes; a longer text keeps its beginning and ends in `…`.
#[must_use]
pub fn bounded_text(bytes: &[u8], limit: usize) -> Text {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(limit)]);
    if bytes.len() <= limit {
        return Text::from(&*text);
    }
    Text::from(format!("{}…", text.trim_end_matches(char::REPLACEMENT_CHARACTER)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_bounded_and_valid() {
        assert_eq!(bounded_text(b"abc", 3).as_str(), "abc");
        assert_eq!(bounded_text(b"abcd", 3).as_str(), "abc…");
        assert_eq!(bounded_text(b"a\xffb", 10).as_str(), "a\u{fffd}b");
        assert_eq!(bounded_text("aé".as_bytes(), 2).as_str(), "a…");
    }

    #[test]
    fn reads_no_more_than_the_limit() {
        assert_eq!(read_bounded("/proc/self/status", 10).expect("own status").len(), 10);
        assert!(read_bounded("/proc/0/status", 10).is_err());
    }
}
