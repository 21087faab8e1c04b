//! Writing a file beside the thread that makes what is written.

use std::fs::File;
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

/// Bytes written at once.
const BLOCK: usize = 1 << 20;
/// Blocks that may wait. More would only be more memory.
const WAITING: usize = 2;

/// A file that a thread of its own writes to.
pub struct Background {
    block: Vec<u8>,
    blocks: SyncSender<Vec<u8>>,
    writer: Option<JoinHandle<io::Result<File>>>,
}

impl Background {
    /// Begins to write to a file.
    pub fn begin(file: File) -> io::Result<Self> {
        let (blocks, received) = sync_channel(WAITING);
        let writer = std::thread::Builder::new()
            .name("gtrace-export".into())
            .spawn(move || write_all(file, &received))?;
        Ok(Self { block: Vec::with_capacity(BLOCK), blocks, writer: Some(writer) })
    }

    /// Writes the rest; returns the file.
    pub fn finish(mut self) -> io::Result<File> {
        self.send()?;
        let Self { blocks, writer, .. } = self;
        drop(blocks);
        join(writer)
    }

    fn send(&mut self) -> io::Result<()> {
        let block = std::mem::replace(&mut self.block, Vec::with_capacity(BLOCK));
        if self.blocks.send(block).is_ok() {
            return Ok(());
        }
        // It ended before its time, and says why.
        Err(join(self.writer.take()).err().unwrap_or_else(|| io::ErrorKind::BrokenPipe.into()))
    }
}

impl Write for Background {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.block.extend_from_slice(bytes);
        if self.block.len() >= BLOCK {
            self.send()?;
        }
        Ok(bytes.len())
    }

    /// Only [`Self::finish`] knows that all is written.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn write_all(mut file: File, blocks: &Receiver<Vec<u8>>) -> io::Result<File> {
    for block in blocks {
        file.write_all(&block)?;
    }
    Ok(file)
}

fn join(writer: Option<JoinHandle<io::Result<File>>>) -> io::Result<File> {
    match writer.map(JoinHandle::join) {
        Some(Ok(done)) => done,
        Some(Err(_)) | None => Err(io::Error::other("the thread that wrote it ended")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_written_in_order() {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        let mut out = Background::begin(file.reopen().expect("it opens")).expect("a thread");
        let mut expected = Vec::new();
        for number in 0..700_000_u32 {
            out.write_all(&number.to_le_bytes()).expect("it is written");
            expected.extend_from_slice(&number.to_le_bytes());
        }
        out.finish().expect("all is written");
        assert!(std::fs::read(file.path()).expect("it can be read") == expected);
    }

    #[test]
    fn an_error_of_the_file_comes_back() {
        // Opened for reading only.
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        let mut out = Background::begin(File::open(file.path()).expect("it opens")).expect("a thread");
        let done =
            (0..10).try_for_each(|_| out.write_all(&vec![0; BLOCK])).and_then(|()| out.finish().map(drop));
        assert_eq!(done.expect_err("it cannot be written").raw_os_error(), Some(9));
    }
}
