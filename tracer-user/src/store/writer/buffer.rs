//! Rows of one table that wait to be written.

use std::any::Any;
use std::fs::File;

use crate::event::{Interval, MonoNs};
use crate::store::error::StoreError;
use crate::store::folder::Folder;
use crate::store::part::write_temporary;
use crate::store::table::Table;

/// A buffer of rows of one table.
pub struct Buffer<T> {
    pub rows: Vec<T>,
    /// When the oldest row was first seen by [`AnyBuffer::take_due`].
    since: Option<MonoNs>,
}

impl<T> Default for Buffer<T> {
    fn default() -> Self {
        Self { rows: Vec::new(), since: None }
    }
}

/// A buffer, whatever its table.
pub trait AnyBuffer: Send {
    fn as_any(&mut self) -> &mut dyn Any;
    fn len(&self) -> usize;
    /// Empties it; `None` if it is empty.
    fn take(&mut self) -> Option<Box<dyn Batch>>;
    /// Empties it if its oldest row is `age` old by now.
    fn take_due(&mut self, now: MonoNs, age: i64) -> Option<Box<dyn Batch>>;
}

impl<T: Table> AnyBuffer for Buffer<T> {
    fn as_any(&mut self) -> &mut dyn Any {
        self
    }

    fn len(&self) -> usize {
        self.rows.len()
    }

    fn take(&mut self) -> Option<Box<dyn Batch>> {
        self.since = None;
        let capacity = self.rows.len();
        (capacity > 0).then(|| {
            Box::new(Rows(std::mem::replace(&mut self.rows, Vec::with_capacity(capacity)))) as Box<dyn Batch>
        })
    }

    fn take_due(&mut self, now: MonoNs, age: i64) -> Option<Box<dyn Batch>> {
        if self.rows.is_empty() {
            return None;
        }
        let since = *self.since.get_or_insert(now);
        if (now - since).0 < age { None } else { self.take() }
    }
}

/// Rows of one table, to be written as one part.
pub struct Rows<T>(pub Vec<T>);

/// Rows of one table, whatever it is.
pub trait Batch: Send {
    fn table(&self) -> &'static str;
    fn len(&self) -> usize;
    /// From the first row's time to the last one's.
    fn span(&self) -> Interval;
    /// Sorts and writes them under the temporary name of `name`.
    fn write(&mut self, folder: &Folder, name: &str) -> Result<File, StoreError>;
}

impl<T: Table> Batch for Rows<T> {
    fn table(&self) -> &'static str {
        T::NAME
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn span(&self) -> Interval {
        let times = || self.0.iter().map(Table::sort_key);
        Interval::new(times().min().unwrap_or_default(), times().max().unwrap_or_default())
    }

    fn write(&mut self, folder: &Folder, name: &str) -> Result<File, StoreError> {
        // Stable, so that equal times keep the order in which they came.
        self.0.sort_by_key(Table::sort_key);
        write_temporary(folder, name, &self.0)
    }
}
