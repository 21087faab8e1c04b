//! Where file systems are mounted, as a process sees it.

use super::read::read_bounded;
use crate::event::{Pid, Text};

/// A mount table is text under the target's control (user namespaces may mount): enough for thousands of mounts.
const MOUNTINFO_BYTES: usize = 4 << 20;

/// One line of `/proc/<pid>/mountinfo`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// The file system, as the kernel encodes a device (`major << 20 | minor`).
    pub device: u32,
    /// The folder of the file system that is mounted: not `/` for a bind mount.
    pub root: Vec<u8>,
    /// Where.
    pub point: Vec<u8>,
    /// `ext4`, `overlay`, `fuse.sshfs`, `nfs4`.
    pub fs_type: Text,
}

/// The mounts that a process sees; empty if it is gone.
#[must_use]
pub fn mounts(pid: Pid) -> Vec<Mount> {
    read_bounded(format!("/proc/{pid}/mountinfo"), MOUNTINFO_BYTES)
        .map(|bytes| parse(&bytes))
        .unwrap_or_default()
}

fn parse(bytes: &[u8]) -> Vec<Mount> {
    bytes.split(|&byte| byte == b'\n').filter_map(parse_line).collect()
}

/// `36 35 98:0 /root /point opts [optional]… - type source options`, see proc_pid_mountinfo(5).
fn parse_line(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|&byte| byte == b' ');
    let device = std::str::from_utf8(fields.nth(2)?).ok()?;
    let (major, minor) = device.split_once(':')?;
    let device = device_number(major.parse().ok()?, minor.parse().ok()?);
    let root = unescape(fields.next()?);
    let point = unescape(fields.next()?);
    fields.find(|&field| field == b"-")?;
    let fs_type = Text::from(&*String::from_utf8_lossy(fields.next()?));
    Some(Mount { device, root, point, fs_type })
}

fn device_number(major: u32, minor: u32) -> u32 {
    major << 20 | minor & 0xf_ffff
}

/// Space, tab, newline and backslash stand as three octal digits.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(field.len());
    let mut rest = field;
    while let [first, tail @ ..] = rest {
        if let [b'\\', a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', after @ ..] = rest {
            plain.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
            rest = after;
        } else {
            plain.push(*first);
            rest = tail;
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read() {
        let text = b"36 35 254:3 /sub\\040dir /mnt/a\\134b rw shared:1 master:2 - ext4 /dev/vda rw\nbroken\n27 1 0:21 / / rw - overlay o rw\n";
        let mounts = parse(text);
        assert_eq!(mounts.len(), 2);
        assert_eq!(mounts[0].device, 254 << 20 | 3);
        assert_eq!((&*mounts[0].root, &*mounts[0].point), (&b"/sub dir"[..], &b"/mnt/a\\b"[..]));
        assert_eq!(mounts[1].fs_type.as_str(), "overlay");
    }

    #[test]
    fn own_root_is_mounted() {
        assert!(mounts(Pid(std::process::id() as i32)).iter().any(|mount| mount.point == b"/"));
    }
}
