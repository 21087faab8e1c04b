//! Cold reads without pause, by a process that has nothing to do with the GPU.

use std::os::unix::fs::FileExt as _;
use std::path::Path;

use anyhow::Result;

use crate::files;

/// How much one read asks for.
const CHUNK: usize = 1 << 20;
/// The size of its file.
const FILE: usize = 64 << 20;

/// Runs until it is killed.
///
/// # Errors
/// The file cannot be made or read.
pub fn run(data: &Path) -> Result<()> {
    let path = files::make(data, "neighbour.bin", FILE)?;
    let file = std::fs::File::open(path)?;
    let mut chunk = vec![0; CHUNK];
    println!("READY {}", std::process::id());
    loop {
        files::make_cold(&file);
        for offset in (0..FILE).step_by(CHUNK) {
            file.read_exact_at(&mut chunk, offset as u64)?;
        }
    }
}
