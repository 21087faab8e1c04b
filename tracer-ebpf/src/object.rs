//! What a file descriptor of the current task stands for, read from the kernel's own structures.

use tracer_abi::kernel::{ObjectId, ObjectKind};

use crate::config::off;
use crate::{kernel, net, path};

const S_IFMT: u16 = 0o170_000;
const S_IFIFO: u16 = 0o010_000;
const S_IFCHR: u16 = 0o020_000;
const S_IFBLK: u16 = 0o060_000;
const S_IFSOCK: u16 = 0o140_000;

/// File system magics, `include/uapi/linux/magic.h`.
const ANON_INODE_FS: u64 = 0x0904_1934;
const PID_FS: u64 = 0x5049_4446;

const AF_UNIX: u16 = 1;
const AF_INET: u16 = 2;
const AF_INET6: u16 = 10;
const IPPROTO_TCP: u16 = 6;
const IPPROTO_UDP: u16 = 17;
const IPPROTO_MPTCP: u16 = 262;

/// Writes the object behind a descriptor of the current task, and sends its path if that was not done yet. Kind `None`
/// if the descriptor is not open.
///
/// # Safety
/// `object` is writable.
#[inline(always)]
pub unsafe fn of_descriptor(fd: i32, tgid: u32, object: *mut ObjectId) {
    // SAFETY: by the contract.
    unsafe {
        (*object).kind = ObjectKind::None as u32;
        let file = file_of(fd);
        if file != 0 {
            of_file(file, fd, tgid, object);
        }
    }
}

/// The same for a `struct file`. `fd` is its descriptor in the current task, −1 if it is not known.
///
/// # Safety
/// `object` is writable.
#[inline(always)]
pub unsafe fn of_file(file: u64, fd: i32, tgid: u32, object: *mut ObjectId) {
    // SAFETY: by the contract.
    unsafe {
        let inode: u64 = kernel::field(file, off!(file_inode));
        let magic = of_inode(inode, object);
        if (*object).kind == ObjectKind::Socket as u32 {
            of_socket(kernel::field(file, off!(file_private_data)), object);
            return;
        }
        if (*object).kind == ObjectKind::None as u32 || (*object).kind == ObjectKind::Pipe as u32 {
            return;
        }
        let dentry: u64 = kernel::field(file, off!(file_dentry));
        if (*object).kind == ObjectKind::Anon as u32 {
            // One inode serves every anonymous file: its name tells the kinds apart.
            let name: u64 = kernel::field(dentry, off!(dentry_name));
            let start: u64 = kernel::field(name, 0);
            (*object).generation = (start ^ (start >> 32)) as u32;
        }
        path::send(&*object, magic, dentry, tgid, fd);
    }
}

/// The flags with which a descriptor of the current task was opened, 0 if it is not open.
#[inline(always)]
pub fn flags_of_descriptor(fd: i32) -> u32 {
    kernel::field(file_of(fd), off!(file_flags))
}

/// The `struct file` behind a descriptor of the current task, 0 if it is not open.
#[inline(always)]
fn file_of(fd: i32) -> u64 {
    if fd < 0 {
        return 0;
    }
    let files = kernel::current_word::<u64>(off!(task_files));
    let table: u64 = kernel::field(files, off!(files_fdt));
    let limit: u32 = kernel::field(table, off!(fdtable_max_fds));
    if fd as u32 >= limit {
        return 0;
    }
    let array: u64 = kernel::field(table, off!(fdtable_fd));
    kernel::field(array.wrapping_add(u64::from(fd as u32) * 8), 0)
}

/// The first bytes of an inode, where its identity lies on every kernel seen so far.
#[derive(Clone, Copy)]
struct Start([u64; 16]);

impl Start {
    /// A field: from these bytes if it lies in them, else by a read of its own.
    #[inline(always)]
    fn part<T: Copy>(&self, inode: u64, offset: u32) -> T {
        if offset as usize > size_of::<Self>() - size_of::<T>() {
            return kernel::field(inode, offset);
        }
        // SAFETY: inside the bytes; the types read are integers.
        unsafe { self.0.as_ptr().cast::<u8>().add(offset as usize).cast::<T>().read_unaligned() }
    }
}

/// Writes what an inode says of itself; returns its file system's magic.
///
/// # Safety
/// `object` is writable.
#[inline(always)]
pub unsafe fn of_inode(inode: u64, object: *mut ObjectId) -> u64 {
    // One read for all: each costs 6 ns, whatever its length.
    let start: Start = kernel::field(inode, 0);
    let superblock: u64 = start.part(inode, off!(inode_sb));
    let mode: u16 = start.part(inode, off!(inode_mode));
    let magic: u64 = kernel::field(superblock, off!(sb_magic));
    let kind = match mode & S_IFMT {
        _ if magic == ANON_INODE_FS || magic == PID_FS => ObjectKind::Anon,
        S_IFIFO => ObjectKind::Pipe,
        S_IFSOCK => ObjectKind::Socket,
        S_IFCHR => ObjectKind::CharDevice,
        S_IFBLK => ObjectKind::BlockDevice,
        _ => ObjectKind::File,
    };
    // SAFETY: by the contract.
    unsafe {
        (*object).inode = start.part(inode, off!(inode_ino));
        (*object).peer_inode = 0;
        (*object).device = kernel::field(superblock, off!(sb_dev));
        (*object).generation = start.part(inode, off!(inode_generation));
        (*object).rdev = start.part(inode, off!(inode_rdev));
        (*object).kind = kind as u32;
        (*object).addresses.family = 0;
    }
    magic
}

#[inline(always)]
unsafe fn of_socket(socket: u64, object: *mut ObjectId) {
    let sock: u64 = kernel::field(socket, off!(socket_sk));
    let family: u16 = kernel::field(sock, off!(sock_family));
    // SAFETY: the caller's contract.
    unsafe {
        if family == AF_UNIX {
            (*object).kind = ObjectKind::Unix as u32;
            let peer: u64 = kernel::field(sock, off!(unix_peer));
            let peer_socket: u64 = kernel::field(peer, off!(sock_socket));
            if peer_socket != 0 && off!(socket_inode) != tracer_abi::kernel::Offsets::ABSENT {
                let inode = peer_socket + u64::from(off!(socket_inode));
                (*object).peer_inode = kernel::field(inode, off!(inode_ino));
            }
        } else if family == AF_INET || family == AF_INET6 {
            let protocol: u16 = kernel::field(sock, off!(sock_protocol));
            if protocol == IPPROTO_TCP || protocol == IPPROTO_MPTCP {
                (*object).kind = ObjectKind::Tcp as u32;
            } else if protocol == IPPROTO_UDP {
                (*object).kind = ObjectKind::Udp as u32;
            }
            net::addresses(sock, &raw mut (*object).addresses);
        }
    }
}
