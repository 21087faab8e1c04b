//! Shared immutable text.

use std::borrow::Borrow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use foldhash::fast::RandomState;

/// A string that many rows share; a dictionary column on disk. Always valid UTF-8: what came from outside was converted
/// lossily. It may still hold control characters: whoever prints it escapes it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Text(Arc<str>);

impl Text {
    /// The characters.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A string of the program's own, shared by all that ask for it in this thread.
    #[must_use]
    pub fn fixed(characters: &'static str) -> Self {
        thread_local! {
            static FIXED: RefCell<HashMap<(usize, usize), Text, RandomState>> = RefCell::default();
        }
        let key = (characters.as_ptr().addr(), characters.len());
        FIXED.with_borrow_mut(|fixed| fixed.entry(key).or_insert_with(|| Self::from(characters)).clone())
    }

    /// Whether both are one and the same string in memory.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// What is known of strings that were met lately, by their address: rows share their strings, and comparing characters
/// would take longer than all else that is done with a row.
#[derive(Clone, Debug)]
pub struct Recent<T>(Vec<Option<(Text, T)>>);

/// Strings kept.
const RECENT: usize = 256;

impl<T> Default for Recent<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Copy> Recent<T> {
    /// What is known of this very string.
    #[must_use]
    pub fn get(&self, text: &Text) -> Option<T> {
        self.0
            .get(Self::place(text))?
            .as_ref()
            .filter(|(known, _)| known.is_same(text))
            .map(|(_, value)| *value)
    }

    /// Keeps it. The string is kept too, so that its address is never another one's.
    pub fn put(&mut self, text: &Text, value: T) {
        self.0.resize_with(RECENT, || None);
        self.0[Self::place(text)] = Some((text.clone(), value));
    }

    fn place(text: &Text) -> usize {
        // Memory is given out in multiples of 16 bytes.
        (text.0.as_ptr().addr() >> 4) % RECENT
    }
}

impl Default for Text {
    fn default() -> Self {
        Self::from("")
    }
}

impl From<&str> for Text {
    fn from(characters: &str) -> Self {
        Self(characters.into())
    }
}

impl From<String> for Text {
    fn from(characters: String) -> Self {
        Self(characters.into())
    }
}

impl From<Arc<str>> for Text {
    fn from(characters: Arc<str>) -> Self {
        Self(characters)
    }
}

impl Deref for Text {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for Text {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&*self.0, f)
    }
}
