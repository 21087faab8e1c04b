//! Python's strings, as they lie in memory (`PyUnicodeObject`, compact: all that the compiler makes).

use super::layout::Layout;
use crate::event::Text;
use crate::record::procfs::bounded_text;
use crate::record::stacks::memory::{Memory, field, word_at};

/// Where the length and the state lie.
const LENGTH: usize = 16;
const STATE: usize = 32;
/// Bytes of the longest head.
const HEAD: usize = 72;

/// The string at an address, of at most `most` characters; a longer one keeps its end, where a path has its file.
#[must_use]
pub fn read(memory: &dyn Memory, layout: &Layout, address: u64, most: usize) -> Option<Text> {
    let head = memory.bytes(address.checked_add(u64::from(layout.longer))?, HEAD)?;
    let length = usize::try_from(word_at(&head, LENGTH)?).ok()?;
    let mut state = u32::from_ne_bytes(field(&head, STATE)?);
    // Without the interpreter lock `interned` is a byte of its own: below 4, while the other form always has a kind there.
    if layout.longer > 0 && state & 0xff < 4 {
        state >>= 6;
    }
    // interned:2, kind:3, compact:1, ascii:1
    let (kind, compact, ascii) = (state >> 2 & 7, state >> 5 & 1, state >> 6 & 1);
    let width = match kind {
        1 => 1,
        2 => 2,
        4 => 4,
        _ => return None,
    };
    if compact == 0 || ascii == 1 && width != 1 {
        return None;
    }
    let start = if ascii == 1 { layout.text_head.0 } else { layout.text_head.1 };
    let kept = length.min(most);
    let from =
        address.checked_add(u64::from(start))?.checked_add(((length - kept) as u64).checked_mul(width)?)?;
    let bytes = memory.bytes(from, kept * width as usize)?;
    let text: String = match width {
        1 if ascii == 1 => return Some(bounded_text(&bytes, most)),
        1 => bytes.iter().map(|&byte| char::from(byte)).collect(),
        2 => bytes
            .chunks_exact(2)
            .map(|unit| character(u32::from(u16::from_ne_bytes([unit[0], unit[1]]))))
            .collect(),
        _ => bytes
            .chunks_exact(4)
            .map(|unit| character(u32::from_ne_bytes([unit[0], unit[1], unit[2], unit[3]])))
            .collect(),
    };
    Some(text.into())
}

fn character(code: u32) -> char {
    char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::record::stacks::memory::tests::Image;
    use crate::record::stacks::python::layout;

    /// A string as CPython lays it out.
    pub fn string(layout: &Layout, text: &str) -> Vec<u8> {
        let ascii = text.is_ascii();
        let start = if ascii { layout.text_head.0 } else { layout.text_head.1 } as usize;
        let mut bytes = vec![0; start];
        bytes[LENGTH..LENGTH + 8].copy_from_slice(&(text.chars().count() as u64).to_ne_bytes());
        let (width, kind) = if ascii { (1, 1_u32) } else { (4, 4) };
        let state = kind << 2 | 1 << 5 | u32::from(ascii) << 6;
        bytes[STATE..STATE + 4].copy_from_slice(&state.to_ne_bytes());
        for character in text.chars() {
            bytes.extend_from_slice(&u32::from(character).to_ne_bytes()[..width]);
        }
        bytes.resize(bytes.len() + HEAD, 0);
        bytes
    }

    #[test]
    fn strings_of_each_kind_and_nothing_else() {
        let layout = layout::of_version(12, 0, &Image::default()).expect("3.12 is known");
        let mut image = Image::default();
        image.put(0x1000, &string(&layout, "collate_fn"));
        image.put(0x2000, &string(&layout, "größe…"));
        assert_eq!(read(&image, &layout, 0x1000, 100).as_deref(), Some("collate_fn"));
        assert_eq!(read(&image, &layout, 0x1000, 3).as_deref(), Some("_fn"));
        assert_eq!(read(&image, &layout, 0x2000, 100).as_deref(), Some("größe…"));
        assert_eq!(read(&image, &layout, 0x3000, 100), None);
        let mut huge = string(&layout, "x");
        huge[LENGTH..LENGTH + 8].copy_from_slice(&u64::MAX.to_ne_bytes());
        image.put(0x4000, &huge);
        assert_eq!(read(&image, &layout, 0x4000, 100), None);
        for state in 0..=255_u8 {
            let mut odd = string(&layout, "abc");
            odd[STATE] = state;
            let mut image = Image::default();
            image.put(0x1000, &odd);
            let _ = read(&image, &layout, 0x1000, 100);
        }
    }
}
