//! Paths of files.

use std::collections::{HashMap, VecDeque};
use std::os::fd::AsRawFd;

use tracer_abi::kernel::{ObjectId, ObjectKind, ObjectPathRecord};

use super::procfs::{Mount, bounded_text, link_of, mounts};
use crate::event::{Pid, Text};

/// Most paths kept. The kernel side sends each once; of a data set of more files than this, the first seen are forgotten
/// and read as unknown when they are used again. About 60 MB.
const MAX_PATHS: usize = 1 << 19;
/// Longest path kept.
const PATH_BYTES: usize = 4096;
/// Mount tables kept; they differ only between containers.
const MAX_MOUNT_TABLES: usize = 64;

/// What tells one file from all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileKey {
    /// The file system.
    pub device: u32,
    /// The inode number.
    pub inode: u64,
    /// The inode's generation: a number is used again after a file is deleted.
    pub generation: u32,
}

impl FileKey {
    /// Of an object.
    #[must_use]
    pub fn of(id: &ObjectId) -> Self {
        Self { device: id.device, inode: id.inode, generation: id.generation }
    }
}

/// A path that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownPath {
    /// The path as the task saw it.
    pub text: Text,
    /// Type of its file system, empty if unknown.
    pub fs_type: Text,
}

/// The paths that are known.
#[derive(Default)]
pub struct Paths {
    known: HashMap<FileKey, KnownPath>,
    order: VecDeque<FileKey>,
    mount_tables: HashMap<Pid, Vec<Mount>>,
}

impl Paths {
    /// The path of a file.
    #[must_use]
    pub fn get(&self, key: FileKey) -> Option<&KnownPath> {
        self.known.get(&key)
    }

    /// Takes in a path record.
    pub fn learn(&mut self, record: &ObjectPathRecord) {
        let length = (record.length as usize).min(record.components.len());
        // Leaf first, each ended by a zero byte; an empty one would be a root that counts for nothing.
        let mut components: Vec<&[u8]> =
            record.components[..length].split(|&byte| byte == 0).filter(|name| !name.is_empty()).collect();
        components.reverse();
        let id = &record.object;
        let pid = Pid(record.tgid as i32);
        let path = if id.kind == ObjectKind::Anon as u32 {
            KnownPath {
                text: bounded_text(&components.concat(), PATH_BYTES),
                fs_type: Text::from("anon_inodefs"),
            }
        } else if record.truncated != 0 {
            // The components nearest to the root are missing: what is left begins at an unknown place.
            let text = format!("…/{}", String::from_utf8_lossy(&components.join(&b'/')));
            KnownPath {
                text: bounded_text(text.as_bytes(), PATH_BYTES),
                fs_type: self.fs_type(pid, id.device),
            }
        } else {
            self.complete(&components, pid, id.device)
        };
        self.keep(FileKey::of(id), path);
    }

    fn keep(&mut self, key: FileKey, path: KnownPath) {
        if self.known.insert(key, path).is_some() {
            return;
        }
        self.order.push_back(key);
        if self.order.len() > MAX_PATHS
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }

    fn fs_type(&mut self, pid: Pid, device: u32) -> Text {
        let table = self.mount_table(pid, device);
        table
            .iter()
            .find(|mount| mount.device == device)
            .map(|mount| mount.fs_type.clone())
            .unwrap_or_default()
    }

    /// The mounts of a process. Read again when `device` is not among them: it may have been mounted since.
    fn mount_table(&mut self, pid: Pid, device: u32) -> &[Mount] {
        if self.mount_tables.len() >= MAX_MOUNT_TABLES && !self.mount_tables.contains_key(&pid) {
            self.mount_tables.clear();
        }
        let table = self.mount_tables.entry(pid).or_default();
        if !table.iter().any(|mount| mount.device == device) {
            let read = mounts(pid);
            if !read.is_empty() {
                *table = read;
            }
        }
        table
    }

    /// Puts the mount point in front. The components begin at the root of the file system; a bind mount shows only what
    /// lies under its own root.
    fn complete(&mut self, components: &[&[u8]], pid: Pid, device: u32) -> KnownPath {
        let inside: Vec<u8> = components.iter().flat_map(|name| [b"/", *name].concat()).collect();
        let table = self.mount_table(pid, device);
        // Of several mounts of one file system that show the file, the plainest: the one of the largest part of it.
        let mount = table
            .iter()
            .filter(|mount| mount.device == device && below(&inside, &mount.root).is_some())
            .min_by_key(|mount| (mount.root.len(), mount.point.len()));
        let Some(mount) = mount else {
            // Mounted nowhere that the task sees: a memfd (`memfd:name`), a deleted mount.
            let text = bounded_text(inside.strip_prefix(b"/").unwrap_or(&inside), PATH_BYTES);
            return KnownPath { text, fs_type: Text::default() };
        };
        let rest = below(&inside, &mount.root).unwrap_or_default();
        let point = mount.point.strip_suffix(b"/").unwrap_or(&mount.point);
        let full = [point, rest].concat();
        let text = if full.is_empty() { Text::from("/") } else { bounded_text(&full, PATH_BYTES) };
        KnownPath { text, fs_type: mount.fs_type.clone() }
    }

    /// Asks `/proc/<pid>/fd` for a path that was never sent. The descriptor may have been closed and used again since
    /// the call, so only the very same file counts.
    pub fn look_up(&mut self, key: FileKey, pid: Pid, fd: i32) {
        if fd < 0 || !same_file(key, pid, fd) {
            return;
        }
        if let Some(text) = link_of(pid, fd) {
            let fs_type = self.fs_type(pid, key.device);
            self.keep(key, KnownPath { text, fs_type });
        }
    }
}

/// The part of `path` under `root`, with its leading slash.
fn below<'a>(path: &'a [u8], root: &[u8]) -> Option<&'a [u8]> {
    if root == b"/" {
        return Some(path);
    }
    let rest = path.strip_prefix(root)?;
    (rest.is_empty() || rest.starts_with(b"/")).then_some(rest)
}

fn same_file(key: FileKey, pid: Pid, fd: i32) -> bool {
    // `O_PATH` opens the link's target without asking its file system, which may be one that does not answer; statx
    // with DONT_SYNC answers from what the kernel has.
    let Ok(path) = std::ffi::CString::new(format!("/proc/{pid}/fd/{fd}")) else { return false };
    // SAFETY: the path is a valid C string; the descriptor that it returns is owned below.
    let raw = unsafe { libc::open(path.as_ptr(), libc::O_PATH | libc::O_CLOEXEC) };
    if raw < 0 {
        return false;
    }
    // SAFETY: `raw` was opened a moment ago and belongs to nobody else.
    let file = unsafe { <std::os::fd::OwnedFd as std::os::fd::FromRawFd>::from_raw_fd(raw) };
    // SAFETY: statx is plain data of integers, for which zero is a value.
    let mut found: libc::statx = unsafe { std::mem::zeroed() };
    // SAFETY: the descriptor is open, the empty path is a C string, and `found` is a whole statx to write to.
    let outcome = unsafe {
        libc::statx(
            file.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH | libc::AT_STATX_DONT_SYNC,
            libc::STATX_INO,
            &raw mut found,
        )
    };
    outcome == 0
        && found.stx_ino == key.inode
        && (found.stx_dev_major << 20 | found.stx_dev_minor & 0xf_ffff) == key.device
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use tracer_abi::kernel::{PATH_BYTES as RECORD_BYTES, RecordHeader, RecordKind, SocketAddresses};

    use super::*;

    fn object(kind: ObjectKind, device: u32) -> ObjectId {
        ObjectId {
            inode: 7,
            peer_inode: 0,
            device,
            generation: 1,
            rdev: 0,
            kind: kind as u32,
            addresses: SocketAddresses::default(),
        }
    }

    fn record(kind: ObjectKind, device: u32, names: &[u8]) -> ObjectPathRecord {
        let mut components = [0; RECORD_BYTES];
        components[..names.len()].copy_from_slice(names);
        ObjectPathRecord {
            header: RecordHeader { kind: RecordKind::ObjectPath as u32, cpu: 0, time_ns: 0 },
            object: object(kind, device),
            fs_magic: 0,
            length: names.len() as u32,
            tgid: std::process::id(),
            truncated: 0,
            fd: 3,
            components,
        }
    }

    fn mount(device: u32, root: &str, point: &str) -> Mount {
        Mount { device, root: root.into(), point: point.into(), fs_type: Text::from("ext4") }
    }

    fn with_mounts(table: Vec<Mount>) -> Paths {
        let mut paths = Paths::default();
        paths.mount_tables.insert(Pid(std::process::id() as i32), table);
        paths
    }

    #[test]
    fn mount_points_complete_paths() {
        let mut paths =
            with_mounts(vec![mount(1, "/", "/"), mount(2, "/", "/data"), mount(3, "/vol/x", "/mnt/x")]);
        let mut text = |device, names: &[u8]| {
            paths.learn(&record(ObjectKind::File, device, names));
            let key = FileKey { device, inode: 7, generation: 1 };
            paths.get(key).map(|path| path.text.to_string()).unwrap_or_default()
        };
        assert_eq!(text(1, b"b\0a\0"), "/a/b");
        assert_eq!(text(2, b"shard-3.bin\0train\0"), "/data/train/shard-3.bin");
        assert_eq!(text(2, b""), "/data");
        assert_eq!(text(1, b""), "/");
        assert_eq!(text(3, b"f\0x\0vol\0"), "/mnt/x/f");
        assert_eq!(text(3, b"f\0xy\0vol\0"), "vol/xy/f", "outside the bind mount it has no path");
        assert_eq!(text(9, b"memfd:ring\0"), "memfd:ring");
    }

    #[test]
    fn hostile_records_are_bounded() {
        let mut paths = with_mounts(vec![mount(1, "/", "/")]);
        let mut broken = record(ObjectKind::File, 1, b"\xff\n\0a\0");
        broken.length = u32::MAX;
        paths.learn(&broken);
        let key = FileKey { device: 1, inode: 7, generation: 1 };
        assert_eq!(paths.get(key).map(|path| path.text.as_str()), Some("/a/\u{fffd}\n"));
        broken.truncated = 1;
        paths.learn(&broken);
        assert_eq!(paths.get(key).map(|path| path.text.as_str()), Some("…/a/\u{fffd}\n"));
    }

    #[test]
    fn a_descriptor_is_believed_only_for_the_same_file() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let stat = file.as_file().metadata().expect("its inode");
        let device = libc::major(stat.dev()) << 20 | libc::minor(stat.dev());
        let own = Pid(std::process::id() as i32);
        let fd = file.as_file().as_raw_fd();
        let key = FileKey { device, inode: stat.ino(), generation: 0 };
        let other = FileKey { inode: stat.ino() + 1, ..key };
        let mut paths = Paths::default();
        paths.look_up(other, own, fd);
        assert!(paths.get(other).is_none());
        paths.look_up(key, own, fd);
        assert_eq!(paths.get(key).map(|path| path.text.as_str()), file.path().to_str());
    }
}
