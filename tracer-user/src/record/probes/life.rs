//! The ring of forks, execs and exits, merged by time into the records of the main ring.

use aya::maps::{MapData, RingBuf};

use super::raw::RawRecord;

/// Bytes of one record at the most: those of this ring are short, so a longer one is malformed.
const LONGEST: usize = 256;

/// The ring, and the record that was taken from it before its turn.
pub struct LifeRing {
    ring: RingBuf<MapData>,
    held: Held,
    malformed: u64,
}

impl LifeRing {
    /// Nothing taken yet.
    pub fn new(ring: RingBuf<MapData>) -> Self {
        Self { ring, held: Held::default(), malformed: 0 }
    }

    /// Hands out at most `limit` records written up to `until` (CLOCK_MONOTONIC, ns), oldest first. Returns how many.
    pub fn hand_out(&mut self, until: u64, limit: usize, receive: &mut dyn FnMut(RawRecord<'_>)) -> usize {
        let mut given = 0;
        while given < limit {
            if self.held.is_empty() && !self.take() {
                break;
            }
            match RawRecord::parse(self.held.bytes()) {
                Some(record) if record.header().time_ns > until => break,
                Some(record) => {
                    receive(record);
                    given += 1;
                }
                None => self.malformed += 1,
            }
            self.held.clear();
        }
        given
    }

    /// Records that are none.
    pub fn malformed(&self) -> u64 {
        self.malformed
    }

    /// Takes the next record out of the ring; false if there is none.
    fn take(&mut self) -> bool {
        while let Some(item) = self.ring.next() {
            if self.held.put(&item) {
                return true;
            }
            self.malformed += 1;
        }
        false
    }
}

/// A copy of one record, aligned as records are.
#[derive(Default)]
struct Held {
    words: [u64; LONGEST / 8],
    length: usize,
}

impl Held {
    fn put(&mut self, bytes: &[u8]) -> bool {
        if bytes.is_empty() || bytes.len() > LONGEST {
            return false;
        }
        for (word, chunk) in self.words.iter_mut().zip(bytes.chunks(8)) {
            let mut raw = [0; 8];
            raw[..chunk.len()].copy_from_slice(chunk);
            *word = u64::from_ne_bytes(raw);
        }
        self.length = bytes.len();
        true
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: the words are initialised, their bytes are plain memory, and `length` is at most theirs.
        unsafe { std::slice::from_raw_parts(self.words.as_ptr().cast(), self.length) }
    }

    fn is_empty(&self) -> bool {
        self.length == 0
    }

    fn clear(&mut self) {
        self.length = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::Held;

    #[test]
    fn a_held_record_is_the_one_put_in() {
        let mut held = Held::default();
        assert!(held.is_empty());
        let bytes: Vec<u8> = (0..61).collect();
        assert!(held.put(&bytes));
        assert_eq!(held.bytes(), bytes);
        held.clear();
        assert!(held.is_empty());
        assert!(!held.put(&[0; 257]), "too long");
        assert!(!held.put(&[]), "empty");
    }
}
