//! Reading a table beside the thread that uses its rows.

use std::sync::mpsc::{Receiver, sync_channel};
use std::vec::IntoIter;

use crate::store::{Bundle, StoreError, Table};

/// Rows handed over at once.
const BATCH: usize = 2048;
/// Batches read ahead.
const AHEAD: usize = 2;

type Row<T> = Result<T, StoreError>;

/// The rows of a table by time, decoded ahead by a thread of its own. It ends when this is dropped.
pub struct Ahead<T> {
    batches: Receiver<Vec<Row<T>>>,
    batch: IntoIter<Row<T>>,
}

impl<T: Table> Ahead<T> {
    /// Begins to read.
    pub fn scan(bundle: &Bundle) -> Result<Self, StoreError> {
        let mut rows = bundle.scan::<T>()?;
        let (sender, batches) = sync_channel(AHEAD);
        let read = move || {
            loop {
                let batch: Vec<Row<T>> = rows.by_ref().take(BATCH).collect();
                if batch.is_empty() || sender.send(batch).is_err() {
                    return;
                }
            }
        };
        std::thread::Builder::new()
            .name("gtrace-read".into())
            .spawn(read)
            .map_err(|error| StoreError::io("read", bundle.path(), error))?;
        Ok(Self { batches, batch: Vec::new().into_iter() })
    }
}

impl<T> Iterator for Ahead<T> {
    type Item = Row<T>;

    fn next(&mut self) -> Option<Row<T>> {
        loop {
            if let Some(row) = self.batch.next() {
                return Some(row);
            }
            self.batch = self.batches.recv().ok()?.into_iter();
        }
    }
}
