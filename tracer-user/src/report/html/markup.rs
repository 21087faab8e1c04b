//! HTML that cannot be broken from inside.
//!
//! Tags and the names of attributes are written in this program (`&'static str`); everything else goes through [`escaped`].
//! Elements are closed by the function that opened them. So no name of a thread, file or kernel becomes markup or a script.

use std::fmt::Write as _;

use crate::report::escape;

/// An attribute: a name of ours, and any text.
pub type Attribute<'a> = (&'static str, &'a str);

/// A document that grows.
#[derive(Debug, Default)]
pub struct Markup {
    text: String,
}

impl Markup {
    /// Writes an element and what `inside` puts into it.
    pub fn with(&mut self, tag: &'static str, attributes: &[Attribute<'_>], inside: impl FnOnce(&mut Self)) {
        self.start(tag, attributes);
        inside(self);
        self.text.push_str("</");
        self.text.push_str(tag);
        self.text.push('>');
    }

    /// Writes an element that holds a text.
    pub fn leaf(&mut self, tag: &'static str, attributes: &[Attribute<'_>], text: &str) {
        self.with(tag, attributes, |page| page.text(text));
    }

    /// Writes an element that never has content (`meta`, `rect`).
    pub fn void(&mut self, tag: &'static str, attributes: &[Attribute<'_>]) {
        self.start(tag, attributes);
    }

    /// Writes a text.
    pub fn text(&mut self, text: &str) {
        self.text.push_str(&escaped(text));
    }

    /// Writes what is markup already: this program's own scripts and styles, and JSON in which nothing ends an element.
    pub fn own(&mut self, markup: &str) {
        self.text.push_str(markup);
    }

    /// The document.
    #[must_use]
    pub fn finish(self) -> String {
        self.text
    }

    fn start(&mut self, tag: &'static str, attributes: &[Attribute<'_>]) {
        self.text.push('<');
        self.text.push_str(tag);
        for (name, value) in attributes {
            // Writing to a String cannot fail.
            let _ = write!(self.text, " {name}=\"{}\"", escaped(value));
        }
        self.text.push('>');
    }
}

/// Text that is text in HTML, also inside of an attribute's quotes. What would hide or reorder it is made visible.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in escape::escape(text).chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
    out
}

/// JSON that may stand in a `script` element: no `<`, `>` or `&` is left, so that nothing in it ends the element or begins
/// a comment.
///
/// # Errors
/// The value cannot be JSON.
pub fn json_for_script(value: &impl serde::Serialize) -> serde_json::Result<String> {
    let json = serde_json::to_string(value)?;
    let mut out = String::with_capacity(json.len());
    for character in json.chars() {
        match character {
            // These stand only inside of strings, where JSON knows the escape.
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                let _ = write!(out, "\\u{:04x}", character as u32);
            }
            other => out.push(other),
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_stay_names() {
        let mut page = Markup::default();
        page.leaf("td", &[("title", "\"><script>alert(1)</script>")], "</td><img src=x onerror=alert(1)>");
        assert_eq!(
            page.finish(),
            "<td title=\"&quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;\">&lt;/td&gt;&lt;img src=x onerror=alert(1)&gt;</td>"
        );
    }

    proptest! {
        #[test]
        fn no_text_opens_or_closes_anything(text in ".*") {
            let shown = escaped(&text);
            prop_assert!(!shown.contains(['<', '>', '"', '\'']));
            let json = json_for_script(&text).expect("a string is JSON");
            prop_assert!(!json.contains(['<', '>', '&']));
            prop_assert_eq!(serde_json::from_str::<String>(&json).expect("it is JSON"), text);
        }
    }
}
