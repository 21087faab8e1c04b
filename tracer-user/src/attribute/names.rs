//! Interned strings: ten million rows share a few thousand names.

use std::collections::HashMap;

use crate::event::Text;

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

    /// Itself, or `other` if it is none.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        if self.is_none() { other } else { self }
    }
}

/// The strings.
#[derive(Clone, Debug)]
pub struct Names {
    by_text: HashMap<Text, Name>,
    texts: Vec<Text>,
}

impl Default for Names {
    fn default() -> Self {
        let empty = Text::default();
        Self { by_text: HashMap::from([(empty.clone(), Name::NONE)]), texts: vec![empty] }
    }
}

impl Names {
    /// The name of a shared string.
    pub fn text(&mut self, text: &Text) -> Name {
        if let Some(&name) = self.by_text.get(text.as_str()) {
            return name;
        }
        self.add(text.clone())
    }

    /// The name of an optional shared string.
    pub fn optional(&mut self, text: Option<&Text>) -> Name {
        text.map_or(Name::NONE, |text| self.text(text))
    }

    /// The name of a string.
    pub fn str(&mut self, characters: &str) -> Name {
        if let Some(&name) = self.by_text.get(characters) {
            return name;
        }
        self.add(characters.into())
    }

    fn add(&mut self, text: Text) -> Name {
        let name = Name(self.texts.len() as u32);
        self.texts.push(text.clone());
        self.by_text.insert(text, name);
        name
    }

    /// The characters of a name.
    #[must_use]
    pub fn get(&self, name: Name) -> &str {
        self.texts.get(name.0 as usize).map_or("", Text::as_str)
    }

    /// The shared string of a name; `None` for [`Name::NONE`].
    #[must_use]
    pub fn to_text(&self, name: Name) -> Option<Text> {
        if name.is_none() { None } else { self.texts.get(name.0 as usize).cloned() }
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
}
