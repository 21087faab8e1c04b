//! Kernel names.

use std::collections::HashMap;
use std::fmt;

use cpp_demangle::{DemangleOptions, ParseOptions, Symbol};

use super::words::WORDS;
use crate::event::Text;

/// Names per process: a program that makes kernels without end must not fill our memory.
const MOST_NAMES: usize = 1 << 17;
/// Bytes of all its names.
const MOST_BYTES: usize = 16 << 20;
/// Bytes of a name after demangling. A mangled name of 2 KiB can stand for gigabytes.
const LONGEST: usize = 2048;
/// Depth of nesting that is followed.
const DEEPEST: u32 = 96;

/// The kernel names of one process, by the hash that its records carry.
#[derive(Default)]
pub(super) struct Names {
    by_hash: HashMap<u64, Text>,
    bytes: usize,
}

impl Names {
    /// Takes a definition.
    pub(super) fn define(&mut self, hash: u64, mangled: &[u8], truncated: bool) {
        if self.by_hash.len() >= MOST_NAMES || self.bytes >= MOST_BYTES || self.by_hash.contains_key(&hash) {
            return;
        }
        let name = readable(mangled, truncated);
        self.bytes += name.len();
        self.by_hash.insert(hash, name);
    }

    /// The name for a hash, if it was defined.
    pub(super) fn find(&self, hash: u64) -> Option<&Text> {
        self.by_hash.get(&hash)
    }

    /// The name for a hash.
    pub(super) fn get(&self, hash: u64) -> Text {
        self.by_hash.get(&hash).cloned().unwrap_or_else(|| WORDS.unnamed_kernel.clone())
    }
}

/// The name in the form that a person writes: `_Z6squarePfi` is `square`; what is no mangled C++ name stays as it is.
fn readable(mangled: &[u8], truncated: bool) -> Text {
    let lossy = String::from_utf8_lossy(mangled);
    if truncated {
        return Text::from(format!("{lossy}…"));
    }
    demangled(mangled).map_or_else(|| Text::from(&*lossy), Text::from)
}

fn demangled(mangled: &[u8]) -> Option<String> {
    if !mangled.starts_with(b"_Z") {
        return None;
    }
    let options = ParseOptions::default().recursion_limit(DEEPEST);
    let symbol = Symbol::new_with_options(mangled, &options).ok()?;
    let options = DemangleOptions::new().no_params().no_return_type().recursion_limit(DEEPEST);
    let mut bounded = Bounded::default();
    match symbol.structured_demangle(&mut bounded, &options) {
        Ok(()) => Some(bounded.text),
        Err(_) if bounded.full => Some(bounded.text + "…"),
        Err(_) => None,
    }
}

/// Text that refuses to grow beyond [`LONGEST`].
#[derive(Default)]
struct Bounded {
    text: String,
    full: bool,
}

impl fmt::Write for Bounded {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        self.full |= self.text.len() + part.len() > LONGEST;
        if self.full {
            return Err(fmt::Error);
        }
        self.text.push_str(part);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mangled_names_become_readable_and_others_stay() {
        assert_eq!(&*readable(b"_Z6squarePfi", false), "square");
        assert_eq!(&*readable(b"spin_ns", false), "spin_ns");
        assert_eq!(&*readable(b"_Z", false), "_Z");
        let template = b"_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEESt5arrayIPcLm1EEEEviT0_T1_";
        let name = readable(template, false);
        assert!(
            name.starts_with("at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>"),
            "{name}"
        );
        assert_eq!(&*readable(b"_Z6squ", true), "_Z6squ…");
        assert_eq!(&*readable(b"a\xFFb", false), "a\u{FFFD}b");
    }

    #[test]
    fn a_name_that_stands_for_gigabytes_is_bounded() {
        // Each `S_` doubles the length: substitution of what came before, twice.
        let mut bomb = b"_Z1fI".to_vec();
        bomb.extend(b"1XIiE");
        for index in 0..30_u8 {
            let digit = if index < 10 { b'0' + index } else { b'A' + index - 10 };
            bomb.extend([b'1', b'X', b'I', b'S', digit, b'_', b'S', digit, b'_', b'E']);
        }
        bomb.extend(b"Evv");
        assert!(readable(&bomb, false).len() <= LONGEST + 8);
    }

    #[test]
    fn names_are_bounded_in_number() {
        let mut names = Names::default();
        for hash in 0..MOST_NAMES as u64 + 10 {
            names.define(hash, b"k", false);
        }
        assert_eq!(names.by_hash.len(), MOST_NAMES);
        let mut names = Names::default();
        for hash in 0..MOST_NAMES as u64 {
            names.define(hash, &[b'k'; 1024], false);
        }
        assert_eq!(names.by_hash.len(), MOST_BYTES / 1024);
        assert_eq!(names.get(u64::MAX), WORDS.unnamed_kernel);
    }
}
