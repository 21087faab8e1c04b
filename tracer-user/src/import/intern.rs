//! Names that many events share, made once.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::event::Text;

/// Bytes of names that are kept; the table begins anew when there are more, so that a trace in which every name is
/// another one does not fill the memory.
const KEPT: usize = 32 << 20;

/// Names by the bytes that stand for them in the file.
#[derive(Default)]
pub struct Interner {
    texts: HashMap<Box<[u8]>, Text, RandomState>,
    bytes: usize,
}

impl Interner {
    /// The text that `decode` makes of `raw`.
    #[inline]
    pub fn get(&mut self, raw: &[u8], decode: impl FnOnce(&[u8]) -> Text) -> Text {
        if let Some(text) = self.texts.get(raw) {
            return text.clone();
        }
        let text = decode(raw);
        self.bytes += raw.len() + text.len() + 64;
        if self.bytes > KEPT {
            self.texts.clear();
            self.bytes = raw.len() + text.len() + 64;
        }
        self.texts.insert(raw.into(), text.clone());
        text
    }
}
