//! The inside of a JSON string as text.

use std::borrow::Cow;

/// Undoes the escapes of `raw`. One that does not exist stays as it stands, bytes that are no UTF-8 become the
/// replacement character.
#[must_use]
pub fn decode(raw: &[u8]) -> Cow<'_, str> {
    if memchr::memchr(b'\\', raw).is_none() {
        return String::from_utf8_lossy(raw);
    }
    let mut bytes = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        bytes.extend_from_slice(&rest[..at]);
        let (character, after) = escape(&rest[at + 1..]);
        match character {
            Some(character) => {
                bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
            None => bytes.push(b'\\'),
        }
        rest = after;
    }
    bytes.extend_from_slice(rest);
    Cow::Owned(String::from_utf8_lossy(&bytes).into_owned())
}

/// The character of the escape whose backslash stands before `rest`, and what follows it.
fn escape(rest: &[u8]) -> (Option<char>, &[u8]) {
    let Some((&kind, after)) = rest.split_first() else { return (None, rest) };
    let character = match kind {
        b'"' => '"',
        b'\\' => '\\',
        b'/' => '/',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => return unicode(after).map_or((None, rest), |(character, after)| (Some(character), after)),
        _ => return (None, rest),
    };
    (Some(character), after)
}

/// `00e9`, or a pair of surrogates.
fn unicode(rest: &[u8]) -> Option<(char, &[u8])> {
    let (first, after) = hex(rest)?;
    if let Some(character) = char::from_u32(first) {
        return Some((character, after));
    }
    let pair = after.strip_prefix(b"\\u").and_then(hex).and_then(|(second, after)| {
        let low = second.checked_sub(0xdc00).filter(|low| *low < 0x400)?;
        let high = first.checked_sub(0xd800).filter(|high| *high < 0x400)?;
        Some((char::from_u32(0x1_0000 + (high << 10) + low)?, after))
    });
    Some(pair.unwrap_or((char::REPLACEMENT_CHARACTER, after)))
}

fn hex(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (digits, after) = bytes.split_at_checked(4)?;
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok().map(|code| (code, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_good_and_bad() {
        for (raw, text) in [
            (&b"plain"[..], "plain"),
            (br#"a\"b\\c\/\n"#, "a\"b\\c/\n"),
            (br"C:\Users\x", "C:\\Users\\x"),
            (br"\u00e9\ud83d\ude00", "é😀"),
            (br"\ud83d!", "\u{fffd}!"),
            (br"\u12", "\\u12"),
            (br"end\", "end\\"),
            (b"\xff", "\u{fffd}"),
        ] {
            assert_eq!(decode(raw), text, "{}", String::from_utf8_lossy(raw));
        }
    }
}
