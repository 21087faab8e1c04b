//! The code that a process has mapped: `/proc/PID/maps`.

use crate::event::{Pid, Text};
use crate::record::procfs::{bounded_text, read_bounded};

/// Bytes of a map that are read.
const MOST_BYTES: usize = 16 << 20;
/// Mappings of code that are kept.
const MOST_MAPPINGS: usize = 4096;
/// Bytes of a file's name that are kept.
const MOST_NAME: usize = 255;

/// A file's identity as the process's map has it: device and inode.
pub type FileId = (u64, u64);

/// One executable mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Its first address.
    pub start: u64,
    /// Behind its last address.
    pub end: u64,
    /// Where in the file it begins.
    pub offset: u64,
    /// The file; inode 0: none.
    pub file: FileId,
    /// The file's name without its folders, `[vdso]`, or empty.
    pub name: Text,
    /// `3.11` of a path with a part `python3.11`; of the file or of another that lies beside it.
    pub python: Option<u8>,
}

/// The executable mappings of a process, by address, and the minor version of Python that its paths speak of.
#[must_use]
pub fn read(pid: Pid) -> (Vec<Mapping>, Option<u8>) {
    let map = read_bounded(format!("/proc/{pid}/maps"), MOST_BYTES).unwrap_or_default();
    parse(&map)
}

fn parse(map: &[u8]) -> (Vec<Mapping>, Option<u8>) {
    let mut mappings: Vec<Mapping> = Vec::new();
    let mut python = None;
    for line in map.split(|&byte| byte == b'\n') {
        let Some((permissions, mapping)) = parse_line(line) else { continue };
        python = python.or(mapping.python);
        if permissions.get(2) == Some(&b'x') && mappings.len() < MOST_MAPPINGS {
            mappings.push(mapping);
        }
    }
    mappings.sort_by_key(|mapping| mapping.start);
    (mappings, python)
}

/// `start-end perms offset major:minor inode          path`.
fn parse_line(line: &[u8]) -> Option<(&[u8], Mapping)> {
    let mut fields = line.splitn(6, |&byte| byte == b' ');
    let mut next = || fields.next();
    let (range, permissions, offset, device, inode) = (next()?, next()?, next()?, next()?, next()?);
    let path = next().unwrap_or_default().trim_ascii_start();
    let (start, end) = pair(range, b'-')?;
    let (major, minor) = pair(device, b':')?;
    let inode = std::str::from_utf8(inode).ok()?.parse().ok()?;
    let path = path.strip_suffix(b" (deleted)").unwrap_or(path);
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    Some((
        permissions,
        Mapping {
            start,
            end,
            offset: hex(offset)?,
            file: (major << 32 | minor, inode),
            name: bounded_text(name, MOST_NAME),
            python: python_version(path),
        },
    ))
}

/// The minor version in `/usr/lib/python3.11/…`, `/usr/bin/python3.11` or `libpython3.11.so.1.0`.
fn python_version(path: &[u8]) -> Option<u8> {
    let at = memchr::memmem::find(path, b"python3.")?;
    let digits: Vec<u8> = path[at + 8..].iter().copied().take_while(u8::is_ascii_digit).take(2).collect();
    std::str::from_utf8(&digits).ok()?.parse().ok()
}

fn pair(text: &[u8], between: u8) -> Option<(u64, u64)> {
    let at = text.iter().position(|&byte| byte == between)?;
    Some((hex(&text[..at])?, hex(&text[at + 1..])?))
}

fn hex(text: &[u8]) -> Option<u64> {
    u64::from_str_radix(std::str::from_utf8(text).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_found_and_nonsense_is_not() {
        let map =
            b"55d0c2a00000-55d0c2a5f000 r--p 00000000 fe:00 1234                       /usr/bin/python3.11\n\
            55d0c2a5f000-55d0c2cf3000 r-xp 0005f000 fe:00 1234                       /usr/bin/python3.11\n\
            7f00c2a5f000-7f00c2cf3000 r-xp 00001000 00:21 99   /tmp/a b\\012c/lib x.so.1 (deleted)\n\
            7ffd11bd9000-7ffd11bdb000 r-xp 00000000 00:00 0                          [vdso]\n\
            7f0000000000-7f0000001000 rwxp 00000000 00:00 0 \n\
            garbage\nzz-qq r-xp 0 0:0 0 x\n1-2 r-xp\n";
        let (mappings, python) = parse(map);
        let names: Vec<(&str, u64)> =
            mappings.iter().map(|mapping| (mapping.name.as_str(), mapping.offset)).collect();
        assert_eq!(names, [("python3.11", 0x5f000), ("", 0), ("lib x.so.1", 0x1000), ("[vdso]", 0)]);
        assert_eq!((mappings[0].file, python), ((0xfe << 32, 1234), Some(11)));
        assert_eq!(python_version(b"/usr/lib/libpython3.8.so.1.0"), Some(8));
        assert_eq!(python_version(b"/usr/lib/python3./x"), None);
    }
}
