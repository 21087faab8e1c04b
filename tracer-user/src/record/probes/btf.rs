//! The kernel's type information (BTF), as far as it is needed: where a field lies in a structure, how large a
//! structure is, and which arguments a tracepoint passes.
//!
//! Format: `Documentation/bpf/btf.rst` and `include/uapi/linux/btf.h` of the kernel. The file is the kernel's own, but
//! every length in it is checked: a short or odd file gives an error, never a panic or an endless loop.

use std::collections::HashMap;
use std::path::Path;

/// Where a kernel with `CONFIG_DEBUG_INFO_BTF` (5.2 and later) shows its types.
pub const VMLINUX: &str = "/sys/kernel/btf/vmlinux";

const MAGIC: u16 = 0xeb9f;
const TYPE_BYTES: usize = 12;
/// Longest chain of typedefs and qualifiers, and deepest nesting of anonymous structures, that is followed.
const MAX_DEPTH: u32 = 32;

/// Kinds of `btf_kind` that are looked at; the others are stepped over.
mod kind {
    pub const INT: u32 = 1;
    pub const PTR: u32 = 2;
    pub const ARRAY: u32 = 3;
    pub const STRUCT: u32 = 4;
    pub const UNION: u32 = 5;
    pub const ENUM: u32 = 6;
    pub const FWD: u32 = 7;
    pub const TYPEDEF: u32 = 8;
    pub const VOLATILE: u32 = 9;
    pub const CONST: u32 = 10;
    pub const RESTRICT: u32 = 11;
    pub const FUNC: u32 = 12;
    pub const FUNC_PROTO: u32 = 13;
    pub const VAR: u32 = 14;
    pub const DATASEC: u32 = 15;
    pub const FLOAT: u32 = 16;
    pub const DECL_TAG: u32 = 17;
    pub const TYPE_TAG: u32 = 18;
    pub const ENUM64: u32 = 19;
}

/// Why the type information could not be used.
#[derive(Debug, thiserror::Error)]
pub enum BtfError {
    /// The file could not be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// It is not BTF, or BTF of a kind that is not known.
    #[error("the kernel's type information is malformed: {0}")]
    Malformed(&'static str),
}

/// One type: its header, and where its members begin.
#[derive(Clone, Copy)]
struct Type {
    name: u32,
    info: u32,
    /// A size or a type's number, by its kind.
    target: u32,
    /// Offset of what follows the header in the type section.
    body: usize,
}

impl Type {
    const fn kind(self) -> u32 {
        (self.info >> 24) & 31
    }

    const fn count(self) -> usize {
        (self.info & 0xffff) as usize
    }

    const fn is_bitfield_encoded(self) -> bool {
        self.info >> 31 == 1
    }
}

/// The types of a kernel.
pub struct Btf {
    types: Vec<Type>,
    section: Vec<u8>,
    strings: Vec<u8>,
    /// Structures, unions and the typedefs of tracepoints by name.
    by_name: HashMap<String, Vec<u32>>,
}

impl Btf {
    /// Reads the running kernel's types.
    ///
    /// # Errors
    /// The kernel has none (built without `CONFIG_DEBUG_INFO_BTF`), or they are malformed.
    pub fn running_kernel() -> Result<Self, BtfError> {
        Self::read(Path::new(VMLINUX))
    }

    /// Reads types from a file.
    ///
    /// # Errors
    /// The file cannot be read or is malformed.
    pub fn read(path: &Path) -> Result<Self, BtfError> {
        let bytes = std::fs::read(path)
            .map_err(|source| BtfError::Read { path: path.display().to_string(), source })?;
        Self::parse(&bytes)
    }

    /// Parses types.
    ///
    /// # Errors
    /// They are malformed.
    pub fn parse(bytes: &[u8]) -> Result<Self, BtfError> {
        let magic = bytes.get(..2).ok_or(BtfError::Malformed("too short"))?;
        if u16::from_ne_bytes([magic[0], magic[1]]) != MAGIC {
            return Err(BtfError::Malformed("no BTF magic"));
        }
        let header = |index: usize| word(bytes, 4 + 4 * index).map(|value| value as usize);
        let (
            Some(header_bytes),
            Some(type_offset),
            Some(type_bytes),
            Some(string_offset),
            Some(string_bytes),
        ) = (header(0), header(1), header(2), header(3), header(4))
        else {
            return Err(BtfError::Malformed("short header"));
        };
        let part = |offset: usize, length: usize| {
            let begin = header_bytes.checked_add(offset)?;
            bytes.get(begin..begin.checked_add(length)?).map(<[u8]>::to_vec)
        };
        let section = part(type_offset, type_bytes).ok_or(BtfError::Malformed("short type section"))?;
        let strings = part(string_offset, string_bytes).ok_or(BtfError::Malformed("short string section"))?;
        let types = parse_types(&section)?;
        let mut btf = Self { types, section, strings, by_name: HashMap::new() };
        btf.by_name = btf.index();
        Ok(btf)
    }

    fn index(&self) -> HashMap<String, Vec<u32>> {
        let mut by_name: HashMap<String, Vec<u32>> = HashMap::new();
        for (id, ty) in self.types.iter().enumerate().skip(1) {
            let name = self.string(ty.name);
            let wanted = match ty.kind() {
                kind::STRUCT | kind::UNION => !name.is_empty(),
                kind::TYPEDEF => name.starts_with("btf_trace_"),
                _ => false,
            };
            if wanted {
                by_name.entry(name.to_owned()).or_default().push(id as u32);
            }
        }
        by_name
    }

    /// Offset in bytes of a member, by a path through embedded structures: `("file", "f_path.dentry")`. Anonymous
    /// structures and unions are looked through. `None`: this kernel has no such member, or it is a bit field that
    /// begins inside a byte.
    #[must_use]
    pub fn member_offset(&self, structure: &str, path: &str) -> Option<u32> {
        self.by_name.get(structure)?.iter().find_map(|&id| self.path_offset(id, path))
    }

    fn path_offset(&self, structure: u32, path: &str) -> Option<u32> {
        let (mut at, mut bits) = (structure, 0u32);
        for name in path.split('.') {
            let (offset, member) = self.find_member(at, name, 0)?;
            bits = bits.checked_add(offset)?;
            at = self.resolve(member)?;
        }
        bits.is_multiple_of(8).then_some(bits / 8)
    }

    /// Size of a structure in bytes.
    #[must_use]
    pub fn size_of(&self, structure: &str) -> Option<u32> {
        let id = *self.by_name.get(structure)?.first()?;
        self.get(id).map(|ty| ty.target)
    }

    /// The types of the arguments of a tracepoint as raw tracepoints pass them: `["bool", "task_struct *", …]`.
    /// `None`: this kernel has no such tracepoint.
    #[must_use]
    pub fn tracepoint_arguments(&self, tracepoint: &str) -> Option<Vec<String>> {
        let id = *self.by_name.get(&format!("btf_trace_{tracepoint}"))?.first()?;
        let pointer = self.get(self.get(id)?.target)?;
        let prototype = self.get(pointer.target)?;
        if pointer.kind() != kind::PTR || prototype.kind() != kind::FUNC_PROTO {
            return None;
        }
        // The first is the tracepoint's private data, which a program does not see.
        (1..prototype.count())
            .map(|index| word(&self.section, prototype.body + index * 8 + 4).map(|ty| self.type_name(ty)))
            .collect()
    }

    fn type_name(&self, id: u32) -> String {
        let Some(plain) = self.skip_qualifiers(id) else { return "?".to_owned() };
        match self.get(plain) {
            None => "void".to_owned(),
            Some(ty) if ty.kind() == kind::PTR => {
                let pointee = self.skip_qualifiers(ty.target).and_then(|pointee| self.get(pointee));
                format!("{} *", pointee.map_or("void", |pointee| self.string(pointee.name)))
            }
            Some(ty) => self.string(ty.name).to_owned(),
        }
    }

    /// Bit offset and type of a member, looking through anonymous structures.
    fn find_member(&self, structure: u32, name: &str, depth: u32) -> Option<(u32, u32)> {
        let ty = self.get(structure)?;
        if depth > MAX_DEPTH || !matches!(ty.kind(), kind::STRUCT | kind::UNION) {
            return None;
        }
        (0..ty.count()).find_map(|index| {
            let at = ty.body + index * 12;
            let (member_name, member) = (word(&self.section, at)?, word(&self.section, at + 4)?);
            let encoded = word(&self.section, at + 8)?;
            let offset = if ty.is_bitfield_encoded() { encoded & 0x00ff_ffff } else { encoded };
            match self.string(member_name) {
                "" => {
                    let (inner, found) = self.find_member(self.resolve(member)?, name, depth + 1)?;
                    Some((offset.checked_add(inner)?, found))
                }
                found if found == name => Some((offset, member)),
                _ => None,
            }
        })
    }

    /// The type behind typedefs and qualifiers.
    fn resolve(&self, id: u32) -> Option<u32> {
        let mut at = id;
        for _ in 0..MAX_DEPTH {
            let ty = self.get(at)?;
            match ty.kind() {
                kind::TYPEDEF | kind::VOLATILE | kind::CONST | kind::RESTRICT | kind::TYPE_TAG => {
                    at = ty.target;
                }
                _ => return Some(at),
            }
        }
        None
    }

    fn skip_qualifiers(&self, id: u32) -> Option<u32> {
        let mut at = id;
        for _ in 0..MAX_DEPTH {
            match self.get(at) {
                Some(ty)
                    if matches!(
                        ty.kind(),
                        kind::VOLATILE | kind::CONST | kind::RESTRICT | kind::TYPE_TAG
                    ) =>
                {
                    at = ty.target;
                }
                _ => return Some(at),
            }
        }
        None
    }

    fn get(&self, id: u32) -> Option<Type> {
        if id == 0 { None } else { self.types.get(id as usize).copied() }
    }

    fn string(&self, offset: u32) -> &str {
        let rest = self.strings.get(offset as usize..).unwrap_or_default();
        let end = rest.iter().position(|&byte| byte == 0).unwrap_or(0);
        std::str::from_utf8(&rest[..end]).unwrap_or_default()
    }
}

fn parse_types(section: &[u8]) -> Result<Vec<Type>, BtfError> {
    let mut types = vec![Type { name: 0, info: 0, target: 0, body: 0 }];
    let mut at = 0;
    while at < section.len() {
        let (Some(name), Some(info), Some(target)) =
            (word(section, at), word(section, at + 4), word(section, at + 8))
        else {
            return Err(BtfError::Malformed("a type is cut off"));
        };
        let ty = Type { name, info, target, body: at + TYPE_BYTES };
        let body = match ty.kind() {
            kind::INT | kind::VAR | kind::DECL_TAG => 4,
            kind::ARRAY => 12,
            kind::STRUCT | kind::UNION | kind::DATASEC | kind::ENUM64 => 12 * ty.count(),
            kind::ENUM | kind::FUNC_PROTO => 8 * ty.count(),
            kind::PTR
            | kind::FWD
            | kind::TYPEDEF
            | kind::VOLATILE
            | kind::CONST
            | kind::RESTRICT
            | kind::FUNC
            | kind::FLOAT
            | kind::TYPE_TAG => 0,
            _ => return Err(BtfError::Malformed("a kind of type that is not known")),
        };
        at = ty.body + body;
        if at > section.len() {
            return Err(BtfError::Malformed("a type's members are cut off"));
        }
        types.push(ty);
    }
    Ok(types)
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let slice = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_ne_bytes([slice[0], slice[1], slice[2], slice[3]]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `struct outer { int a; struct { int b; }; struct inner c; }`, `struct inner { int x; int y; }`, by hand.
    fn sample() -> Vec<u8> {
        let strings = b"\0int\0outer\0a\0b\0inner\0c\0x\0y\0";
        let at = |name: &str| {
            let needle = [b"\0".as_slice(), name.as_bytes(), b"\0"].concat();
            (strings.windows(needle.len()).position(|w| w == needle).expect("in the table") + 1) as u32
        };
        let structure = |count: u32| (kind::STRUCT << 24) | count;
        let words: Vec<u32> = [
            vec![at("int"), kind::INT << 24, 4, 32],
            vec![at("inner"), structure(2), 8, at("x"), 1, 0, at("y"), 1, 32],
            vec![0, structure(1), 4, at("b"), 1, 0],
            vec![at("outer"), structure(3), 16, at("a"), 1, 0, 0, 3, 32, at("c"), 2, 64],
        ]
        .concat();
        let types: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let mut bytes = MAGIC.to_ne_bytes().to_vec();
        bytes.extend([1, 0]);
        for value in [24, 0, types.len() as u32, types.len() as u32, strings.len() as u32] {
            bytes.extend(value.to_ne_bytes());
        }
        bytes.extend(types);
        bytes.extend(strings);
        bytes
    }

    #[test]
    fn members_are_found_through_anonymous_and_embedded_structures() {
        let btf = Btf::parse(&sample()).expect("well formed");
        assert_eq!(btf.member_offset("outer", "a"), Some(0));
        assert_eq!(btf.member_offset("outer", "b"), Some(4));
        assert_eq!(btf.member_offset("outer", "c.y"), Some(12));
        assert_eq!(btf.member_offset("outer", "d"), None);
        assert_eq!(btf.size_of("inner"), Some(8));
    }

    #[test]
    fn a_file_cut_anywhere_is_an_error_or_harmless() {
        let whole = sample();
        for length in 0..whole.len() {
            assert!(Btf::parse(&whole[..length]).is_err(), "{length} bytes were accepted");
        }
        for index in 0..whole.len() {
            let mut changed = whole.clone();
            changed[index] ^= 0xff;
            if let Ok(btf) = Btf::parse(&changed) {
                let _ = btf.member_offset("outer", "c.y");
                let _ = btf.tracepoint_arguments("sched_switch");
            }
        }
    }
}
