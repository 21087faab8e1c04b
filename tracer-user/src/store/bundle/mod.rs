//! Reading a bundle, finished or not, and giving it the results of the analysis.

mod missing;
mod read;
mod replace;
mod scan;

use std::io::Read as _;
use std::path::Path;

use serde::Deserialize;

use super::error::StoreError;
use super::folder::Folder;
use super::meta::{Meta, SchemaVersion};
use super::table::Table;
use crate::event::{Interval, MonoNs};

pub use replace::Replacement;
pub use scan::Scan;

/// More than any recording's `meta.json`; a file from outside is not read without bound.
const META_BYTES: u64 = 16 * 1024 * 1024;

/// A bundle on disk.
pub struct Bundle {
    folder: Folder,
    meta: Meta,
}

/// The part of `meta.json` that every version has.
#[derive(Deserialize)]
struct Versions {
    schema: SchemaVersion,
    #[serde(default)]
    gtrace_version: String,
}

impl Bundle {
    /// Opens the bundle in folder `dir`.
    ///
    /// # Errors
    /// It is not there, is no bundle, or was written by a newer gtrace.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        let folder = Folder::open(dir).map_err(|error| StoreError::io("open", dir, error))?;
        let path = dir.join("meta.json");
        let file = folder.open_file("meta.json").map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => StoreError::NotABundle(dir.into()),
            _ => StoreError::io("open", &path, error),
        })?;
        let mut text = Vec::new();
        file.take(META_BYTES).read_to_end(&mut text).map_err(|error| StoreError::io("read", &path, error))?;
        let unclear =
            |error: serde_json::Error| StoreError::Meta { path: path.clone(), reason: error.to_string() };
        // The version first: the rest of a newer one may look different.
        let versions: Versions = serde_json::from_slice(&text).map_err(unclear)?;
        if versions.schema.major > SchemaVersion::CURRENT.major {
            return Err(StoreError::NewerSchema {
                path: dir.into(),
                found: versions.schema,
                gtrace_version: versions.gtrace_version,
            });
        }
        let meta = serde_json::from_slice(&text).map_err(unclear)?;
        Ok(Self { folder, meta })
    }

    /// Its folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// What it says about its recording.
    #[must_use]
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// All rows of a table, by time. A table that is not there has none.
    ///
    /// # Errors
    /// A part cannot be read; the error names it.
    pub fn read<T: Table>(&self) -> Result<Vec<T>, StoreError> {
        self.read_window(Interval { start: MonoNs::MIN, end: MonoNs::MAX })
    }

    /// The rows whose time ([`Table::SORT_COLUMN`], for intervals their start) lies in `window`, by time. Row groups
    /// outside are not read.
    ///
    /// # Errors
    /// A part cannot be read; the error names it.
    pub fn read_window<T: Table>(&self, window: Interval) -> Result<Vec<T>, StoreError> {
        let mut rows = Vec::new();
        for mut part in self.parts::<T>(window)? {
            while let Some(batch) = part.next_batch()? {
                rows.extend(batch.into_iter().filter(|row: &T| {
                    // The last nanosecond of all belongs to a window without end.
                    let time = row.sort_key();
                    window.start <= time && (time < window.end || window.end == MonoNs::MAX)
                }));
            }
        }
        rows.sort_by_key(Table::sort_key);
        Ok(rows)
    }

    /// The same as [`Self::read`], one row after the other, with memory for one batch of each part that overlaps the
    /// current time.
    ///
    /// # Errors
    /// A part cannot be opened; the error names it.
    pub fn scan<T: Table>(&self) -> Result<Scan<T>, StoreError> {
        Ok(Scan::new(self.parts::<T>(Interval { start: MonoNs::MIN, end: MonoNs::MAX })?))
    }

    /// All rows of a table, batch by batch, in the order in which they were written. Decoding goes on while `batch` works.
    ///
    /// # Errors
    /// A part cannot be read; the error names it.
    pub fn batches<T: Table>(&self, mut batch: impl FnMut(Vec<T>)) -> Result<(), StoreError> {
        let parts = self.parts::<T>(Interval { start: MonoNs::MIN, end: MonoNs::MAX })?;
        std::thread::scope(|scope| {
            let (sender, batches) = std::sync::mpsc::sync_channel(2);
            let decoding = scope.spawn(move || {
                for mut part in parts {
                    while let Some(rows) = part.next_batch()? {
                        if sender.send(rows).is_err() {
                            return Ok(());
                        }
                    }
                }
                Ok(())
            });
            batches.into_iter().for_each(&mut batch);
            decoding.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// How many rows a table has, from the parts' footers.
    ///
    /// # Errors
    /// A part cannot be opened; the error names it.
    pub fn count<T: Table>(&self) -> Result<u64, StoreError> {
        Ok(self.part_rows::<T>()?.iter().sum())
    }

    /// How many rows each part of a table has that has any.
    ///
    /// # Errors
    /// A part cannot be opened; the error names it.
    pub fn part_rows<T: Table>(&self) -> Result<Vec<u64>, StoreError> {
        let parts = self.parts::<T>(Interval { start: MonoNs::MIN, end: MonoNs::MAX })?;
        Ok(parts.iter().map(read::Part::rows).collect())
    }

    /// The bundle in a folder that is open already.
    pub(super) fn in_folder(folder: Folder, meta: Meta) -> Self {
        Self { folder, meta }
    }

    /// Gives a table other rows, in one step: a reader sees the old ones or the new ones. For what the analysis makes
    /// ([`Gap`], [`GapSegment`]); raw tables are left as recorded.
    ///
    /// [`Gap`]: super::schema::Gap
    /// [`GapSegment`]: super::schema::GapSegment
    ///
    /// # Errors
    /// The rows cannot be written, and the old ones stay.
    pub fn replace<T: Table>(&self, rows: Vec<T>) -> Result<(), StoreError> {
        let mut replacement = self.replacement::<T>()?;
        replacement.append(rows)?;
        replacement.commit()
    }

    /// The same piece by piece: nothing is seen of it before [`Replacement::commit`].
    ///
    /// # Errors
    /// The new folder cannot be made.
    pub fn replacement<T: Table>(&self) -> Result<Replacement<'_, T>, StoreError> {
        Replacement::new(&self.folder)
    }

    /// Writes another `meta.json`, in one step.
    ///
    /// # Errors
    /// It cannot be written, and the old one stays.
    pub fn replace_meta(&mut self, meta: Meta) -> Result<(), StoreError> {
        super::part::write_meta(&self.folder, &meta)?;
        self.meta = meta;
        Ok(())
    }
}
