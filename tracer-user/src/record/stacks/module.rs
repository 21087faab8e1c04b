//! A program or library whose code was sampled: the names of its functions, and how to unwind through them.
//!
//! Read from the very file that is mapped (`/proc/PID/map_files`), whatever its path leads to from here: containers and
//! deleted files are no exception. It is the target's file: every length in it is bounded before it is believed.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::Arc;

use object::Endianness;
use object::elf::{
    EM_AARCH64, EM_X86_64, FileHeader64, PF_X, PT_LOAD, ProgramHeader64, SHT_DYNSYM, SHT_SYMTAB, STT_FUNC,
    STT_GNU_IFUNC, STT_NOTYPE, STT_OBJECT, SectionHeader64, Sym64,
};
use object::pod::slice_from_bytes;
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader, Sym};

use super::mappings::Mapping;
use crate::event::{Pid, Text};
use crate::record::procfs::bounded_text;

/// Bytes of one section that are read: a larger one is left out.
const MOST_SECTION: u64 = 48 << 20;
/// Sections and segments that are looked at.
const MOST_SECTIONS: usize = 4096;
/// Bytes of a function's name that are kept.
const MOST_NAME: usize = 300;

const MACHINE: u16 = if cfg!(target_arch = "aarch64") { EM_AARCH64 } else { EM_X86_64 };

/// Bytes of a section, shared with the unwinders of all processes.
pub type Bytes = Arc<[u8]>;

/// What unwinding needs of a file. Addresses are the file's own.
#[derive(Clone, Debug, Default)]
pub struct UnwindSections {
    /// `.eh_frame` and where it lies.
    pub eh_frame: Option<(u64, Bytes)>,
    /// `.eh_frame_hdr` and where it lies.
    pub eh_frame_hdr: Option<(u64, Bytes)>,
    /// Where `.text` lies.
    pub text: Option<std::ops::Range<u64>>,
    /// Where `.got` lies.
    pub got: Option<std::ops::Range<u64>>,
}

/// Where the runtime of a CPython interpreter lies in its file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PythonSymbols {
    /// `_PyRuntime`.
    pub runtime: u64,
    /// `PyCode_Type`.
    pub code_type: u64,
    /// `Py_Version` (3.11 and later).
    pub version: Option<u64>,
}

/// One function.
#[derive(Clone, Copy, Debug)]
struct Symbol {
    address: u64,
    size: u32,
    name: u32,
}

/// A file's functions and sections.
#[derive(Debug, Default)]
pub struct Module {
    /// Code: offset in the file, size there, address.
    segments: Vec<(u64, u64, u64)>,
    symbols: Vec<Symbol>,
    strings: Vec<u8>,
    /// What unwinding needs.
    pub unwind: UnwindSections,
    /// It is a Python interpreter.
    pub python: Option<PythonSymbols>,
    /// Bytes of memory that it takes.
    pub size: usize,
}

impl Module {
    /// Reads the file behind a mapping. An unreadable or odd one is a module without functions.
    #[must_use]
    pub fn read(pid: Pid, mapping: &Mapping) -> Self {
        let mut module = Self::default();
        if mapping.file.1 != 0
            && let Some(file) = open(pid, mapping)
        {
            // What was read before something odd came is kept.
            let _ = module.fill(&file);
        }
        module.size = size_of::<Self>()
            + module.symbols.len() * size_of::<Symbol>()
            + module.strings.len()
            + module.unwind.eh_frame.as_ref().map_or(0, |(_, bytes)| bytes.len())
            + module.unwind.eh_frame_hdr.as_ref().map_or(0, |(_, bytes)| bytes.len());
        module
    }

    /// The address by the file's own counting of what is mapped at `address`.
    #[must_use]
    pub fn own_address(&self, mapping: &Mapping, address: u64) -> Option<u64> {
        let offset = address.checked_sub(mapping.start)?.checked_add(mapping.offset)?;
        let &(start, _, at) = self
            .segments
            .iter()
            .find(|(start, size, _)| offset.checked_sub(*start).is_some_and(|o| o < *size))?;
        at.checked_add(offset - start)
    }

    /// What is to be added to the file's own addresses where it is mapped like this. A mapping begins with a page, the segment
    /// of code that it is of somewhere in it.
    #[must_use]
    pub fn bias(&self, mapping: &Mapping) -> Option<u64> {
        let end = mapping.offset.saturating_add(mapping.end.saturating_sub(mapping.start));
        let &(start, _, at) = self
            .segments
            .iter()
            .find(|(start, size, _)| *start < end && start.saturating_add(*size) > mapping.offset)?;
        Some(mapping.start.wrapping_sub(mapping.offset).wrapping_add(start).wrapping_sub(at))
    }

    /// The function that holds an address by the file's own counting. `None` where no symbol covers it: the nearest one
    /// before it would be a guess.
    #[must_use]
    pub fn function(&self, own_address: u64) -> Option<Text> {
        let after = self.symbols.partition_point(|symbol| symbol.address <= own_address);
        // Several symbols may share an address or lie in one another.
        let symbol = self.symbols[..after].iter().rev().take(8).find(|symbol| {
            let end = match symbol.size {
                // Written in assembly: as far as the next one.
                0 => self.symbols.get(after).map_or(symbol.address, |next| next.address),
                size => symbol.address.saturating_add(u64::from(size)),
            };
            own_address < end
        })?;
        name_at(&self.strings, symbol.name).map(|name| demangled(&bounded_text(name, MOST_NAME)))
    }

    fn fill(&mut self, file: &File) -> Option<()> {
        let length = file.metadata().ok()?.len();
        let head = bytes(file, 0, 64, length)?;
        let header = FileHeader64::<Endianness>::parse(&*head).ok()?;
        let endian = header.endian().ok()?;
        (header.e_machine(endian) == MACHINE).then_some(())?;
        let count = usize::from(header.e_phnum(endian)).min(MOST_SECTIONS);
        let table = bytes(
            file,
            header.e_phoff(endian),
            (count * size_of::<ProgramHeader64<Endianness>>()) as u64,
            length,
        )?;
        let (segments, _) = slice_from_bytes::<ProgramHeader64<Endianness>>(&table, count).ok()?;
        self.segments = segments
            .iter()
            .filter(|segment| segment.p_type(endian) == PT_LOAD && segment.p_flags(endian) & PF_X != 0)
            .map(|segment| (segment.p_offset(endian), segment.p_filesz(endian), segment.p_vaddr(endian)))
            .collect();
        let count = usize::from(header.e_shnum(endian)).min(MOST_SECTIONS);
        let table = bytes(
            file,
            header.e_shoff(endian),
            (count * size_of::<SectionHeader64<Endianness>>()) as u64,
            length,
        )?;
        let (sections, _) = slice_from_bytes::<SectionHeader64<Endianness>>(&table, count).ok()?;
        let section = |section: &SectionHeader64<Endianness>| {
            bytes(file, section.sh_offset(endian), section.sh_size(endian), length)
        };
        let names = section(sections.get(usize::from(header.e_shstrndx(endian)))?)?;
        for header in sections {
            let at = header.sh_addr(endian);
            let range = at..at.saturating_add(header.sh_size(endian));
            match name_at(&names, header.sh_name(endian)) {
                Some(b".eh_frame") => self.unwind.eh_frame = section(header).map(|bytes| (at, bytes.into())),
                Some(b".eh_frame_hdr") => {
                    self.unwind.eh_frame_hdr = section(header).map(|bytes| (at, bytes.into()));
                }
                Some(b".text") => self.unwind.text = Some(range),
                Some(b".got") => self.unwind.got = Some(range),
                _ => {}
            }
        }
        // The full table has static functions, too; a stripped file has only what it exports.
        for kind in [SHT_SYMTAB, SHT_DYNSYM] {
            let Some(header) = sections.iter().find(|section| section.sh_type(endian) == kind) else {
                continue;
            };
            let Some(strings) = sections.get(header.sh_link(endian) as usize).and_then(&section) else {
                continue;
            };
            let Some(table) = section(header) else { continue };
            let count = table.len() / size_of::<Sym64<Endianness>>();
            let Ok((symbols, _)) = slice_from_bytes::<Sym64<Endianness>>(&table, count) else { continue };
            if self.python.is_none() {
                self.python = python_symbols(symbols, &strings, endian);
            }
            if self.symbols.is_empty() {
                self.symbols = functions(symbols, endian);
                self.strings = strings;
            }
        }
        Some(())
    }
}

/// The functions of a symbol table, by address.
fn functions(symbols: &[Sym64<Endianness>], endian: Endianness) -> Vec<Symbol> {
    let mut functions: Vec<Symbol> = symbols
        .iter()
        .filter(|symbol| {
            matches!(symbol.st_type(), STT_FUNC | STT_GNU_IFUNC)
                || symbol.st_type() == STT_NOTYPE && symbol.st_size(endian) > 0
        })
        .filter(|symbol| !symbol.is_undefined(endian) && symbol.st_value(endian) != 0)
        .map(|symbol| Symbol {
            address: symbol.st_value(endian),
            size: u32::try_from(symbol.st_size(endian)).unwrap_or(u32::MAX),
            name: symbol.st_name(endian),
        })
        .collect();
    functions.sort_unstable_by_key(|symbol| (symbol.address, symbol.size));
    functions.shrink_to_fit();
    functions
}

fn python_symbols(
    symbols: &[Sym64<Endianness>],
    strings: &[u8],
    endian: Endianness,
) -> Option<PythonSymbols> {
    let mut found = PythonSymbols::default();
    for symbol in
        symbols.iter().filter(|symbol| symbol.st_type() == STT_OBJECT && !symbol.is_undefined(endian))
    {
        match name_at(strings, symbol.st_name(endian)) {
            Some(b"_PyRuntime") => found.runtime = symbol.st_value(endian),
            Some(b"PyCode_Type") => found.code_type = symbol.st_value(endian),
            Some(b"Py_Version") => found.version = Some(symbol.st_value(endian)),
            _ => {}
        }
    }
    (found.runtime != 0 && found.code_type != 0).then_some(found)
}

fn name_at(strings: &[u8], at: u32) -> Option<&[u8]> {
    let rest = strings.get(at as usize..)?;
    let end = memchr::memchr(0, rest)?;
    (end > 0).then_some(&rest[..end])
}

/// A name of C++ or Rust as it was written, without its parameters.
fn demangled(name: &Text) -> Text {
    if !name.starts_with("_Z") {
        return name.clone();
    }
    let options = cpp_demangle::DemangleOptions::new().no_params().no_return_type();
    let plain = cpp_demangle::Symbol::new(name.as_bytes())
        .ok()
        .and_then(|symbol| symbol.demangle_with_options(&options).ok());
    match plain {
        // A hash ends the names of Rust: `::h0123456789abcdef`.
        Some(plain) => match plain.rsplit_once("::h") {
            Some((path, hash)) if hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
                path.into()
            }
            _ => bounded_text(plain.as_bytes(), MOST_NAME),
        },
        None => name.clone(),
    }
}

/// `length` bytes of the file, if it has them and they are not too many.
fn bytes(file: &File, offset: u64, length: u64, file_length: u64) -> Option<Vec<u8>> {
    if length > MOST_SECTION || offset.checked_add(length)? > file_length {
        return None;
    }
    let mut bytes = vec![0; length as usize];
    file.read_exact_at(&mut bytes, offset).ok()?;
    Some(bytes)
}

/// The very file that is mapped, if it is an ordinary one: a device would be told of its opening.
fn open(pid: Pid, mapping: &Mapping) -> Option<File> {
    let link: PathBuf = format!("/proc/{pid}/map_files/{:x}-{:x}", mapping.start, mapping.end).into();
    let place = File::options().read(true).custom_flags(libc::O_PATH | libc::O_CLOEXEC).open(link).ok()?;
    let status = place.metadata().ok()?;
    (status.is_file() && status.size() > 0).then_some(())?;
    File::open(format!("/proc/self/fd/{}", place.as_raw_fd())).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::stacks::mappings;

    fn own_module() -> Option<(Module, Mapping)> {
        let own = Pid(std::process::id() as i32);
        let here = own_module as *const () as u64;
        let mapping =
            mappings::read(own).0.into_iter().find(|mapping| (mapping.start..mapping.end).contains(&here))?;
        let module = Module::read(own, &mapping);
        // `map_files` needs root.
        (module.bias(&mapping).is_some()).then_some((module, mapping))
    }

    #[test]
    fn the_own_functions_have_their_names() {
        let Some((module, mapping)) = own_module() else { return };
        let here = own_module as *const () as u64;
        let own = module.own_address(&mapping, here + 1).expect("it is mapped");
        let name = module.function(own).expect("it has a symbol");
        assert!(name.ends_with("::own_module"), "{name}");
        assert!(module.unwind.eh_frame.is_some() && module.python.is_none());
        assert_eq!(module.bias(&mapping), Some(here + 1 - own));
        assert_eq!(module.function(0), None);
    }

    #[test]
    fn what_no_symbol_covers_has_no_name() {
        let mut module = Module {
            strings: b"\0first\0second\0_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE\0".to_vec(),
            ..Module::default()
        };
        module.symbols = vec![
            Symbol { address: 0x100, size: 0x10, name: 1 },
            Symbol { address: 0x200, size: 0, name: 7 },
            Symbol { address: 0x300, size: 0x20, name: 14 },
        ];
        let name = |address| module.function(address).map(|name| name.to_string());
        assert_eq!(name(0x10f).as_deref(), Some("first"));
        assert_eq!(name(0x110), None);
        assert_eq!(name(0x2ff).as_deref(), Some("second"));
        assert_eq!(name(0x31f).as_deref(), Some("core::fmt::Write::write_fmt"));
        assert_eq!(name(0x320), None);
    }

    #[test]
    fn broken_files_are_modules_without_functions() {
        let whole = std::fs::read(std::env::current_exe().expect("a path")).expect("own program");
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("broken");
        for at in 0..64 {
            let mut broken = whole[..whole.len().min(1 << 16)].to_vec();
            broken[at] ^= 0xff;
            std::fs::write(&path, &broken).expect("written");
            let mut module = Module::default();
            let _ = module.fill(&File::open(&path).expect("open"));
            let _ = module.function(0x1000);
        }
    }
}
