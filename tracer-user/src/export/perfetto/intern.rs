//! Interned strings: written once, then named by number.

use std::collections::HashMap;

/// Strings of one kind at most. A program may make up any number of names, and each is kept in memory.
const MOST: usize = 1 << 16;
/// Bytes of a string at most: longer ones hardly come twice.
const LONGEST: usize = 256;

/// The strings of one kind that have a number.
#[derive(Default)]
pub struct Interned(HashMap<Box<str>, u64>);

/// How a string is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reference {
    /// By this number, which the reader knows.
    Known(u64),
    /// By this number, which the reader is to be told.
    New(u64),
    /// As it is: there are too many, or it is too long.
    Spelled,
}

impl Interned {
    /// How to write a string.
    pub fn reference(&mut self, text: &str) -> Reference {
        if let Some(&id) = self.0.get(text) {
            return Reference::Known(id);
        }
        if self.0.len() >= MOST || text.len() > LONGEST {
            return Reference::Spelled;
        }
        // 0 stands for no string.
        let id = self.0.len() as u64 + 1;
        self.0.insert(text.into(), id);
        Reference::New(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_bounded() {
        let mut interned = Interned::default();
        assert_eq!(interned.reference("a"), Reference::New(1));
        assert_eq!(interned.reference("a"), Reference::Known(1));
        assert_eq!(interned.reference(&"a".repeat(LONGEST + 1)), Reference::Spelled);
        for number in 1..MOST {
            assert_eq!(interned.reference(&number.to_string()), Reference::New(number as u64 + 1));
        }
        assert_eq!(interned.reference("one too many"), Reference::Spelled);
        assert_eq!(interned.reference("a"), Reference::Known(1));
    }
}
