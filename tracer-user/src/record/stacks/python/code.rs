//! Code objects: which function a frame is of, and its line.

use std::time::{Duration, Instant};

use super::layout::{Instruction, Layout};
use super::{lines, text};
use crate::event::Text;
use crate::record::stacks::memory::{Memory, field, word_at};

/// Bytes of a code object that are read: its head.
const HEAD: usize = 256;
/// Characters of a file's and a function's name that are kept.
const MOST_FILE: usize = 1024;
const MOST_FUNCTION: usize = 256;
/// Bytes of a line table that are read.
const MOST_LINES: u64 = 1 << 18;
/// `PyObject.ob_type`; `PyBytesObject`. Where there is no interpreter lock, `Layout::longer` further.
const OBJECT_TYPE: usize = 8;
const BYTES_SIZE: u64 = 16;
const BYTES_START: u64 = 32;
/// A code object can be freed and its place used by another: after so long it is looked at again.
const TRUSTED: Duration = Duration::from_millis(100);

/// What is known of one code object.
#[derive(Debug)]
pub struct Code {
    /// `decode`, `Dataset.__getitem__`.
    pub function: Text,
    /// `co_filename`.
    pub file: Text,
    first_line: i32,
    lines: Vec<u8>,
    /// The fields that tell it from another at the same place.
    identity: [u64; 4],
    seen: Instant,
}

impl Code {
    /// Reads the code object at an address. `None` if there is none, or it is not readable.
    #[must_use]
    pub fn read(memory: &dyn Memory, layout: &Layout, code_type: u64, address: u64) -> Option<Self> {
        let (head, identity) = head(memory, layout, code_type, address)?;
        let [file, name, lines, _] = identity;
        Some(Self {
            function: text::read(memory, layout, name, MOST_FUNCTION)?,
            file: text::read(memory, layout, file, MOST_FILE)?,
            first_line: i32::from_ne_bytes(field(&head, layout.code_first_line as usize)?),
            lines: line_table(memory, lines.checked_add(u64::from(layout.longer))?).unwrap_or_default(),
            identity,
            seen: Instant::now(),
        })
    }

    /// Whether this is still what lies at the address.
    pub fn holds(&mut self, memory: &dyn Memory, layout: &Layout, code_type: u64, address: u64) -> bool {
        if self.seen.elapsed() < TRUSTED {
            return true;
        }
        self.seen = Instant::now();
        match head(memory, layout, code_type, address) {
            Some((_, identity)) => identity == self.identity,
            // The process has ended, or is ending: it was this when it lived.
            None => memory.word(address).is_none(),
        }
    }

    /// The line of an instruction, as the frame has it.
    #[must_use]
    pub fn line(&self, layout: &Layout, address: u64, instruction: u64) -> Option<i32> {
        let offset = match layout.instruction {
            Instruction::Bytes => u64::from(instruction as u32),
            Instruction::Units => u64::from(instruction as u32) * 2,
            Instruction::Address => {
                instruction.checked_sub(address.checked_add(u64::from(layout.code_start))?)?
            }
        };
        // Not begun yet, or instructions that lie elsewhere.
        let offset = u32::try_from(offset).ok().filter(|&offset| offset < 1 << 24)?;
        lines::line(layout.line_table, &self.lines, self.first_line, offset).filter(|&line| line > 0)
    }

    /// Bytes of memory that it takes.
    #[must_use]
    pub fn size(&self) -> usize {
        size_of::<Self>() + self.function.len() + self.file.len() + self.lines.len()
    }
}

/// The head of a code object, and what tells it from others: where its file's name, its name and its lines lie, and its
/// first line.
fn head(memory: &dyn Memory, layout: &Layout, code_type: u64, address: u64) -> Option<(Vec<u8>, [u64; 4])> {
    let head = memory.bytes(address, HEAD)?;
    (word_at(&head, OBJECT_TYPE + layout.longer as usize)? == code_type).then_some(())?;
    let first = u32::from_ne_bytes(field(&head, layout.code_first_line as usize)?);
    let identity = [
        word_at(&head, layout.code_filename as usize)?,
        word_at(&head, layout.code_name as usize)?,
        word_at(&head, layout.code_lines as usize)?,
        u64::from(first),
    ];
    Some((head, identity))
}

/// The contents of a `bytes` object.
fn line_table(memory: &dyn Memory, address: u64) -> Option<Vec<u8>> {
    let size = memory.word(address.checked_add(BYTES_SIZE)?)?;
    if size > MOST_LINES {
        return None;
    }
    memory.bytes(address.checked_add(BYTES_START)?, size as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::stacks::memory::tests::Image;
    use crate::record::stacks::python::layout;
    use crate::record::stacks::python::layout::LineTable;
    use crate::record::stacks::python::text::tests::string;

    const TYPE: u64 = 0x9000;

    fn image(layout: &Layout, lines: &[u8]) -> Image {
        let mut head = vec![0_u8; HEAD];
        let mut put =
            |at: u32, value: u64| head[at as usize..at as usize + 8].copy_from_slice(&value.to_ne_bytes());
        put(8, TYPE);
        put(layout.code_first_line, 3);
        put(layout.code_filename, 0x2000);
        put(layout.code_name, 0x3000);
        put(layout.code_lines, 0x4000);
        let mut image = Image::default();
        image.put(0x1000, &head);
        image.put(0x2000, &string(layout, "/srv/train.py"));
        image.put(0x3000, &string(layout, "collate_fn"));
        let mut table = vec![0_u8; 32];
        table[16..24].copy_from_slice(&(lines.len() as u64).to_ne_bytes());
        table.extend_from_slice(lines);
        image.put(0x4000, &table);
        image
    }

    #[test]
    fn a_function_and_its_line_in_each_version() {
        for minor in [8, 9, 10, 11, 12] {
            let layout = layout::of_version(minor, 0, &Image::default()).expect("known");
            let (lines, instruction): (&[u8], u64) = match layout.line_table {
                LineTable::Lnotab => (&[0, 1, 4, 1], 6),
                LineTable::Ranges => (&[4, 1, 8, 1], 3),
                LineTable::Locations => (
                    &[0x80 | 11 << 3 | 1, 0, 0, 0x80 | 11 << 3, 0, 0],
                    0x1000 + u64::from(layout.code_start) + 4,
                ),
            };
            let image = image(&layout, lines);
            let mut code = Code::read(&image, &layout, TYPE, 0x1000).expect("a code object");
            assert_eq!((code.function.as_str(), code.file.as_str()), ("collate_fn", "/srv/train.py"));
            assert_eq!(code.line(&layout, 0x1000, instruction), Some(5), "3.{minor}");
            code.seen = Instant::now().checked_sub(TRUSTED * 2).expect("a moment ago");
            assert!(code.holds(&image, &layout, TYPE, 0x1000));
            assert!(Code::read(&image, &layout, TYPE + 8, 0x1000).is_none(), "another type");
            assert!(Code::read(&image, &layout, TYPE, 0x2000).is_none(), "a string");
        }
    }

    #[test]
    fn a_place_that_another_code_object_has_taken_is_seen() {
        let layout = layout::of_version(12, 0, &Image::default()).expect("known");
        let mut code = Code::read(&image(&layout, &[]), &layout, TYPE, 0x1000).expect("a code object");
        code.seen = Instant::now().checked_sub(TRUSTED * 2).expect("a moment ago");
        let mut head = vec![0_u8; HEAD];
        head[8..16].copy_from_slice(&TYPE.to_ne_bytes());
        let mut other = Image::default();
        other.put(0x1000, &head);
        assert!(!code.holds(&other, &layout, TYPE, 0x1000));
        code.seen = Instant::now().checked_sub(TRUSTED * 2).expect("a moment ago");
        assert!(
            code.holds(&Image::default(), &layout, TYPE, 0x1000),
            "a process that has ended was what it was"
        );
        assert_eq!(code.line(&layout, 0x1000, 0), None);
        assert_eq!(code.line(&layout, 0x1000, u64::MAX), None);
    }
}
