//! Device numbers to names.

use std::collections::HashMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;

use super::procfs::{bounded_text, mounts};
use crate::event::{Pid, Text};

/// Names of devices, kept: a device does not change its name while it is in use.
#[derive(Default)]
pub struct Devices {
    blocks: HashMap<u32, Text>,
    file_systems: HashMap<u32, Text>,
}

/// `major << 20 | minor`, as the kernel holds a device number.
fn split(device: u32) -> (u32, u32) {
    (device >> 20, device & 0xf_ffff)
}

fn sysfs_name(class: &str, device: u32) -> Option<Text> {
    let (major, minor) = split(device);
    let link = fs::read_link(format!("/sys/dev/{class}/{major}:{minor}")).ok()?;
    // `!` stands for `/` in names such as `cciss!c0d0`.
    Some(bounded_text(link.file_name()?.as_bytes(), 64))
}

impl Devices {
    /// A block device: `vda1`; `259:3` if the system has no name for it.
    pub fn block(&mut self, device: u32) -> Text {
        self.blocks
            .entry(device)
            .or_insert_with(|| {
                let (major, minor) = split(device);
                sysfs_name("block", device).unwrap_or_else(|| Text::from(format!("{major}:{minor}")))
            })
            .clone()
    }

    /// A character device (`/dev/` and its name in sysfs); the driver of NVIDIA has none there.
    #[must_use]
    pub fn character(&self, device: u32) -> Option<Text> {
        let (major, minor) = split(device);
        Some(sysfs_name("char", device).map_or_else(
            || Text::from(format!("char {major}:{minor}")),
            |name| Text::from(format!("/dev/{name}")),
        ))
    }

    /// Where the files of a file system lie: its block device; its type (`overlay`, `nfs4`, `tmpfs`, `fuse.sshfs`)
    /// where it has none.
    pub fn of_file_system(&mut self, device: u32, fs_type: Option<&Text>, pid: Pid) -> Text {
        if let Some(name) = self.file_systems.get(&device) {
            return name.clone();
        }
        let (major, minor) = split(device);
        let from_mounts =
            || mounts(pid).into_iter().find(|mount| mount.device == device).map(|mount| mount.fs_type);
        let name = match sysfs_name("block", device) {
            Some(name) => name,
            None => from_mounts()
                .or_else(|| fs_type.filter(|fs_type| !fs_type.is_empty()).cloned())
                .unwrap_or_else(|| Text::from(format!("{major}:{minor}"))),
        };
        self.file_systems.insert(device, name.clone());
        name
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn devices_have_their_names() {
        let mut devices = Devices::default();
        assert_eq!(devices.character(1 << 20 | 3).as_deref(), Some("/dev/null"));
        assert_eq!(devices.block(4095 << 20 | 7).as_str(), "4095:7");
        let own = Pid(std::process::id() as i32);
        let proc = fs::metadata("/proc/self").expect("procfs").dev();
        let device = (libc::major(proc) << 20) | libc::minor(proc);
        assert_eq!(devices.of_file_system(device, None, own).as_str(), "proc");
    }
}
