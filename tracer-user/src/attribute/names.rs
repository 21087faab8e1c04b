//! Interned strings: ten million rows share a few thousand names.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;

use crate::event::{Recent, Text};

/// A string of a [`Names`]. [`Name::NONE`] is the empty one and stands for NULL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(u32);

impl Name {
    /// No string.
    pub const NONE: Self = Self(0);

    /// Whether there is no string.
    #[must_use]
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }

    /// A number that no other string has.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }

    /// Itself, or `other` if it is none.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        if self.is_none() { other } else { self }
    }
}

/// The strings: those that were frozen, which clones share, and those added since.
#[derive(Clone, Debug, Default)]
pub struct Names {
    shared: Arc<Strings>,
    own: Strings,
    recent: Recent<Name>,
}

#[derive(Clone, Debug, Default)]
struct Strings {
    by_text: HashMap<Text, Name, RandomState>,
    texts: Vec<Text>,
}

impl Names {
    /// The name of a shared string.
    pub fn text(&mut self, text: &Text) -> Name {
        self.recent.get(text).unwrap_or_else(|| {
            let name = self.find(text.as_str()).unwrap_or_else(|| self.add(text.clone()));
            self.recent.put(text, name);
            name
        })
    }

    /// The name of an optional shared string.
    pub fn optional(&mut self, text: Option<&Text>) -> Name {
        text.map_or(Name::NONE, |text| self.text(text))
    }

    /// The name of a string.
    pub fn str(&mut self, characters: &str) -> Name {
        self.find(characters).unwrap_or_else(|| self.add(characters.into()))
    }

    fn find(&self, characters: &str) -> Option<Name> {
        if characters.is_empty() {
            return Some(Name::NONE);
        }
        self.shared.by_text.get(characters).or_else(|| self.own.by_text.get(characters)).copied()
    }

    fn add(&mut self, text: Text) -> Name {
        self.own.texts.push(text.clone());
        let name = Name((self.shared.texts.len() + self.own.texts.len()) as u32);
        self.own.by_text.insert(text, name);
        name
    }

    /// Makes all strings so far those that clones share: what a clone adds is its own, and cloning costs nothing.
    pub fn freeze(&mut self) {
        if self.shared.texts.is_empty() {
            self.shared = Arc::new(std::mem::take(&mut self.own));
            self.recent = Recent::default();
        }
    }

    /// The name in `self` of a string of `other`, which was cloned from `self` or from what it was cloned from.
    pub fn adopt(&mut self, other: &Self, name: Name) -> Name {
        match (name.0 as usize).checked_sub(1 + self.shared.texts.len()) {
            None => name,
            Some(index) => other.own.texts.get(index).map_or(Name::NONE, |text| self.text(text)),
        }
    }

    /// The characters of a name.
    #[must_use]
    pub fn get(&self, name: Name) -> &str {
        self.look_up(name).map_or("", Text::as_str)
    }

    /// The shared string of a name; `None` for [`Name::NONE`].
    #[must_use]
    pub fn to_text(&self, name: Name) -> Option<Text> {
        self.look_up(name).cloned()
    }

    fn look_up(&self, name: Name) -> Option<&Text> {
        let index = (name.0 as usize).checked_sub(1)?;
        let shared = &self.shared.texts;
        shared.get(index).or_else(|| self.own.texts.get(index.checked_sub(shared.len())?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_has_one_name() {
        let mut names = Names::default();
        let first = names.str("vda");
        assert_eq!(names.text(&Text::from("vda")), first);
        assert_eq!(names.get(first), "vda");
        assert_eq!(names.str(""), Name::NONE);
        assert_eq!(names.to_text(Name::NONE), None);
        assert_eq!(names.optional(None), Name::NONE);
    }

    #[test]
    fn clones_share_what_was_frozen_and_adopt_the_rest() {
        let mut names = Names::default();
        let shared = names.str("vda");
        names.freeze();
        let (mut first, mut second) = (names.clone(), names.clone());
        let (read, write) = (first.str("read"), second.str("write"));
        assert_eq!((first.get(read), second.get(write)), ("read", "write"));
        assert_eq!(first.str("vda"), shared);
        let adopted = [names.adopt(&first, shared), names.adopt(&first, read), names.adopt(&second, write)];
        assert_eq!(adopted.map(|name| names.get(name).to_owned()), ["vda", "read", "write"]);
        assert_eq!(names.adopt(&first, Name::NONE), Name::NONE);
    }
}
