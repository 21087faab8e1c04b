//! Paths: the chain of names of a file, sent once for each file.

use aya_ebpf::helpers::generated::bpf_probe_read_kernel_str;
use tracer_abi::kernel::{LossClass, ObjectId, ObjectPathRecord, Offsets, PATH_BYTES, RecordKind};

use crate::config::off;
use crate::maps::{PATHS_NEAR, PATHS_SENT};
use crate::{emit, kernel};

/// Longest name of a component with its end (`NAME_MAX` + 1).
const NAME_BYTES: u32 = 256;
/// Components begin below this; a power of two, so that a mask bounds them for the verifier.
const BEGINS: u32 = 1024;
const _: () = assert!(PATH_BYTES == (BEGINS + NAME_BYTES) as usize);
/// Most components.
const COMPONENTS: u32 = 40;

/// What a path belongs to.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct PathKey {
    pub inode: u64,
    pub device: u32,
    pub generation: u32,
}

/// Places of a CPU's small table of paths that were sent; a power of two.
pub const NEAR: u32 = 256;

/// Sends the path of an object unless it was sent already. A CPU's own small table answers for the files in use at a
/// third of the price of the map.
#[inline(always)]
pub fn send(object: &ObjectId, fs_magic: u64, dentry: u64, tgid: u32, fd: i32) {
    let key = PathKey { inode: object.inode, device: object.device, generation: object.generation };
    let near = PATHS_NEAR.get_ptr_mut((key.inode as u32 ^ key.generation) & (NEAR - 1));
    if let Some(near) = near {
        // SAFETY: this CPU's element of the map.
        let known = unsafe { near.read() };
        if known.inode == key.inode && known.device == key.device && known.generation == key.generation {
            return;
        }
    }
    if PATHS_SENT.get_ptr(key).is_none() && !write(object, &key, dentry, Where { fs_magic, tgid, fd }) {
        return;
    }
    if let Some(near) = near {
        // SAFETY: as above. An interrupt in between can at worst leave a mixed key, which matches no file.
        unsafe { near.write(key) };
    }
}

/// Who used the object. In memory rather than in registers: a function of a program has at most five arguments.
struct Where {
    fs_magic: u64,
    tgid: u32,
    fd: i32,
}

#[inline(always)]
fn write(object: &ObjectId, key: &PathKey, dentry: u64, place: Where) -> bool {
    let Some(mut entry) = emit::reserve::<ObjectPathRecord>(LossClass::RingObject) else {
        return false;
    };
    let record = entry.as_mut_ptr();
    // SAFETY: room for a record in the ring; every index into it is bounded below.
    unsafe {
        (*record).header = emit::header(RecordKind::ObjectPath, kernel::now_ns());
        (*record).object = *object;
        (*record).fs_magic = place.fs_magic;
        (*record).tgid = place.tgid;
        (*record).fd = place.fd;
        (*record).truncated = 1;
        let bytes = (&raw mut (*record).components).cast::<u8>();
        let (mut at, mut length) = (dentry, 0_u64);
        for _ in 0..COMPONENTS {
            if length >= u64::from(BEGINS) {
                break;
            }
            let name: u64 = kernel::field(at, off!(dentry_name));
            let written = bpf_probe_read_kernel_str(
                bytes.add(kernel::masked(length as u32, BEGINS - 1)).cast(),
                NAME_BYTES,
                name as *const _,
            );
            if written <= 0 || written > i64::from(NAME_BYTES) {
                break;
            }
            let parent: u64 = kernel::field(at, off!(dentry_parent));
            let is_root = parent == at || parent == 0;
            // The root's own name is "/": it says nothing, except where it is all there is.
            if is_root && length != 0 {
                (*record).truncated = 0;
                break;
            }
            length += written as u64;
            if is_root {
                (*record).truncated = 0;
                break;
            }
            at = parent;
        }
        (*record).length = length as u32;
    }
    emit::submit(entry);
    let _ = PATHS_SENT.insert(key, 1, 0);
    true
}

/// The directory entry that names an inode, 0 if none is known.
#[inline(always)]
pub fn dentry_of(inode: u64) -> u64 {
    if off!(inode_dentry_first) == Offsets::ABSENT || off!(dentry_alias) == Offsets::ABSENT {
        return 0;
    }
    let link: u64 = kernel::field(inode, off!(inode_dentry_first));
    if link == 0 { 0 } else { link.wrapping_sub(u64::from(off!(dentry_alias))) }
}
