//! Files that can be read cold.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::cpu::xorshift;

/// Makes a file of so many bytes, durable, unless it is there already. Its path.
///
/// # Errors
/// It cannot be written.
pub fn make(folder: &Path, name: &str, bytes: usize) -> Result<PathBuf> {
    let path = folder.join(name);
    if path.metadata().is_ok_and(|present| present.len() == bytes as u64) {
        return Ok(path);
    }
    let what = || format!("cannot make {}", path.display());
    std::fs::create_dir_all(folder).with_context(what)?;
    let unfinished = folder.join(format!("{name}.part"));
    let mut file = File::create(&unfinished).with_context(what)?;
    let mut state = 88_172_645_463_325_252;
    let block: Vec<u8> = std::iter::repeat_with(|| {
        state = xorshift(state, 1);
        state.to_le_bytes()
    })
    .take((1 << 20) / 8)
    .flatten()
    .collect();
    let mut left = bytes;
    while left > 0 {
        let part = left.min(block.len());
        file.write_all(&block[..part]).with_context(what)?;
        left -= part;
    }
    file.sync_all().with_context(what)?;
    std::fs::rename(&unfinished, &path).with_context(what)?;
    Ok(path)
}

/// Drops a file from the page cache; works for what is durable.
pub fn make_cold(file: &File) {
    // SAFETY: the descriptor is open; the call only advises.
    unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
}
