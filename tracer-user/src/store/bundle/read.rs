//! Reading the parts of a table.

use std::any::Any;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::file::statistics::Statistics;

use super::Bundle;
use crate::event::{Interval, MonoNs};
use crate::store::error::StoreError;
use crate::store::folder::Folder;
use crate::store::table::Table;

/// Rows decoded at once.
const BATCH: usize = 8 * 1024;

/// One part, opened.
pub struct Part {
    path: PathBuf,
    reader: ParquetRecordBatchReader,
    rows: u64,
    /// Its earliest row's time, from the statistics; `MonoNs::MIN` where there are none.
    pub first: MonoNs,
}

impl Bundle {
    /// The parts of a table that may have rows in `window`.
    pub(super) fn parts<T: Table>(&self, window: Interval) -> Result<Vec<Part>, StoreError> {
        let mut parts = Vec::new();
        // A table can be one file beside the folders, as other tools like to write it.
        let single = format!("{}.parquet", T::NAME);
        match self.folder.open_file(&single) {
            Ok(file) => parts.extend(Part::open::<T>(&self.folder, &single, file, window)?),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(StoreError::io("open", &self.path().join(single), error)),
        }
        let table = match self.folder.open_folder(T::NAME) {
            Ok(folder) => folder,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(parts),
            Err(error) => return Err(StoreError::io("open", &self.path().join(T::NAME), error)),
        };
        let names = table.names().map_err(|error| StoreError::io("list", table.path(), error))?;
        for name in names.iter().filter(|name| name.ends_with(".parquet") && !name.starts_with(['.', '_'])) {
            match table.open_file(name) {
                Ok(file) => parts.extend(Part::open::<T>(&table, name, file, window)?),
                // Swapped for newer ones since the folder was listed.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(StoreError::io("open", &table.path().join(name), error)),
            }
        }
        Ok(parts)
    }
}

impl Part {
    /// Opens a part; `None` if it has no row in `window`.
    fn open<T: Table>(
        folder: &Folder,
        name: &str,
        file: File,
        window: Interval,
    ) -> Result<Option<Self>, StoreError> {
        let path = folder.path().join(name);
        guard(&path, || {
            let builder =
                ParquetRecordBatchReaderBuilder::try_new(file).map_err(|error| error.to_string())?;
            let metadata = builder.metadata().clone();
            let mut groups = Vec::new();
            let (mut rows, mut first) = (0, MonoNs::MAX);
            for (index, group) in metadata.row_groups().iter().enumerate() {
                let (low, high) = times::<T>(&metadata, group);
                if high < window.start
                    || (low >= window.end && window.end != MonoNs::MAX)
                    || group.num_rows() <= 0
                {
                    continue;
                }
                groups.push(index);
                rows += group.num_rows() as u64;
                first = first.min(low);
            }
            if groups.is_empty() {
                return Ok(None);
            }
            let reader = builder.with_row_groups(groups).with_batch_size(BATCH).build();
            let reader = reader.map_err(|error| error.to_string())?;
            Ok(Some(Self { path: path.clone(), reader, rows, first }))
        })
    }

    /// The next rows; `None` at the end.
    pub fn next_batch<T: Table>(&mut self) -> Result<Option<Vec<T>>, StoreError> {
        let Self { path, reader, .. } = self;
        let batch = guard(path, || reader.next().transpose().map_err(|error| error.to_string()))?;
        let Some(batch) = batch else { return Ok(None) };
        guard(path, || Ok(T::from_batch(&batch)))?
            .map(Some)
            .map_err(|source| StoreError::Rows { path: path.clone(), source })
    }

    /// Its rows, as the footer has it.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The error of rows that are not in order.
    pub fn unsorted(&self) -> StoreError {
        StoreError::Damaged { path: self.path.clone(), reason: "its rows are not sorted by time".into() }
    }
}

/// Earliest and latest time of a row group; without statistics, all of time.
fn times<T: Table>(metadata: &ParquetMetaData, group: &RowGroupMetaData) -> (MonoNs, MonoNs) {
    let column = metadata
        .file_metadata()
        .schema_descr()
        .columns()
        .iter()
        .position(|column| column.path().parts() == [T::SORT_COLUMN]);
    let statistics = column.and_then(|index| group.columns().get(index)).and_then(|chunk| chunk.statistics());
    match statistics {
        Some(Statistics::Int64(times)) => (
            times.min_opt().map_or(MonoNs::MIN, |&time| MonoNs(time)),
            times.max_opt().map_or(MonoNs::MAX, |&time| MonoNs(time)),
        ),
        _ => (MonoNs::MIN, MonoNs::MAX),
    }
}

/// Runs a step of decoding. The decoder may meet any bytes here, and where it panics instead of returning an error, the
/// reader of the bundle shall get an error all the same.
fn guard<R>(path: &Path, step: impl FnOnce() -> Result<R, String>) -> Result<R, StoreError> {
    let damaged = |reason| StoreError::Damaged { path: path.to_owned(), reason };
    match catch_unwind(AssertUnwindSafe(step)) {
        Ok(done) => done.map_err(damaged),
        Err(panic) => Err(damaged(panic_text(panic.as_ref()))),
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text =
        panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("it cannot be decoded").to_owned()
}
