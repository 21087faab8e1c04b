//! Open descriptors of a process.

use std::fs;
use std::os::unix::ffi::OsStrExt;

use super::read::{bounded_text, read_bounded};
use crate::event::{Pid, Text};

/// Most descriptors looked at in one process: a server may hold a million sockets.
const MAX_DESCRIPTORS: usize = 8192;

/// What an open descriptor may be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Only reading.
    Read,
    /// Only writing.
    Write,
    /// Both.
    Both,
}

/// A pipe or socket that a process holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor {
    /// Inode of the pipe or socket.
    pub inode: u64,
    /// It is a pipe, else a socket.
    pub pipe: bool,
    /// The end of a pipe; [`Access::Both`] for sockets.
    pub access: Access,
}

/// The pipes and sockets that a process holds; empty if it is gone. Reads links only, never follows one.
#[must_use]
pub fn descriptors(pid: Pid) -> Vec<Descriptor> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/fd")) else { return Vec::new() };
    entries
        .take(MAX_DESCRIPTORS)
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let link = fs::read_link(entry.path()).ok()?;
            let link = link.as_os_str().as_bytes();
            if let Some(inode) = numbered(link, b"pipe:[") {
                let fd: i32 = entry.file_name().to_str()?.parse().ok()?;
                return Some(Descriptor { inode, pipe: true, access: access(pid, fd)? });
            }
            numbered(link, b"socket:[").map(|inode| Descriptor { inode, pipe: false, access: Access::Both })
        })
        .collect()
}

/// Where a descriptor leads, as the kernel prints it (`/data/a`, `pipe:[123]`, `anon_inode:[eventpoll]`).
#[must_use]
pub fn link_of(pid: Pid, fd: i32) -> Option<Text> {
    let link = fs::read_link(format!("/proc/{pid}/fd/{fd}")).ok()?;
    Some(bounded_text(link.as_os_str().as_bytes(), 1024))
}

fn numbered(link: &[u8], prefix: &[u8]) -> Option<u64> {
    let digits = link.strip_prefix(prefix)?.strip_suffix(b"]")?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// The access mode out of the line `flags:\t0100001` (octal) of `fdinfo`.
fn access(pid: Pid, fd: i32) -> Option<Access> {
    let bytes = read_bounded(format!("/proc/{pid}/fdinfo/{fd}"), 4096).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let flags = text.lines().find_map(|line| line.strip_prefix("flags:"))?;
    let flags = i32::from_str_radix(flags.trim(), 8).ok()?;
    Some(match flags & libc::O_ACCMODE {
        libc::O_RDONLY => Access::Read,
        libc::O_WRONLY => Access::Write,
        _ => Access::Both,
    })
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn both_ends_of_a_pipe_are_told_apart() {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        let own = Pid(std::process::id() as i32);
        let link = link_of(own, reader.as_raw_fd()).expect("a link");
        let inode = numbered(link.as_bytes(), b"pipe:[").expect("a pipe's link");
        let mut ends: Vec<Access> = descriptors(own)
            .iter()
            .filter(|found| found.pipe && found.inode == inode)
            .map(|found| found.access)
            .collect();
        ends.sort_by_key(|access| *access == Access::Write);
        assert_eq!(ends, [Access::Read, Access::Write]);
        drop(writer);
    }
}
