//! Strings of the program.

use std::ffi::c_char;

use tracer_abi::shim::MARKER_NAME_MAX_BYTES;

/// The bytes of a string of the program, no more than are kept and one, so that a longer one is known as such.
///
/// # Safety
/// Null, or a string that lives during `'text`.
pub unsafe fn narrow<'text>(text: *const c_char) -> &'text [u8] {
    if text.is_null() {
        return &[];
    }
    // SAFETY: a string by the caller's promise; read up to its end or the bound.
    unsafe { std::slice::from_raw_parts(text.cast::<u8>(), libc::strnlen(text, MARKER_NAME_MAX_BYTES + 1)) }
}

/// Room for a wide string.
pub type Wide = [u8; MARKER_NAME_MAX_BYTES + 1];

/// A string of `wchar_t` in UTF-8.
///
/// # Safety
/// Null, or a string of `wchar_t`.
pub unsafe fn wide(text: *const libc::wchar_t, room: &mut Wide) -> &[u8] {
    let mut used = 0;
    if text.is_null() {
        return &[];
    }
    for index in 0..=MARKER_NAME_MAX_BYTES {
        // SAFETY: not past its end, which ends the loop.
        let character = unsafe { text.add(index).read() } as u32;
        let character = match character {
            0 => break,
            other => char::from_u32(other).unwrap_or(char::REPLACEMENT_CHARACTER),
        };
        let mut bytes = [0; 4];
        let bytes = character.encode_utf8(&mut bytes).as_bytes();
        let Some(place) = room.get_mut(used..used + bytes.len()) else { break };
        place.copy_from_slice(bytes);
        used += bytes.len();
    }
    &room[..used]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_read_no_further_than_needed() {
        // SAFETY: null and strings of the test.
        unsafe {
            assert_eq!(narrow(std::ptr::null()), b"");
            assert_eq!(narrow(c"step".as_ptr()), b"step");
            let long = vec![b'a'; 10_000];
            assert_eq!(narrow(long.as_ptr().cast()).len(), MARKER_NAME_MAX_BYTES + 1);
            let mut room = [0; MARKER_NAME_MAX_BYTES + 1];
            let text: Vec<libc::wchar_t> = "Schritt é\0".chars().map(|c| c as libc::wchar_t).collect();
            assert_eq!(wide(text.as_ptr(), &mut room), "Schritt é".as_bytes());
            let long = vec!['é' as libc::wchar_t; 1000];
            assert!(wide(long.as_ptr(), &mut room).len() <= MARKER_NAME_MAX_BYTES + 1);
            assert_eq!(wide(std::ptr::null(), &mut room), b"");
        }
    }
}
