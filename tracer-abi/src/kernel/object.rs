//! What a file descriptor stood for at the moment of the call, read from the kernel's own structures, so that
//! closing and reusing a descriptor cannot mislabel it.

use super::RecordHeader;

/// What kind of object a descriptor is.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectKind {
    /// The call has no descriptor, or it could not be read.
    None = 0,
    /// A regular file or directory.
    File = 1,
    /// A pipe or FIFO: `inode` is the pipe's.
    Pipe = 2,
    /// A TCP socket: addresses in the record.
    Tcp = 3,
    /// A UDP socket.
    Udp = 4,
    /// A unix socket: `inode` is the socket's, `peer_inode` the other end's.
    Unix = 5,
    /// Another socket family.
    Socket = 6,
    /// eventfd, timerfd, epoll, inotify, memfd's anonymous inode … (`anon_inode`): the name is in its path record.
    Anon = 7,
    /// A character device: `rdev`.
    CharDevice = 8,
    /// A block device: `rdev`.
    BlockDevice = 9,
}

/// The addresses of a connection, as this machine sees it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SocketAddresses {
    /// Local address; IPv4 in the first four bytes.
    pub local: [u8; 16],
    /// Peer's address; IPv4 in the first four bytes.
    pub peer: [u8; 16],
    pub local_port: u16,
    pub peer_port: u16,
    /// `AF_INET` 2 or `AF_INET6` 10; 0: none.
    pub family: u16,
    pub reserved: u16,
}

/// Identity of an object.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectId {
    pub inode: u64,
    /// Unix sockets: the other end's socket inode, 0 if unknown.
    pub peer_inode: u64,
    /// `s_dev` of the file system, as the kernel encodes it (`major << 20 | minor`).
    pub device: u32,
    /// Generation, to tell a reused inode number apart. Anonymous inodes (eventfd, epoll …) are one inode for all: there
    /// it is a hash of the name, so that each kind has its own path record.
    pub generation: u32,
    /// Device number of a device file, same encoding.
    pub rdev: u32,
    /// [`ObjectKind`] as its number.
    pub kind: u32,
    pub addresses: SocketAddresses,
}

impl SocketAddresses {
    /// No addresses.
    pub const NONE: Self =
        Self { local: [0; 16], peer: [0; 16], local_port: 0, peer_port: 0, family: 0, reserved: 0 };
}

impl ObjectId {
    /// No object.
    pub const NONE: Self = Self {
        inode: 0,
        peer_inode: 0,
        device: 0,
        generation: 0,
        rdev: 0,
        kind: ObjectKind::None as u32,
        addresses: SocketAddresses::NONE,
    };
}

/// Room for a path, in bytes: components that begin in the first 1024 are kept, each up to 255 bytes and a zero. Of a
/// longer path the end is kept.
pub const PATH_BYTES: usize = 1024 + 256;

/// The path of a file, sent once for each (device, inode, generation), before the first record that refers to it.
/// Components come leaf first, each followed by a zero byte, up to the root of its mount: `shard-3.bin\0data\0`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ObjectPathRecord {
    pub header: RecordHeader,
    pub object: ObjectId,
    /// File system magic (`s_magic`), see `linux/magic.h`.
    pub fs_magic: u64,
    /// Bytes used in `components`.
    pub length: u32,
    /// The task that used it (its root and mounts are where a path is to be completed).
    pub tgid: u32,
    /// 1: there were more components than fit.
    pub truncated: u32,
    /// The descriptor in that task.
    pub fd: i32,
    pub components: [u8; PATH_BYTES],
}
