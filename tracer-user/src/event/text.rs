//! Shared immutable text.

use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

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
