//! What a descriptor stood for, in words: paths, devices, connections, pipes and who holds their other end.
//!
//! The kernel side says which object it was (device and inode, socket addresses), read at the moment of the call. Words
//! come from the path records that it sends once an object, from the mounts of the task, and from `/proc` for what only
//! `/proc` knows.

mod devices;
mod holders;
mod interpreters;
mod paths;
mod sockets;

use tracer_abi::kernel::{ObjectId, ObjectKind, ObjectPathRecord, SocketAddresses};

pub use devices::Devices;
pub use holders::Holders;
pub use interpreters::Interpreters;
pub use paths::{FileKey, Paths};
pub use sockets::{connection, connection_peer_first};

use super::procfs;
use crate::event::{MonoNs, Pid, Text};
use crate::record::tree::Tree;

/// An object in words, as the columns of `syscalls` hold it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named {
    /// Column `object_kind`.
    pub kind: Option<Text>,
    /// Column `object`.
    pub object: Option<Text>,
    /// Column `device`.
    pub device: Option<Text>,
    /// Column `peer`.
    pub peer: Option<Text>,
}

/// Names objects.
#[derive(Default)]
pub struct Objects {
    paths: Paths,
    devices: Devices,
    holders: Holders,
    interpreters: Interpreters,
}

impl Objects {
    /// Takes in the path of an object.
    pub fn learn_path(&mut self, record: &ObjectPathRecord) {
        self.paths.learn(record);
    }

    /// The name of a block device (`vda1`) by its number.
    pub fn block_device(&mut self, device: u32) -> Text {
        self.devices.block(device)
    }

    /// The path of a file, where one was sent.
    #[must_use]
    pub fn path(&self, key: FileKey) -> Option<Text> {
        self.paths.get(key).map(|path| path.text.clone())
    }

    /// The CPython interpreters found so far.
    #[must_use]
    pub fn interpreters(&self) -> &Interpreters {
        &self.interpreters
    }

    /// A process has ended, or runs another program: what was known of its memory holds no longer. `look`: a program that
    /// had better be looked at while it lives.
    pub fn renew_memory(&mut self, pid: Pid, look: bool, now: MonoNs) {
        self.interpreters.forget(pid);
        if look {
            self.interpreters.look_early(pid, now);
        }
    }

    /// A process was forked: its memory is laid out as its parent's.
    pub fn inherit_memory(&mut self, parent: Pid, child: Pid) {
        self.interpreters.inherit(parent, child);
    }

    /// A futex word of a process in words: an address, or the interpreter lock that it belongs to.
    pub fn futex(&mut self, pid: Pid, word: u64, now: MonoNs) -> Named {
        let (kind, object) = match self.interpreters.lock(pid, word, now) {
            Some(lock) => ("gil", lock),
            None => ("futex", Text::from(format!("{word:#x}"))),
        };
        Named { kind: Some(Text::from(kind)), object: Some(object), ..Named::default() }
    }

    /// See [`Holders::outdate`].
    pub fn outdate_holders(&mut self) {
        self.holders.outdate();
    }

    /// Reads again who holds which pipe and socket, if one of these is not known (see [`Holders::refresh`]).
    pub fn refresh_holders<'a>(
        &mut self,
        wanted: impl Iterator<Item = (Pid, &'a ObjectId)>,
        tree: &Tree,
        now: MonoNs,
    ) {
        self.holders.refresh(wanted, tree, now);
    }

    /// The object in words. `pid` is the caller, `fd` its descriptor: the last resort for a path that was never sent.
    pub fn name(&mut self, id: &ObjectId, pid: Pid, fd: i32, tree: &Tree) -> Named {
        let words = |kind: &str, object: Option<Text>| Named {
            kind: Some(Text::from(kind)),
            object,
            ..Named::default()
        };
        match id.kind {
            kind if kind == ObjectKind::File as u32 => self.file(id, pid, fd),
            kind if kind == ObjectKind::Pipe as u32 => Named {
                peer: self.holders.pipe_peer(id.inode, pid, tree),
                ..words("pipe", Some(Text::from(format!("pipe:[{}]", id.inode))))
            },
            kind if kind == ObjectKind::Tcp as u32 || kind == ObjectKind::Udp as u32 => {
                let kind = if kind == ObjectKind::Tcp as u32 { "tcp" } else { "udp" };
                Named {
                    peer: self.connection_peer(&id.addresses, pid, tree),
                    ..words(kind, connection(&id.addresses))
                }
            }
            kind if kind == ObjectKind::Unix as u32 => Named {
                peer: self.holders.socket_peer(id.peer_inode, pid, tree),
                ..words("unix", Some(Text::from(format!("unix:[{}]", id.inode))))
            },
            kind if kind == ObjectKind::Socket as u32 => {
                words("socket", Some(Text::from(format!("socket:[{}]", id.inode))))
            }
            kind if kind == ObjectKind::Anon as u32 => self.anonymous(id),
            kind if kind == ObjectKind::CharDevice as u32 => {
                let path = self.path(FileKey::of(id)).or_else(|| self.devices.character(id.rdev));
                words("char_device", path)
            }
            kind if kind == ObjectKind::BlockDevice as u32 => {
                let device = self.devices.block(id.rdev);
                Named { device: Some(device), ..words("block_device", self.path(FileKey::of(id))) }
            }
            _ => Named::default(),
        }
    }

    fn file(&mut self, id: &ObjectId, pid: Pid, fd: i32) -> Named {
        let key = FileKey::of(id);
        if self.paths.get(key).is_none() {
            self.paths.look_up(key, pid, fd);
        }
        let known = self.paths.get(key);
        let device = self.devices.of_file_system(id.device, known.map(|path| &path.fs_type), pid);
        Named {
            kind: Some(Text::from("file")),
            object: known.map(|path| path.text.clone()),
            device: Some(device),
            peer: None,
        }
    }

    fn anonymous(&self, id: &ObjectId) -> Named {
        let name = self.path(FileKey::of(id));
        let kind = match name.as_deref() {
            Some("[eventfd]") => "eventfd",
            Some("[eventpoll]") => "epoll",
            _ => "anon",
        };
        Named { kind: Some(Text::from(kind)), object: name, ..Named::default() }
    }

    fn connection_peer(&mut self, addresses: &SocketAddresses, pid: Pid, tree: &Tree) -> Option<Text> {
        self.holders.connection_peer(addresses, pid, tree)
    }
}

/// The identity of an object by a descriptor that is still open, from `/proc`: for calls that the kernel side has not
/// seen the beginning or the end of.
#[must_use]
pub fn named_by_proc(pid: Pid, fd: i32) -> Named {
    let Some(link) = procfs::link_of(pid, fd) else { return Named::default() };
    let kind = match &*link {
        path if path.starts_with("pipe:[") => "pipe",
        path if path.starts_with("socket:[") => "socket",
        "anon_inode:[eventfd]" => "eventfd",
        "anon_inode:[eventpoll]" => "epoll",
        path if path.starts_with("anon_inode:") => "anon",
        path if path.starts_with("/dev/") => "char_device",
        _ => "file",
    };
    let object = link.strip_prefix("anon_inode:").map_or_else(|| link.clone(), Text::from);
    Named { kind: Some(Text::from(kind)), object: Some(object), ..Named::default() }
}
