//! What a click on a slice shows: debug annotations.

use super::fields::{annotation, interned};
use super::intern::{Interned, Reference};
use super::wire::Message;
use crate::export::sink::{Describe, Details};
use crate::export::text::bounded;

/// The strings that have numbers, and the news about them for the next packet.
#[derive(Default)]
pub struct Strings {
    categories: Interned,
    names: Interned,
    keys: Interned,
    values: Interned,
    /// `InternedData` that goes with the packet at hand.
    pub fresh: Vec<u8>,
}

impl Strings {
    /// The number of a category.
    pub fn category(&mut self, name: &str) -> Option<u64> {
        number(&mut self.categories, &mut self.fresh, interned::EVENT_CATEGORIES, name)
    }

    /// The number of an event's name; `None`: it is to be spelled out.
    pub fn name(&mut self, name: &str) -> Option<u64> {
        number(&mut self.names, &mut self.fresh, interned::EVENT_NAMES, name)
    }
}

fn number(known: &mut Interned, fresh: &mut Vec<u8>, kind: u32, text: &str) -> Option<u64> {
    match known.reference(text) {
        Reference::Known(id) => Some(id),
        Reference::New(id) => {
            Message::at_end_of(fresh).message(kind, |entry| {
                entry.uint(interned::IID, id).string(interned::TEXT, text);
            });
            Some(id)
        }
        Reference::Spelled => None,
    }
}

/// Writes details as the annotations of an event, or as the entries of one of them.
pub struct Annotations<'m, 'b, 's> {
    /// The event or the annotation.
    pub message: &'m mut Message<'b>,
    /// Its field for them.
    pub field: u32,
    /// The strings.
    pub strings: &'s mut Strings,
}

impl Annotations<'_, '_, '_> {
    fn add(&mut self, key: &str, fill: impl FnOnce(&mut Message<'_>, &mut Strings)) {
        let Self { message, field, strings } = self;
        message.message(*field, |one| {
            match number(&mut strings.keys, &mut strings.fresh, interned::DEBUG_ANNOTATION_NAMES, key) {
                Some(id) => one.uint(annotation::NAME_IID, id),
                None => one.string(annotation::NAME, key),
            };
            fill(one, strings);
        });
    }
}

fn value(message: &mut Message<'_>, strings: &mut Strings, text: &str) {
    let text = bounded(text);
    let kind = interned::DEBUG_ANNOTATION_STRING_VALUES;
    match number(&mut strings.values, &mut strings.fresh, kind, &text) {
        Some(id) => message.uint(annotation::STRING_VALUE_IID, id),
        None => message.string(annotation::STRING_VALUE, &text),
    };
}

impl Details for Annotations<'_, '_, '_> {
    fn text(&mut self, key: &'static str, text: &str) {
        self.add(key, |message, strings| value(message, strings, text));
    }

    fn integer(&mut self, key: &'static str, value: i64) {
        self.add(key, |message, _| {
            message.int(annotation::INT_VALUE, value);
        });
    }

    fn named(&mut self, name: &str, value: i64) {
        self.add(&bounded(name), |message, _| {
            message.int(annotation::INT_VALUE, value);
        });
    }

    fn list(&mut self, key: &'static str, values: &mut dyn Iterator<Item = String>) {
        self.add(key, |message, strings| {
            for text in values {
                message.message(annotation::ARRAY_VALUES, |one| value(one, strings, &text));
            }
        });
    }

    fn group(&mut self, key: &'static str, details: &dyn Describe) {
        self.add(key, |message, strings| {
            details.describe(&mut Annotations { message, field: annotation::DICT_ENTRIES, strings });
        });
    }
}
