//! Opening what is to be imported: plain or compressed, and what kind of file it is.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use flate2::read::MultiGzDecoder;

/// What is handed from the reading thread to the parser at once.
const CHUNK: usize = 256 << 10;
/// Chunks that may wait for the parser.
const WAITING: usize = 8;

/// What a file begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// An SQLite database.
    Sqlite,
    /// Anything else: text, as far as can be told.
    Text,
}

/// An opened file: its uncompressed contents.
pub struct Input {
    /// What kind it is.
    pub format: Format,
    /// Whether the file itself is compressed.
    pub compressed: bool,
    /// Its contents from the beginning.
    pub contents: Box<dyn Read + Send>,
}

/// Opens a file.
///
/// # Errors
/// It cannot be opened, or its first bytes cannot be read.
pub fn open(path: &Path) -> io::Result<Input> {
    let mut file = File::open(path)?;
    if file.metadata()?.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder"));
    }
    let mut start = Vec::with_capacity(16);
    (&mut file).take(16).read_to_end(&mut start)?;
    let whole = io::Cursor::new(start.clone()).chain(file);
    if !start.starts_with(&[0x1f, 0x8b]) {
        return Ok(Input { format: format(&start), compressed: false, contents: Box::new(whole) });
    }
    let mut plain = MultiGzDecoder::new(BufReader::with_capacity(CHUNK, whole));
    let mut inside = Vec::with_capacity(16);
    // An error here is met again where the contents are read.
    let failure = (&mut plain).take(16).read_to_end(&mut inside).err();
    if let (true, Some(error)) = (inside.is_empty(), failure) {
        return Err(error);
    }
    let format = format(&inside);
    Ok(Input { format, compressed: true, contents: Box::new(io::Cursor::new(inside).chain(plain)) })
}

fn format(start: &[u8]) -> Format {
    if start.starts_with(b"SQLite format 3\0") { Format::Sqlite } else { Format::Text }
}

/// Reads and decompresses in a thread of its own, so that parsing goes on meanwhile.
pub struct ReadAhead {
    chunks: Receiver<io::Result<Vec<u8>>>,
    chunk: Vec<u8>,
    at: usize,
}

impl ReadAhead {
    /// Of `contents`.
    ///
    /// # Errors
    /// No thread can be made.
    pub fn start(contents: Box<dyn Read + Send>) -> io::Result<Self> {
        let (sender, chunks) = sync_channel(WAITING);
        std::thread::Builder::new().name("gtrace-read".into()).spawn(move || pump(contents, &sender))?;
        Ok(Self { chunks, chunk: Vec::new(), at: 0 })
    }
}

fn pump(mut contents: Box<dyn Read + Send>, sender: &SyncSender<io::Result<Vec<u8>>>) {
    loop {
        let mut chunk = Vec::with_capacity(CHUNK);
        let read = (&mut contents).take(CHUNK as u64).read_to_end(&mut chunk);
        let end = chunk.is_empty();
        // What came before an error is of use. A receiver that is gone wants no more.
        if (!end && sender.send(Ok(chunk)).is_err()) || (end && read.is_ok()) {
            return;
        }
        if let Err(error) = read {
            let _ = sender.send(Err(error));
            return;
        }
    }
}

impl Read for ReadAhead {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.chunk.len() {
            match self.chunks.recv() {
                Ok(chunk) => {
                    self.chunk = chunk?;
                    self.at = 0;
                }
                Err(_) => return Ok(0),
            }
        }
        let count = buffer.len().min(self.chunk.len() - self.at);
        buffer[..count].copy_from_slice(&self.chunk[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}
