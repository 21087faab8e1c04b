//! What numbers of an export mean: read from its ENUM tables where it has them, since Nsight Systems has renumbered.

use std::collections::HashMap;

use super::database::Database;
use crate::event::Text;
use crate::import::words::WORDS;

/// The meanings of one export.
pub struct Meanings {
    strings: HashMap<i64, Text>,
    copies: HashMap<i64, String>,
    memories: HashMap<i64, String>,
    syncs: HashMap<i64, String>,
}

/// What a copy is.
pub struct Copy {
    /// `HtoD`.
    pub kind: Text,
    /// Whether the driver moved pages of unified memory.
    pub unified: bool,
}

impl Meanings {
    /// Of an export. `check` is told how the reading of each table went: of a damaged one, what came before is known, and
    /// the rest has no name.
    pub fn read(database: &Database, mut check: impl FnMut(&'static str, rusqlite::Result<()>)) -> Self {
        let mut strings = HashMap::new();
        check(
            "StringIds",
            database.each("StringIds", &["id", "value"], "", |row| {
                if let (Some(id), Some(value)) = (row.integer(0), row.text(1)) {
                    strings.insert(id, Text::from(value));
                }
            }),
        );
        let mut enumeration = |table: &'static str| {
            let mut meanings = HashMap::new();
            let read = database.each(table, &["id", "name"], "", |row| {
                if let (Some(id), Some(name)) = (row.integer(0), row.text(1)) {
                    meanings.insert(id, name);
                }
            });
            check(table, read);
            meanings
        };
        Self {
            copies: enumeration("ENUM_CUDA_MEMCPY_OPER"),
            memories: enumeration("ENUM_CUDA_MEM_KIND"),
            syncs: enumeration("ENUM_CUPTI_SYNC_TYPE"),
            strings,
        }
    }

    /// A string by its id.
    pub fn string(&self, id: Option<i64>) -> Option<&Text> {
        self.strings.get(&id?)
    }

    /// A kind of copy: `CUDA_MEMCPY_KIND_UVM_HTOD`, or its number.
    pub fn copy(&self, number: Option<i64>) -> Copy {
        const NUMBERED: [&str; 14] = [
            "UNKNOWN", "HTOD", "DTOH", "HTOA", "ATOH", "ATOA", "ATOD", "DTOA", "DTOD", "HTOH", "PTOP",
            "UVM_HTOD", "UVM_DTOH", "UVM_DTOD",
        ];
        let named = number.and_then(|number| self.copies.get(&number)).map(String::as_str);
        let by_number = || number.and_then(|number| NUMBERED.get(usize::try_from(number).ok()?)).copied();
        let name = named
            .map(|name| name.trim_start_matches("CUDA_MEMCPY_KIND_"))
            .or_else(by_number)
            .unwrap_or("UNKNOWN");
        let (unified, name) = match name.strip_prefix("UVM_") {
            Some(rest) => (true, rest),
            None => (false, name),
        };
        let kind = match name.as_bytes() {
            [from, b'T', b'O', to] => format!("{}to{}", *from as char, *to as char),
            _ => name.to_ascii_lowercase(),
        };
        Copy { kind: Text::from(kind), unified }
    }

    /// A kind of memory: `CUDA_MEMOPR_MEMORY_KIND_PAGEABLE`, or its number.
    pub fn memory(&self, number: Option<i64>) -> Option<Text> {
        const NUMBERED: [&str; 8] = [
            "pageable",
            "pinned",
            "device",
            "array",
            "managed",
            "device_static",
            "managed_static",
            "unknown",
        ];
        let number = number?;
        let named = self
            .memories
            .get(&number)
            .map(|name| name.trim_start_matches("CUDA_MEMOPR_MEMORY_KIND_").to_ascii_lowercase());
        let by_number = || Some((*NUMBERED.get(usize::try_from(number).ok()?)?).to_owned());
        named.or_else(by_number).map(Text::from)
    }

    /// A kind of synchronisation. Exports without ENUM tables are of the old numbering.
    pub fn sync(&self, number: Option<i64>) -> Option<&'static Text> {
        let number = number?;
        if self.syncs.is_empty() {
            return match number {
                1 => Some(&WORDS.context),
                2 => Some(&WORDS.event),
                3 => Some(&WORDS.stream),
                _ => None,
            };
        }
        let name = self.syncs.get(&number)?;
        [
            ("EVENT_SYNCHRONIZE", &WORDS.event),
            ("STREAM_WAIT_EVENT", &WORDS.stream_wait_event),
            ("STREAM_SYNCHRONIZE", &WORDS.stream),
            ("CONTEXT_SYNCHRONIZE", &WORDS.context),
        ]
        .into_iter()
        .find_map(|(end, word)| name.ends_with(end).then_some(word))
    }
}

/// A function's name without the version of its interface: `cudaMalloc_v3020`.
pub fn without_version(name: &str) -> &str {
    match name.rsplit_once("_v") {
        Some((base, version)) if version.len() >= 4 && version.bytes().all(|byte| byte.is_ascii_digit()) => {
            base
        }
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_an_old_export() {
        let none = || HashMap::new();
        let meanings = Meanings { strings: HashMap::new(), copies: none(), memories: none(), syncs: none() };
        assert_eq!(meanings.copy(Some(1)).kind.as_str(), "HtoD");
        let moved = meanings.copy(Some(12));
        assert_eq!((moved.kind.as_str(), moved.unified), ("DtoH", true));
        assert_eq!(meanings.copy(Some(99)).kind.as_str(), "unknown");
        assert_eq!(meanings.copy(None).kind.as_str(), "unknown");
        assert_eq!(meanings.memory(Some(0)).as_deref(), Some("pageable"));
        assert_eq!(meanings.memory(Some(-1)), None);
        assert_eq!(meanings.sync(Some(1)).map(Text::as_str), Some("context"));
        assert_eq!(meanings.sync(Some(0)), None);
    }

    #[test]
    fn a_new_export_says_what_its_numbers_mean() {
        let named =
            |pairs: &[(i64, &str)]| pairs.iter().map(|(id, name)| (*id, (*name).to_owned())).collect();
        let meanings = Meanings {
            strings: HashMap::new(),
            copies: named(&[(40, "CUDA_MEMCPY_KIND_UVM_HTOD")]),
            memories: named(&[(9, "CUDA_MEMOPR_MEMORY_KIND_MANAGED_STATIC")]),
            syncs: named(&[(1, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE")]),
        };
        assert!(meanings.copy(Some(40)).unified);
        assert_eq!(meanings.memory(Some(9)).as_deref(), Some("managed_static"));
        assert_eq!(meanings.sync(Some(1)).map(Text::as_str), Some("event"));
        assert_eq!(meanings.sync(Some(3)), None);
    }

    #[test]
    fn versions_of_functions() {
        assert_eq!(without_version("cudaMalloc_v3020"), "cudaMalloc");
        assert_eq!(without_version("cuMemAlloc_v2"), "cuMemAlloc_v2");
        assert_eq!(without_version("cudaFree"), "cudaFree");
    }
}
