//! Where functions lie in the libraries that a process has mapped.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use object::elf::{EM_AARCH64, EM_X86_64, FileHeader64, PT_LOAD};
use object::read::elf::{FileHeader, ProgramHeader, Sym};
use object::{Endianness, ReadRef};

use crate::event::Pid;

/// Bytes of a library that are read: glibc's is some 2 MB.
const MOST_BYTES: u64 = 64 << 20;

/// A file that is mapped into a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapped {
    /// Its path as the process sees it.
    pub path: String,
    /// Where its first mapping begins.
    pub start: u64,
    /// Where that mapping ends.
    pub end: u64,
}

impl Mapped {
    /// A path that leads to the very file that is mapped.
    pub fn link(&self, pid: Pid) -> PathBuf {
        format!("/proc/{pid}/map_files/{:x}-{:x}", self.start, self.end).into()
    }

    /// The bytes of the very file that is mapped, whatever its path leads to by now and from here.
    pub fn read(&self, pid: Pid) -> Option<Vec<u8>> {
        read(&self.link(pid))
    }
}

/// The bytes of a library.
pub fn read(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(MOST_BYTES).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// `e_machine` of programs that this processor runs in its 64-bit mode.
const MACHINE: u16 = if cfg!(target_arch = "aarch64") { EM_AARCH64 } else { EM_X86_64 };

type Header = FileHeader64<Endianness>;

fn header(bytes: &[u8]) -> Option<(&Header, Endianness)> {
    let header = Header::parse(bytes).ok()?;
    let endian = header.endian().ok()?;
    (header.e_machine(endian) == MACHINE).then_some((header, endian))
}

/// Whether a file is a program or library of this processor's 64-bit kind.
pub fn is_native(bytes: &[u8]) -> bool {
    header(bytes).is_some()
}

/// What has to be added to addresses in a file that is mapped at `start`.
fn bias(header: &Header, endian: Endianness, bytes: &[u8], start: u64) -> Option<u64> {
    let first = header
        .program_headers(endian, bytes)
        .ok()?
        .iter()
        .filter(|segment| segment.p_type(endian) == PT_LOAD)
        .min_by_key(|segment| segment.p_offset(endian))?;
    Some(start.wrapping_sub(first.p_vaddr(endian)).wrapping_add(first.p_offset(endian)))
}

/// The address of a program's first instruction.
pub fn entry(bytes: &[u8], start: u64) -> Option<u64> {
    let (header, endian) = header(bytes)?;
    Some(header.e_entry(endian).wrapping_add(bias(header, endian, bytes, start)?))
}

/// The address of an exported function.
pub fn function(bytes: &[u8], start: u64, name: &str) -> Option<u64> {
    let (header, endian) = header(bytes)?;
    Some(value(bytes, name)?.wrapping_add(bias(header, endian, bytes, start)?))
}

/// Where an exported function lies in its file.
pub fn function_offset(bytes: &[u8], name: &str) -> Option<u64> {
    offset_of(bytes, value(bytes, name)?)
}

/// Where what is mapped at an address of the file's own counting lies in the file.
fn offset_of(bytes: &[u8], address: u64) -> Option<u64> {
    let (header, endian) = header(bytes)?;
    let segment = header.program_headers(endian, bytes).ok()?.iter().find(|segment| {
        segment.p_type(endian) == PT_LOAD
            && address.checked_sub(segment.p_vaddr(endian)).is_some_and(|at| at < segment.p_filesz(endian))
    })?;
    segment.p_offset(endian).checked_add(address - segment.p_vaddr(endian))
}

/// Where an object (a variable) lies from the first mapping of its file on, and how long it is.
pub fn object(bytes: &[u8], name: &str) -> Option<(u64, u64)> {
    let (header, endian) = header(bytes)?;
    // Programs do not always export what they hold.
    let (value, length) = [object::elf::SHT_DYNSYM, object::elf::SHT_SYMTAB]
        .into_iter()
        .find_map(|table| symbol(bytes, table, object::elf::STT_OBJECT, name))?;
    Some((value.wrapping_add(bias(header, endian, bytes, 0)?), length))
}

/// The value of an exported function's symbol.
fn value(bytes: &[u8], name: &str) -> Option<u64> {
    symbol(bytes, object::elf::SHT_DYNSYM, object::elf::STT_FUNC, name).map(|(value, _)| value)
}

/// Value and size of a symbol of this type in this table.
fn symbol(bytes: &[u8], table: u32, kind: u8, name: &str) -> Option<(u64, u64)> {
    let (header, endian) = header(bytes)?;
    let sections = header.sections(endian, bytes).ok()?;
    let symbols = sections.symbols(endian, bytes, table).ok()?;
    let found = symbols.iter().find(|symbol| {
        symbol.st_type() == kind
            && !symbol.is_undefined(endian)
            && symbol.name(endian, symbols.strings()).is_ok_and(|own| own == name.as_bytes())
    })?;
    Some((found.st_value(endian), found.st_size(endian)))
}

/// Bytes at an address of a mapped file, from the file.
pub fn bytes_at(bytes: &[u8], start: u64, address: u64, length: u64) -> Option<&[u8]> {
    let (header, endian) = header(bytes)?;
    let wanted = address.wrapping_sub(bias(header, endian, bytes, start)?);
    let offset = offset_of(bytes, wanted)?;
    bytes.read_bytes_at(offset, length).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::inject::target;

    #[test]
    fn functions_of_the_own_c_library_are_where_the_loader_says() {
        let own = Pid(std::process::id() as i32);
        let libc = target::files(own).into_iter().find(|file| file.path.contains("/libc.so.6"));
        let libc = libc.expect("the C library");
        let Some(bytes) = libc.read(own) else { return assert!(!is_root(), "map_files needs root") };
        // SAFETY: a name.
        let there = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"getpid".as_ptr()) } as u64;
        assert_eq!(function(&bytes, libc.start, "getpid"), Some(there));
        assert_eq!(function(&bytes, libc.start, "no_such_function"), None);
        // SAFETY: a function's first bytes are readable.
        let code = unsafe { std::slice::from_raw_parts(there as *const u8, 8) };
        assert_eq!(bytes_at(&bytes, libc.start, there, 8), Some(code));
    }

    fn is_root() -> bool {
        // SAFETY: no preconditions.
        unsafe { libc::geteuid() == 0 }
    }

    #[test]
    fn cut_and_broken_files_are_nothing() {
        let whole = std::fs::read(std::env::current_exe().expect("a path")).expect("own program");
        assert!(is_native(&whole) && entry(&whole, 0).is_some());
        for length in [0, 3, 16, 63, 64, 100, 1000] {
            let cut = &whole[..length];
            assert_eq!(function(cut, 0, "main"), None);
            let _ = (entry(cut, 0), bytes_at(cut, 0, 0, 8));
        }
        let mut broken = whole[..4096].to_vec();
        for at in 0..64 {
            broken[at] ^= 0xff;
            let _ = (entry(&broken, 0), function(&broken, 0, "main"), bytes_at(&broken, 0, 64, 8));
            broken[at] ^= 0xff;
        }
    }
}
