//! Looks for rings in processes.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::fd::RawFd;

use crate::event::Pid;

/// File descriptors of a process that are looked at.
const MOST_DESCRIPTORS: usize = 1 << 16;
/// Bytes of a process's map that are read.
const MOST_MAP_BYTES: u64 = 16 << 20;

/// The file descriptors of a process that may be rings, by the name of what they refer to.
pub(super) fn candidates(pid: Pid) -> Vec<RawFd> {
    let Ok(descriptors) = fs::read_dir(format!("/proc/{pid}/fd")) else { return Vec::new() };
    descriptors
        .flatten()
        .take(MOST_DESCRIPTORS)
        .filter(|entry| {
            // `/memfd:gtrace-ring (deleted)`
            fs::read_link(entry.path())
                .is_ok_and(|target| target.as_os_str().as_encoded_bytes().starts_with(b"/memfd:gtrace-ring"))
        })
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// Whether a process has the CUDA driver mapped: if it has and no ring is in it, its GPU work is not seen.
#[must_use]
pub fn maps_cuda(pid: Pid) -> bool {
    let Ok(maps) = fs::File::open(format!("/proc/{pid}/maps")) else { return false };
    BufReader::new(maps.take(MOST_MAP_BYTES))
        .split(b'\n')
        .map_while(Result::ok)
        .any(|line| line.windows(11).any(|window| window == b"/libcuda.so"))
}
