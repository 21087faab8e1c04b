//! From an instruction's offset in bytes to its line, in the three ways in which CPython has written that down.

use super::layout::LineTable;

/// Entries that are read of a table at most.
const MOST_ENTRIES: usize = 1 << 16;

/// The line of the instruction at `offset` bytes, in a function whose first line is `first`. `None` where the table has
/// none.
#[must_use]
pub fn line(kind: LineTable, table: &[u8], first: i32, offset: u32) -> Option<i32> {
    match kind {
        LineTable::Lnotab => Some(lnotab(table, first, offset)),
        LineTable::Ranges => ranges(table, first, offset),
        LineTable::Locations => locations(table, first, offset),
    }
}

/// Pairs of bytes: how much further the code, how much further the line (signed).
fn lnotab(table: &[u8], first: i32, offset: u32) -> i32 {
    let (mut at, mut line) = (0_u32, first);
    for pair in table.chunks_exact(2).take(MOST_ENTRIES) {
        at += u32::from(pair[0]);
        if at > offset {
            break;
        }
        line = line.wrapping_add(i32::from(pair[1] as i8));
    }
    line
}

/// Pairs of bytes: the length of a range of code, and its line's distance (signed) from the one before; −128: no line.
fn ranges(table: &[u8], first: i32, offset: u32) -> Option<i32> {
    let (mut end, mut line) = (0_u32, first);
    for pair in table.chunks_exact(2).take(MOST_ENTRIES) {
        let distance = pair[1] as i8;
        if distance != i8::MIN {
            line = line.wrapping_add(i32::from(distance));
        }
        end += u32::from(pair[0]);
        if offset < end {
            return (distance != i8::MIN).then_some(line);
        }
    }
    None
}

/// Entries of a head and what its form asks for: `1 form(4) length-1(3)`, lengths in code units of two bytes.
fn locations(table: &[u8], first: i32, offset: u32) -> Option<i32> {
    let (mut end, mut line) = (0_u32, first);
    let mut rest = table;
    for _ in 0..MOST_ENTRIES {
        let (&head, after) = rest.split_first()?;
        if head & 0x80 == 0 {
            return None;
        }
        rest = after;
        let form = head >> 3 & 15;
        end += (u32::from(head & 7) + 1) * 2;
        let distance = match form {
            // Columns in one byte, the same line.
            0..=9 => {
                rest = rest.get(1..)?;
                0
            }
            // Columns in two bytes, up to two lines further.
            10..=12 => {
                rest = rest.get(2..)?;
                i32::from(form) - 10
            }
            // No columns.
            13 => signed(&mut rest)?,
            // Everything.
            14 => {
                let distance = signed(&mut rest)?;
                for _ in 0..3 {
                    unsigned(&mut rest)?;
                }
                distance
            }
            _ => 0,
        };
        line = line.wrapping_add(distance);
        if offset < end {
            return (form != 15).then_some(line);
        }
    }
    None
}

/// Six bits a byte, the lowest first; bit 6: more follow.
fn unsigned(rest: &mut &[u8]) -> Option<u32> {
    let mut value = 0_u32;
    for shift in (0..32).step_by(6) {
        let (&byte, after) = rest.split_first()?;
        *rest = after;
        value |= u32::from(byte & 63).checked_shl(shift)?;
        if byte & 64 == 0 {
            return Some(value);
        }
    }
    None
}

/// The sign is the lowest bit.
fn signed(rest: &mut &[u8]) -> Option<i32> {
    let value = unsigned(rest)?;
    let size = (value >> 1) as i32;
    Some(if value & 1 == 0 { size } else { -size })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// def f(xs):        # line 3
    ///     t = 0
    ///     for x in xs:
    ///         t += x
    ///     return t
    /// compiled by each version.
    #[test]
    fn tables_of_real_functions() {
        // 3.9: co_lnotab, co_firstlineno 3.
        let lnotab = [0, 1, 4, 1, 8, 1, 10, 1];
        let lines: Vec<_> =
            [0, 2, 4, 10, 12, 20, 22].map(|at| line(LineTable::Lnotab, &lnotab, 3, at)).into();
        assert_eq!(lines, [4, 4, 5, 5, 6, 6, 7].map(Some));
        // A step back is a negative byte.
        assert_eq!(line(LineTable::Lnotab, &[2, 5, 2, 0xfd], 1, 4), Some(3));
        // 3.10.
        let ranges = [4, 1, 8, 1, 8, 1, 2, 0xff, 4, 2];
        let lines: Vec<_> = [0, 4, 12, 20, 22].map(|at| line(LineTable::Ranges, &ranges, 3, at)).into();
        assert_eq!(lines, [4, 5, 6, 5, 7].map(Some));
        assert_eq!(line(LineTable::Ranges, &[4, 0x80], 3, 2), None);
        assert_eq!(line(LineTable::Ranges, &ranges, 3, 400), None);
    }

    #[test]
    fn a_location_table() {
        // RESUME at 3 (form 11: +1 is made of 10: 0), an entry with columns, one without, a long one, one without a line.
        let table = [
            0x80 | 10 << 3,
            0,
            0,
            0x80 | 11 << 3 | 1,
            4,
            9,
            0x80 | 3,
            0x23,
            0x80 | 13 << 3,
            0x02,
            0x80 | 14 << 3 | 7,
            0x41,
            0x02,
            0x00,
            0x05,
            0x09,
            0x80 | 15 << 3,
        ];
        let lines: Vec<_> =
            [0, 2, 4, 6, 13, 14, 16, 31, 32, 34].map(|at| line(LineTable::Locations, &table, 3, at)).into();
        // 0x41 0x02: 1 + 2·64 = 129, odd: −64.
        assert_eq!(
            lines,
            [Some(3), Some(4), Some(4), Some(4), Some(4), Some(5), Some(-59), Some(-59), None, None]
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_end_or_panic(table in prop::collection::vec(any::<u8>(), 0..600), first in any::<i32>(), offset in any::<u32>()) {
            for kind in [LineTable::Lnotab, LineTable::Ranges, LineTable::Locations] {
                let _ = line(kind, &table, first, offset);
            }
        }
    }
}
